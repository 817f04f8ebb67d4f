// Finds out which matrix unit a device has, and whether its sub-groups fit it.
#include "device_facts.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <string_view>

#include "base/config.h"
#include "base/log.h"

namespace ocltensor::opencl::matrix_units {
namespace {

const char* kept(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;  // leaked: threads may run while the process ends
  static std::set<std::string>& texts = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}

bool is_by(const Capabilities& caps, std::string_view vendor) {
  return (caps.type & CL_DEVICE_TYPE_GPU) != 0 && caps.vendor.find(vendor) != std::string::npos;
}

// "gfx942" of "gfx942:sramecc+:xnack-".
const Architecture* of_amd(const Capabilities& caps) {
  const std::string_view name = std::string_view(caps.name).substr(0, caps.name.find(':'));
  for (const Architecture& a : architectures())
    if (a.unit != Unit::IntelXmx && a.name == name) return &a;
  return nullptr;
}

// By name, or where the driver has the extension by the smallest sub-group.
const Architecture* of_intel(const std::string& extensions, const Capabilities& caps) {
  const bool listed =
      extensions.find(" cl_intel_subgroup_matrix_multiply_accumulate ") != std::string::npos;
  const std::vector<uint32_t>& sizes = caps.subgroup_sizes;
  const uint32_t least = sizes.empty() ? 0 : *std::ranges::min_element(sizes);
  for (const Architecture& a : architectures())
    if (a.unit == Unit::IntelXmx && caps.name.find(a.alike) != std::string::npos) return &a;
  for (const Architecture& a : architectures())
    if (a.unit == Unit::IntelXmx && listed && a.lanes == least) return &a;
  return nullptr;
}

std::string joined(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (const uint32_t n : numbers) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return text;
}

// OCLTENSOR_MATRIX_UNITS is "emulated:gfx1100" or the like.
const Architecture* emulated() {
  constexpr std::string_view kEmulated = "emulated:";
  const std::string wish = config::get_string(config::Knob::MatrixUnits);
  if (!wish.starts_with(kEmulated)) return nullptr;
  const std::string_view name = std::string_view(wish).substr(kEmulated.size());
  for (const Architecture& a : architectures())
    if (a.name == name) return &a;
  return nullptr;
}

}  // namespace

const DeviceFacts& facts(const Capabilities& caps) {
  static constexpr DeviceFacts kNone;
  const DeviceFacts* found = caps.facts.find<DeviceFacts>();
  return found == nullptr ? kNone : *found;
}

DeviceFacts detect(const std::string& extensions, const Capabilities& caps) {
  DeviceFacts facts;
  facts.architecture = is_by(caps, "Advanced Micro Devices") ? of_amd(caps)
                       : is_by(caps, "Intel")                ? of_intel(extensions, caps)
                                                             : nullptr;
  if (facts.architecture == nullptr) return facts;
  const Architecture& a = *facts.architecture;
  const std::vector<uint32_t>& sizes = caps.subgroup_sizes;
  if (a.lanes > 1 && !sizes.empty() && std::ranges::find(sizes, a.lanes) == sizes.end()) {
    facts.refusal =
        kept(fmt::format("the unit of {} has sub-groups of {} lanes, the driver's have {}", a.name,
                         a.lanes, joined(sizes)));
    return facts;
  }
  if (a.unit == Unit::IntelXmx && !caps.subgroups) {
    facts.refusal = "the driver has no sub-groups, in which Intel's matrix units work";
    return facts;
  }
  facts.kinds = a.kinds;
  return facts;
}

void ask(const cl::Device&, const std::string& extensions, Capabilities& caps) {
  if (caps.facts.find<DeviceFacts>() != nullptr) return;
  DeviceFacts facts;
  if (const Architecture* a = emulated(); a != nullptr)
    facts = {a, a->kinds, true};
  else
    facts = detect(extensions, caps);
  // AMD's driver does not offer cl_khr_integer_dot_product; all of these have the instruction.
  if (facts.architecture != nullptr && !facts.emulated &&
      facts.architecture->unit != Unit::IntelXmx)
    caps.integer_dot =
        facts.architecture->unit == Unit::AmdWmma ? IntegerDot::AmdMixed : IntegerDot::Amd;
  if (facts.refusal != nullptr)
    logging::info("tune", "{}: its matrix unit is not used: {}", caps.name, facts.refusal);
  caps.facts.set(facts);
}

}  // namespace ocltensor::opencl::matrix_units
