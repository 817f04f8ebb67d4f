// Compiles custom kernels and binds their arguments.
#include "library.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "base/arguments.h"
#include "ocltensor/dims.h"
#include "ocltensor/dtype.h"
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/memory/memory.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

// Names live as long as the process, because streams remember the names of recent launches.
const char* intern(const std::string& name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return names.insert(name).first->c_str();
}

template <typename Get>
std::string text_of(Get get) {
  size_t size = 0;
  if (get(0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, 0);
  if (get(size, text.data(), nullptr) != CL_SUCCESS) return {};
  return text.c_str();
}

// The line of the user's source that a compiler's log names first (":3:5: error" or ":3: error");
// empty if none.
std::string line_in_question(const std::string& log, const std::string& source) {
  size_t at = log.find("error");
  if (at == std::string::npos) return {};
  const size_t line_start = log.rfind('\n', at) == std::string::npos ? 0 : log.rfind('\n', at) + 1;
  const std::string head = log.substr(line_start, log.find('\n', at) - line_start);
  for (size_t i = 0; i + 1 < head.size(); ++i) {
    if (head[i] != ':' || !std::isdigit(static_cast<unsigned char>(head[i + 1]))) continue;
    const unsigned long number = std::strtoul(head.c_str() + i + 1, nullptr, 10);
    size_t begin = 0;
    for (unsigned long n = 1; n < number && begin != std::string::npos; ++n) {
      begin = source.find('\n', begin);
      if (begin != std::string::npos) ++begin;
    }
    if (begin == std::string::npos || number == 0) return {};
    return fmt::format("line {}: {}", number,
                       source.substr(begin, source.find('\n', begin) - begin));
  }
  return {};
}

bool is_pointer(const tb_value& value) {
  return value.tag == TB_TENSOR || value.tag == TB_INT_LIST || value.tag == TB_FLOAT_LIST;
}

// Scalar types of OpenCL C by name, and how a number is converted to each. "": the driver does not
// tell the type.
struct NumberType {
  const char* name;
  size_t bytes;
  bool floating;
  double low, high;
};
constexpr NumberType kNumberTypes[] = {
    {"char", 1, false, -128, 127},
    {"uchar", 1, false, 0, 255},
    {"short", 2, false, -32768, 32767},
    {"ushort", 2, false, 0, 65535},
    {"int", 4, false, -2147483648.0, 2147483647},
    {"uint", 4, false, 0, 4294967295.0},
    {"long", 8, false, -0x1p63, 0x1p63},
    {"ulong", 8, false, -0x1p63, 0x1p63},  // the bits of a negative number are kept
    {"half", 2, true, 0, 0},
    {"float", 4, true, 0, 0},
    {"double", 8, true, 0, 0},
};

const NumberType* number_type(std::string type) {
  while (!type.empty() && (type.back() == '*' || type.back() == ' ')) type.pop_back();
  if (type.starts_with("unsigned ")) type = "u" + type.substr(9);
  for (const NumberType& t : kNumberTypes)
    if (type == t.name) return &t;
  return nullptr;
}

// Writes a number as `type`; false if the type cannot represent it.
bool write_number(const NumberType& type, double real, int64_t integer, bool is_real,
                  unsigned char* out) {
  if (type.floating) {
    const double v = is_real ? real : static_cast<double>(integer);
    const auto f = static_cast<float>(v);
    const uint16_t h = float_to_half(f);
    std::memcpy(out,
                type.bytes == 8   ? static_cast<const void*>(&v)
                : type.bytes == 4 ? static_cast<const void*>(&f)
                                  : static_cast<const void*>(&h),
                type.bytes);
    return true;
  }
  if (is_real) {
    if (real != std::trunc(real) || std::abs(real) >= 0x1p63) return false;
    integer = static_cast<int64_t>(real);
  }
  const auto v = static_cast<double>(integer);
  if (v < type.low || v > type.high) return false;
  std::memcpy(out, &integer, type.bytes);  // little-endian, as every OpenCL device here
  return true;
}

}  // namespace

// The position of the next parameter, and objects that live until the launch is enqueued.
struct CustomKernel::Binding {
  Stream& stream;
  bool offsets;  // pointers take two parameters: base and byte offset
  size_t argument = 0;
  cl_uint next = 0;
  std::vector<Handle<cl_mem>> views;
  std::vector<tb_address> lists;
  ~Binding() {
    for (const tb_address address : lists) try {
        stream.device().memory().free(address, stream.id());
      } catch (const Error&) {  // when the device is lost: the memory is gone anyway
      }
  }
};

CustomKernel::CustomKernel(Device& device, Handle<cl_kernel> kernel)
    : device_(device), kernel_(std::move(kernel)) {
  const cl_kernel k = kernel_.get();
  name_ = intern(text_of([&](size_t n, void* to, size_t* size) {
    return cl().clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, n, to, size);
  }));
  cl_uint count = 0;
  check_cl(cl().clGetKernelInfo(k, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr),
           "clGetKernelInfo");
  for (cl_uint i = 0; i < count; ++i) {
    const auto ask = [&](cl_kernel_arg_info what) {
      return text_of([&](size_t n, void* to, size_t* size) {
        return cl().clGetKernelArgInfo(k, i, what, n, to, size);
      });
    };
    parameters_.push_back({ask(CL_KERNEL_ARG_TYPE_NAME), ask(CL_KERNEL_ARG_NAME)});
  }
  cl_uint bits = 0;
  check_cl(
      cl().clGetDeviceInfo(device.id(), CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, nullptr),
      "clGetDeviceInfo");
  alignment_ = std::max<uint64_t>(1, bits / 8);

  info_.argument_count = count;
  info_.name = name_;
  const auto number = [&](cl_kernel_work_group_info what, auto value) -> uint64_t {
    const cl_int code =
        cl().clGetKernelWorkGroupInfo(k, device.id(), what, sizeof value, &value, nullptr);
    return code == CL_SUCCESS ? value : 0;
  };
  info_.max_work_group_size = number(CL_KERNEL_WORK_GROUP_SIZE, size_t{0});
  info_.preferred_multiple = number(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, size_t{0});
  info_.local_memory = number(CL_KERNEL_LOCAL_MEM_SIZE, cl_ulong{0});
  info_.private_memory = number(CL_KERNEL_PRIVATE_MEM_SIZE, cl_ulong{0});
}

std::string CustomKernel::where(size_t argument, size_t parameter) const {
  const Parameter& p = parameters_[parameter];
  return fmt::format("kernel {}, argument {} ({}{}{})", name_, argument, p.type,
                     p.type.empty() || p.name.empty() ? "" : " ", p.name);
}

void CustomKernel::bind_number(Binding& to, const tb_value& value) {
  const Parameter& parameter = parameters_[to.next];
  // A driver would interpret the bytes as a buffer's handle, and crash.
  if (parameter.is_pointer())
    fail(TB_E_INVALID, "{}: a pointer takes a tensor or a list of numbers, not a number",
         where(to.argument, to.next));
  const bool is_real = value.tag == TB_FLOAT;
  const NumberType* type = number_type(parameter.type);
  check(
      type != nullptr || parameter.type.empty(),
      "{}: a number cannot be passed to this parameter; pass the bytes of a structure or a vector",
      where(to.argument, to.next));
  if (type == nullptr)
    type = number_type(is_real ? "float" : value.tag == TB_BOOL ? "int" : "long");
  unsigned char bytes[8];
  check(write_number(*type, is_real ? value.as.f : 0, is_real ? 0 : value.as.i, is_real, bytes),
        "{}: {} is not a value of this type", where(to.argument, to.next),
        is_real ? fmt::format("{}", value.as.f) : fmt::format("{}", value.as.i));
  check_cl(cl().clSetKernelArg(kernel_.get(), to.next, type->bytes, bytes), "clSetKernelArg");
  ++to.next;
}

void CustomKernel::bind_address(Binding& to, tb_address address, uint64_t bytes) {
  const Parameter& parameter = parameters_[to.next];
  if (!parameter.type.empty() && !parameter.is_pointer())
    fail(TB_E_INVALID,
         "{}: a tensor or a list cannot be passed to this parameter, which is no "
         "pointer",
         where(to.argument, to.next));
  Place place = address == 0 ? Place{nullptr, 0} : resolve(address, 0, 0);
  if (!to.offsets && place.offset != 0) {
    check(place.offset % alignment_ == 0,
          "{}: the tensor starts {} bytes past an address that this device can bind (multiples of "
          "{}); pass a contiguous copy, or declare pointers as pairs (__global T *base, ulong "
          "byte_offset)",
          where(to.argument, to.next), place.offset % alignment_, alignment_);
    const cl_buffer_region region{static_cast<size_t>(place.offset),
                                  static_cast<size_t>(std::max<uint64_t>(bytes, 1))};
    cl_int code = CL_SUCCESS;
    to.views.emplace_back(cl().clCreateSubBuffer(place.buffer, CL_MEM_READ_WRITE,
                                                 CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    check_cl(code, "clCreateSubBuffer");
    place.buffer = to.views.back().get();
  }
  check_cl(cl().clSetKernelArg(kernel_.get(), to.next, sizeof place.buffer, &place.buffer),
           where(to.argument, to.next).c_str());
  ++to.next;
  if (!to.offsets) return;
  const cl_ulong offset = place.offset;
  check_cl(cl().clSetKernelArg(kernel_.get(), to.next, sizeof offset, &offset),
           where(to.argument, to.next).c_str());
  ++to.next;
}

// Copies a list to the device in the type to which the parameter points; long or float if the
// driver does not tell it.
void CustomKernel::bind_list(Binding& to, const tb_value& value) {
  const bool real = value.tag == TB_FLOAT_LIST;
  const Parameter& parameter = parameters_[to.next];
  const NumberType* type =
      number_type(parameter.type.empty() ? (real ? "float" : "long") : parameter.type);
  check(type != nullptr, "{}: a list of numbers cannot be passed to this parameter",
        where(to.argument, to.next));
  std::vector<unsigned char> bytes(std::max<size_t>(1, value.count * type->bytes));
  for (uint32_t i = 0; i < value.count; ++i)
    check(write_number(*type, real ? static_cast<const double*>(value.as.p)[i] : 0,
                       real ? 0 : static_cast<const int64_t*>(value.as.p)[i], real,
                       bytes.data() + i * type->bytes),
          "{}: element {} is not a value of this type", where(to.argument, to.next), i);
  Memory& memory = device_.memory();
  to.lists.push_back(memory.allocate(bytes.size(), to.stream.id()));
  const Place place = resolve(to.lists.back(), 0, static_cast<int64_t>(bytes.size()));
  to.stream.write(place.buffer, place.offset, bytes.data(), bytes.size(), false);
  bind_address(to, to.lists.back(), bytes.size());
}

void CustomKernel::launch(Stream& stream, std::span<const tb_value> args, const Range& range) {
  check(&stream.device() == &device_,
        "kernel {} was compiled for device {}, the stream belongs to {}", name_, device_.index(),
        stream.device().index());
  const auto pointers = static_cast<size_t>(std::ranges::count_if(args, is_pointer));
  const size_t count = parameters_.size();
  check(count == args.size() || count == args.size() + pointers,
        "kernel {} has {} parameters, {} arguments were given ({} of them tensors or lists, which "
        "bind one parameter each, or two: base and byte offset)",
        name_, count, args.size(), pointers);
  const std::lock_guard lock(mutex_);
  Binding to{stream, pointers > 0 && count != args.size(), 0, 0, {}, {}};
  for (const tb_value& value : args) {
    if (!points_somewhere(value))
      fail(TB_E_INVALID, "{}: it is a null pointer", where(to.argument, to.next));
    switch (value.tag) {
      case TB_BOOL:
      case TB_INT:
      case TB_FLOAT: bind_number(to, value); break;
      case TB_INT_LIST:
      case TB_FLOAT_LIST: bind_list(to, value); break;
      case TB_STRING:
        if (parameters_[to.next].is_pointer() || value.count == 0)
          fail(TB_E_INVALID,
               "{}: bytes are the value of a number, a vector or a structure, which "
               "this parameter or this argument is not",
               where(to.argument, to.next));
        check_cl(cl().clSetKernelArg(kernel_.get(), to.next, value.count, value.as.p),
                 where(to.argument, to.next).c_str());
        ++to.next;
        break;
      case TB_TENSOR: {
        const auto* given = static_cast<const tb_tensor*>(value.as.p);
        const DType dtype = check_described(given);
        check_reach(*given, dtype);
        const tb_tensor& tensor = *given;
        const Extent e = extent({tensor.sizes, tensor.ndim}, {tensor.strides, tensor.ndim});
        const int64_t item = size_of(from_abi(tensor.dtype));
        check(e.low == 0, "{}: tensors with negative strides are not supported",
              where(to.argument, to.next));
        const tb_address address = e.low == e.high ? 0 : tensor.address;
        if (address != 0)
          check(&device_of(address) == &device_, "{}: the tensor is on another device",
                where(to.argument, to.next));
        bind_address(to, address, static_cast<uint64_t>(e.high * item));
        break;
      }
      default:
        fail(TB_E_INVALID, "{}: only tensors, numbers, lists of numbers and bytes can be passed",
             where(to.argument, to.next));
    }
    ++to.argument;
  }
  stream.launch(kernel_.get(), name_, range);
}

Library::Library(Device& device, const std::string& source, const std::string& options) {
  std::string all = device.caps().build_options + " -cl-kernel-arg-info";
  if (!options.empty()) all += " " + options;
  try {
    program_ = device.programs().build(source, all, "the kernel source");
  } catch (const Error& error) {
    const std::string line = line_in_question(error.what(), source);
    if (error.status() != TB_E_COMPILE || line.empty()) throw;
    throw Error(TB_E_COMPILE, 0, fmt::format("{}\n{}", line, error.what()), error.native());
  }
  cl_uint count = 0;
  check_cl(cl().clCreateKernelsInProgram(program_.get(), 0, nullptr, &count),
           "clCreateKernelsInProgram");
  std::vector<cl_kernel> made(count);
  if (count > 0)
    check_cl(cl().clCreateKernelsInProgram(program_.get(), count, made.data(), nullptr),
             "clCreateKernelsInProgram");
  std::vector<Handle<cl_kernel>> owned;
  owned.reserve(count);
  for (const cl_kernel kernel : made) owned.emplace_back(kernel);
  for (Handle<cl_kernel>& kernel : owned)
    kernels_.push_back(std::make_unique<CustomKernel>(device, std::move(kernel)));
  std::ranges::sort(
      kernels_, [](const auto& a, const auto& b) { return std::strcmp(a->name(), b->name()) < 0; });
}

}  // namespace ocltensor::opencl
