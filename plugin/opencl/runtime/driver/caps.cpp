// Lowers a device's capabilities, and refuses launches that the lowered device would refuse.
#include "caps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "base/caps.h"
#include "base/config.h"
#include "ocltensor/error.h"
#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {
namespace {

struct Field {
  Cap cap;
  std::variant<bool Capabilities::*, uint32_t Capabilities::*, uint64_t Capabilities::*> member;
  std::array<const char*, 2> hides = {};  // extensions, if the capability is switched off
};

constexpr Field kFields[] = {
    {Cap::Fp64, &Capabilities::fp64, {"cl_khr_fp64"}},
    {Cap::Fp16, &Capabilities::fp16_arithmetic, {"cl_khr_fp16"}},
    {Cap::Subgroups, &Capabilities::subgroups, {"cl_khr_subgroups", "cl_intel_subgroups"}},
    {Cap::Int64Atomics,
     &Capabilities::int64_atomics,
     {"cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics"}},
    {Cap::ExactDivision, &Capabilities::exact_division},
    {Cap::UnifiedMemory, &Capabilities::unified_memory},
    {Cap::HostAddresses, &Capabilities::host_addresses},
    {Cap::ItemRegisters, &Capabilities::item_registers},
    {Cap::StepsAtOnce, &Capabilities::steps_at_once},
    {Cap::StructsByValue, &Capabilities::structs_by_value},
    {Cap::IndexedStructures, &Capabilities::indexed_structures},
    {Cap::Timestamps, &Capabilities::timestamps},
    {Cap::TrustedCompiler, &Capabilities::trusted_compiler},
    {Cap::ComputeUnits, &Capabilities::compute_units},
    {Cap::WorkGroup, &Capabilities::max_work_group_size},
    {Cap::KernelWorkGroup, &Capabilities::kernel_work_group},
    {Cap::LocalMemory, &Capabilities::local_memory},
    {Cap::GlobalMemory, &Capabilities::global_memory},
    {Cap::LargestAllocation, &Capabilities::largest_allocation},
};

template <typename T>
void lower(Capabilities& c, const Field& field, T& own, const CapLimit& limit) {
  const auto has = static_cast<uint64_t>(own);
  check(limit.by_profile || limit.most <= has,
        "{}: {}={} is more than this device has, which is {}", config::name(config::Knob::Caps),
        name(limit.cap), limit.most, has);
  if (limit.most >= has) return;
  own = static_cast<T>(limit.most);
  c.limits += fmt::format("{}{}={}", c.limits.empty() ? "" : ",", name(limit.cap), limit.most);
  if (limit.most != 0) return;
  for (const char* extension : field.hides)
    if (extension != nullptr) c.hidden.push_back(extension);
}

void apply(Capabilities& c, const CapLimit& limit) {
  for (const Field& field : kFields)
    if (field.cap == limit.cap)
      std::visit([&](auto member) { lower(c, field, c.*member, limit); }, field.member);
}

}  // namespace

void apply_caps(Capabilities& c) {
  const auto limits = parse_caps(config::get_string(config::Knob::Caps));
  const uint64_t reported = c.local_memory;
  c.kernel_work_group = c.max_work_group_size;
  for (const CapLimit& limit : limits.value()) apply(c, limit);
  if (!config::get_bool(config::Knob::Float64)) apply(c, {Cap::Fp64, 0, true});
  c.host_addresses = c.host_addresses && c.unified_memory;
  c.largest_allocation = std::min(c.largest_allocation, c.global_memory);
  c.is_capped = !c.limits.empty();
  c.local_memory_capped = c.local_memory < reported;
}

void apply_cap(Capabilities& c, Cap cap, uint32_t& own) {
  const auto limits = parse_caps(config::get_string(config::Knob::Caps));
  for (const CapLimit& limit : limits.value())
    if (limit.cap == cap) lower(c, {cap, {}}, own, limit);
  c.is_capped = !c.limits.empty();
}

std::string without_hidden(const Capabilities& caps, const std::string& source) {
  std::string lines;
  for (const char* extension : caps.hidden)
    if (source.find(extension) != std::string::npos) lines += fmt::format("#undef {}\n", extension);
  return lines.empty() ? source : fmt::format("{}#line 1 \"{}\"\n{}", lines, kGivenText, source);
}

namespace {

// 0 if the driver does not answer.
size_t asked_group(cl_device_id device, cl_kernel kernel) {
  size_t items = 0;
  const cl_int code = View<cl::Kernel>(kernel)->getWorkGroupInfo(*View<cl::Device>(device),
                                                                 CL_KERNEL_WORK_GROUP_SIZE, &items);
  return code == CL_SUCCESS ? items : 0;
}

size_t declared_group(cl_device_id device, cl_kernel kernel) {
  std::array<size_t, 3> size = {};
  const cl_int code = View<cl::Kernel>(kernel)->getWorkGroupInfo(
      *View<cl::Device>(device), CL_KERNEL_COMPILE_WORK_GROUP_SIZE, &size);
  return code == CL_SUCCESS ? size[0] * size[1] * size[2] : 0;
}

}  // namespace

uint32_t group_limit(const Capabilities& caps, cl_device_id device, cl_kernel kernel) {
  if (declared_group(device, kernel) != 0) return UINT32_MAX;
  const size_t asked = asked_group(device, kernel);
  if (asked == 0) return caps.kernel_work_group;
  return static_cast<uint32_t>(std::min<size_t>(asked, caps.kernel_work_group));
}

std::string describe_group(cl_device_id device, cl_kernel kernel,
                           const std::array<size_t, 3>& local) {
  const size_t items = local[0] * local[1] * local[2];
  const size_t declared = declared_group(device, kernel), most = asked_group(device, kernel);
  if (declared != 0 && declared != items)
    return fmt::format(": {} work-items in a work-group, {} declared", items, declared);
  if (most == 0 || items <= most) return {};
  return fmt::format(": {} work-items in a work-group, the kernel's limit is {}", items, most);
}

std::string beyond_caps(const Capabilities& caps, cl_device_id device, cl_kernel kernel,
                        const std::array<size_t, 3>& local) {
  const size_t items = local[0] * local[1] * local[2];
  if (local[0] != 0 && items > caps.max_work_group_size)
    return fmt::format("a work-group of {} work-items, limit {}", items, caps.max_work_group_size);
  if (!caps.local_memory_capped) return {};
  cl_ulong bytes = 0;
  const cl_int code = View<cl::Kernel>(kernel)->getWorkGroupInfo(*View<cl::Device>(device),
                                                                 CL_KERNEL_LOCAL_MEM_SIZE, &bytes);
  if (code != CL_SUCCESS || bytes <= caps.local_memory) return {};
  return fmt::format("{} bytes of local memory, limit {}", bytes, caps.local_memory);
}

}  // namespace ocltensor::opencl
