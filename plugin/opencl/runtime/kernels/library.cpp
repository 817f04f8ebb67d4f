// Compiles custom kernels and binds their arguments.
#include "library.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/arguments.h"
#include "base/config.h"
#include "ocltensor/dims.h"
#include "ocltensor/dtype.h"
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/process_end.h"
#include "runtime/memory/memory.h"
#include "runtime/program/program.h"
#include "runtime/queue/launch_thread.h"

namespace ocltensor::opencl {
namespace {

// Names live as long as the process, because streams remember the names of recent launches.
const char* intern(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

bool is_pointer(const tb_value& value) {
  return value.tag == TB_TENSOR || value.tag == TB_INT_LIST || value.tag == TB_FLOAT_LIST;
}

}  // namespace

// The position of the next parameter, and objects that live until the launch is enqueued.
struct CustomKernel::Binding {
  Stream& stream;
  Kernel& kernel;
  bool offsets;  // pointers take two parameters: base and byte offset
  size_t argument = 0;
  cl_uint next = 0;
  std::vector<cl::Buffer> views;
  std::vector<tb_address> lists;
  ~Binding() {
    for (const tb_address address : lists) try {
        stream.device().memory().free(address, stream.id());
      } catch (const Error&) {  // when the device is lost: the memory is gone anyway
      }
  }
};

CustomKernel::CustomKernel(Device& device, Program& program, cl::Kernel probe)
    : device_(device), program_(program), probe_(std::move(probe)) {
  const cl_kernel k = probe_();
  name_ = intern(probe_.getInfo<CL_KERNEL_FUNCTION_NAME>());
  for (const KernelParameter& told : program.parameters().at(name_))
    parameters_.push_back({ParameterType(told.type), told.name, told.is_local});
  if (parameters_.size() >= 2 && parameters_.end()[-2].type.name() == "FaultRecord*")
    fault_site_ = fault_site(name_);
  cl_uint bits = 0;
  check_cl(
      cl().clGetDeviceInfo(device.id(), CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, nullptr),
      "clGetDeviceInfo");
  alignment_ = std::max<uint64_t>(1, bits / 8);

  info_.argument_count = static_cast<uint32_t>(bound_count());
  info_.name = name_;
  const auto number = [&](cl_kernel_work_group_info what, auto value) -> uint64_t {
    const cl_int code =
        cl().clGetKernelWorkGroupInfo(k, device.id(), what, sizeof value, &value, nullptr);
    return code == CL_SUCCESS ? value : 0;
  };
  info_.max_work_group_size = std::min<uint64_t>(number(CL_KERNEL_WORK_GROUP_SIZE, size_t{0}),
                                                 device.caps().max_work_group_size);
  info_.preferred_multiple = number(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, size_t{0});
  info_.local_memory = number(CL_KERNEL_LOCAL_MEM_SIZE, cl_ulong{0});
  info_.private_memory = number(CL_KERNEL_PRIVATE_MEM_SIZE, cl_ulong{0});
}

// Launches that still wait for a launch thread use the kernel objects.
CustomKernel::~CustomKernel() {
  if (kernels_.empty() || !device_.caps().deferred_builds) return;
  try {
    device_.submit_launches();
  } catch (const std::exception&) {  // in a forked child, or when the device is lost
  }
}

// The stream's own object, which only the stream's consumer passes to the driver.
Kernel& CustomKernel::kernel_of(Stream& stream) {
  const size_t place = stream.place();
  if (place >= kernels_.size()) kernels_.resize(place + 1);
  std::unique_ptr<Kernel>& kernel = kernels_[place];
  if (kernel == nullptr) {
    cl_int code = CL_SUCCESS;
    const cl_kernel made = cl().clCreateKernel(device_.programs().get(program_), name_, &code);
    check_cl(code, "clCreateKernel");
    kernel = std::make_unique<Kernel>(made, name_);
  }
  kernel->enter(stream.epoch());
  // Of a launch that was refused while its arguments were bound.
  if (!kernel->changes().empty()) kernel->forget_arguments();
  return *kernel;
}

std::string CustomKernel::Parameter::text() const {
  return fmt::format("{}{}{}", type.name(), type.is_known() && !name.empty() ? " " : "", name);
}

// Whether each tensor and list meets a pointer and an offset, and each other argument neither. True
// where the driver does not tell the types.
bool CustomKernel::takes_pairs(std::span<const tb_value> args) const {
  size_t next = 0;
  for (const tb_value& value : args) {
    const Parameter& first = parameters_[next++];
    if (!is_pointer(value)) continue;
    const Parameter& second = parameters_[next++];
    if (first.type.is_known() && (!first.type.is_pointer() || !second.type.is_byte_offset()))
      return false;
  }
  return true;
}

// Whether a tensor and a list bind two parameters each. Throws where neither way of binding has as
// many parameters as the kernel.
bool CustomKernel::binds_pairs(std::span<const tb_value> args) const {
  const size_t count = bound_count();
  if (count == args.size()) return false;
  const auto pointers = static_cast<size_t>(std::ranges::count_if(args, is_pointer));
  if (pointers > 0 && count == args.size() + pointers && takes_pairs(args)) return true;
  std::string texts;
  for (const Parameter& p : std::span(parameters_).first(count))
    texts += (texts.empty() ? ": " : ", ") + p.text();
  fail(TB_E_INVALID,
       "kernel {} has {} parameters, {} arguments were given ({} of them tensors or lists, which "
       "bind one parameter each, or two: T* base, ulong byte_offset){}",
       name_, count, args.size(), pointers,
       parameters_.empty() || !parameters_[0].type.is_known() ? "" : texts);
}

std::string CustomKernel::where(const Binding& at) const {
  return fmt::format("kernel {}, argument {} ({})", name_, at.argument,
                     parameters_[at.next].text());
}

template <typename... T>
void CustomKernel::refuse(const Binding& at, fmt::format_string<T...> why, T&&... values) const {
  fail(TB_E_INVALID, "{}: {}", where(at), fmt::format(why, std::forward<T>(values)...));
}

// Sets the next argument. The driver is asked once whether the parameter has this size, so that a
// launch which waits for its thread has been checked.
void CustomKernel::set(Binding& to, size_t bytes, const void* value) {
  Parameter& parameter = parameters_[to.next];
  if (parameter.accepted != bytes) [[unlikely]] {
    const cl_int code = cl().clSetKernelArg(probe_(), to.next, bytes, value);
    if (code != CL_SUCCESS) check_cl(code, where(to).c_str());
    parameter.accepted = bytes;
  }
  to.kernel.set_arg(to.next, bytes, value);
  ++to.next;
}

void CustomKernel::bind_number(Binding& to, const tb_value& value) {
  const ParameterType& parameter = parameters_[to.next].type;
  // A driver would interpret the bytes as a buffer's handle, and crash.
  if (parameter.is_pointer())
    refuse(to, "a pointer takes a tensor or a list of numbers, not a number");
  const bool is_real = value.tag == TB_FLOAT;
  const NumberType* type = parameter.number();
  if (type == nullptr && parameter.is_known())
    refuse(to,
           "a number cannot be passed to this parameter; pass the bytes of a structure or a "
           "vector");
  if (type == nullptr)
    type = number_type(is_real ? "float" : value.tag == TB_BOOL ? "int" : "long");
  unsigned char bytes[8];
  if (!write_number(*type, is_real ? value.as.f : 0, is_real ? 0 : value.as.i, is_real, bytes))
    refuse(to, "{} is not a value of this type",
           is_real ? fmt::format("{}", value.as.f) : fmt::format("{}", value.as.i));
  set(to, type->bytes, bytes);
}

void CustomKernel::bind_address(Binding& to, tb_address address, uint64_t bytes) {
  const Parameter& parameter = parameters_[to.next];
  if (parameter.type.is_known() && !parameter.type.is_pointer())
    refuse(to, "a tensor or a list cannot be passed to this parameter, which is no pointer");
  if (parameter.local)
    refuse(to, "__local memory cannot be passed: declare the array inside of the kernel");
  Place place = address == 0 ? Place{nullptr, 0} : resolve(address, 0, 0);
  if (!to.offsets && place.offset != 0) {
    if (place.offset % alignment_ != 0)
      refuse(to,
             "the tensor starts {} bytes past an address that this device can bind (multiples of "
             "{}); pass a contiguous copy, or declare pointers as pairs (__global T *base, ulong "
             "byte_offset)",
             place.offset % alignment_, alignment_);
    const cl_buffer_region region{static_cast<size_t>(place.offset),
                                  static_cast<size_t>(std::max<uint64_t>(bytes, 1))};
    cl_int code = CL_SUCCESS;
    to.views.emplace_back(cl().clCreateSubBuffer(place.buffer, CL_MEM_READ_WRITE,
                                                 CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    check_cl(code, "clCreateSubBuffer");
    place.buffer = to.views.back()();
  }
  set(to, sizeof place.buffer, &place.buffer);
  // The next view may have the same handle.
  if (!to.views.empty() && to.views.back()() == place.buffer) to.kernel.forget(to.next - 1);
  if (!to.offsets) return;
  const cl_ulong offset = place.offset;
  set(to, sizeof offset, &offset);
}

// Copies a list to the device in the type to which the parameter points; long or float if the
// driver does not tell it.
void CustomKernel::bind_list(Binding& to, const tb_value& value) {
  const bool real = value.tag == TB_FLOAT_LIST;
  const ParameterType& parameter = parameters_[to.next].type;
  const NumberType* type =
      parameter.is_known() ? parameter.number() : number_type(real ? "float" : "long");
  if (type == nullptr) refuse(to, "a list of numbers cannot be passed to this parameter");
  std::vector<unsigned char> bytes(std::max<size_t>(1, value.count * type->bytes));
  for (uint32_t i = 0; i < value.count; ++i)
    if (!write_number(*type, real ? static_cast<const double*>(value.as.p)[i] : 0,
                      real ? 0 : static_cast<const int64_t*>(value.as.p)[i], real,
                      bytes.data() + i * type->bytes))
      refuse(to, "element {} is not a value of this type", i);
  Memory& memory = device_.memory();
  to.lists.push_back(memory.allocate(bytes.size(), to.stream.id()));
  const Place place = resolve(to.lists.back(), 0, static_cast<int64_t>(bytes.size()));
  to.stream.write(place.buffer, place.offset, bytes.data(), bytes.size(), false);
  bind_address(to, to.lists.back(), bytes.size());
}

void CustomKernel::bind_bytes(Binding& to, const tb_value& value) {
  const ParameterType& parameter = parameters_[to.next].type;
  if (parameter.is_pointer() || value.count == 0)
    refuse(to,
           "bytes are the value of a number, a vector or a structure, which this parameter or "
           "this argument is not");
  const size_t wanted = parameter.value_bytes();  // a structure's size no driver tells
  if (wanted != 0 && wanted != value.count)
    refuse(to, "the type has {} bytes, {} were given", wanted, value.count);
  set(to, value.count, value.as.p);
}

void CustomKernel::bind_tensor(Binding& to, const tb_tensor* given) {
  const DType dtype = check_described(given);
  check_reach(*given, dtype);
  const tb_tensor& tensor = *given;
  const ParameterType& parameter = parameters_[to.next].type;
  if (parameter.is_pointer() && !parameter.takes(dtype))
    refuse(to,
           "the tensor is {}, which this pointer does not take: convert it, or declare the "
           "parameter as {}* or, for bytes of any type, void*",
           ocltensor::name(dtype), pointee(dtype));
  const Extent e = extent({tensor.sizes, tensor.ndim}, {tensor.strides, tensor.ndim});
  if (e.low != 0) refuse(to, "tensors with negative strides are not supported");
  const tb_address address = e.low == e.high ? 0 : tensor.address;
  if (address != 0 && &device_of(address) != &device_)
    refuse(to, "the tensor is on another device");
  bind_address(to, address, static_cast<uint64_t>(e.high * size_of(dtype)));
}

// The stream's record of wrong values, and the site; 0 where values are not checked.
void CustomKernel::bind_faults(Binding& to) {
  const int32_t site = config::get_bool(config::Knob::CheckValues) ? fault_site_ : 0;
  Faults& faults = to.stream.faults();
  const cl_mem record = faults.record();
  set(to, sizeof record, &record);
  set(to, sizeof site, &site);
  if (site != 0) faults.expect();
}

void CustomKernel::launch(Stream& stream, std::span<const tb_value> args, const Range& range) {
  check(&stream.device() == &device_,
        "kernel {} was compiled for device {}, the stream belongs to {}", name_, device_.index(),
        stream.device().index());
  // It may have been compiled for work-groups of one size alone.
  if (is_process_ending() && device_.caps().launch_compiler != nullptr)
    fail(TB_E_STATE, "kernel {} cannot be launched: the process is ending, and {} compiles it",
         name_, device_.caps().platform);
  const std::lock_guard lock(mutex_);
  Binding to{stream, kernel_of(stream), binds_pairs(args), 0, 0, {}, {}};
  for (const tb_value& value : args) {
    if (!points_somewhere(value)) refuse(to, "it is a null pointer");
    switch (value.tag) {
      case TB_BOOL:
      case TB_INT:
      case TB_FLOAT: bind_number(to, value); break;
      case TB_INT_LIST:
      case TB_FLOAT_LIST: bind_list(to, value); break;
      case TB_STRING: bind_bytes(to, value); break;
      case TB_TENSOR: bind_tensor(to, static_cast<const tb_tensor*>(value.as.p)); break;
      default: refuse(to, "only tensors, numbers, lists of numbers and bytes can be passed");
    }
    ++to.argument;
  }
  if (fault_site_ != 0) bind_faults(to);
  stream.launch(to.kernel, range);
  for (cl::Buffer& view : to.views) stream.keep_recorded(view);
  // A driver keeps a view alive for launches that it knows of.
  if (!to.views.empty()) stream.submit_launches();
}

Library::Library(Device& device, const std::string& source, const std::string& options) {
  const uint64_t builds = build_counters().builds;
  program_ = device.programs().find(source, options);
  (void)device.programs().get(*program_);
  if (build_counters().builds != builds || !device.caps().loads_at_exit)
    LaunchThread::stop_all_at_exit();
  for (cl::Kernel& kernel : kernels_of(device.programs().get(*program_)))
    kernels_.push_back(std::make_unique<CustomKernel>(device, *program_, std::move(kernel)));
  std::ranges::sort(
      kernels_, [](const auto& a, const auto& b) { return std::strcmp(a->name(), b->name()) < 0; });
}

}  // namespace ocltensor::opencl
