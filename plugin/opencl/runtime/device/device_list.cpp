// Finds devices on every platform, and records every refusal.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/caps.h"
#include "base/config.h"
#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/clhpp.h"
#include "runtime/driver/driver_files.h"
#include "runtime/driver/process.h"

namespace ocltensor::opencl {
namespace {

struct Candidate {
  cl::Platform platform;
  cl::Device device;
  Capabilities caps;
};

// cl_khr_device_uuid: the same for one device whoever drives it. Empty without.
std::string uuid_of(const cl::Device& device) {
  constexpr cl_device_info kUuid = 0x106A;
  std::array<char, 16> uuid{};
  if (device.getInfo(kUuid, &uuid) != CL_SUCCESS) return {};
  return {uuid.begin(), uuid.end()};
}

// One device that several *.icd files name: by one library it has one handle; by copies of it one
// UUID, on platforms of one name and version. Another vendor's driver for it is a choice, and
// stays.
bool is_same(const Candidate& a, const Candidate& b) {
  if (a.device == b.device) return true;
  if (a.platform == b.platform || a.caps.platform != b.caps.platform ||
      a.caps.driver_version != b.caps.driver_version || a.caps.name != b.caps.name)
    return false;
  const std::string uuid = uuid_of(a.device);
  return !uuid.empty() && uuid == uuid_of(b.device);
}

void add(std::vector<Candidate>& found, Candidate candidate, std::string& report) {
  const bool is_known =
      std::ranges::any_of(found, [&](const Candidate& other) { return is_same(other, candidate); });
  report += fmt::format("platform {}: device {}{}\n", candidate.caps.platform, candidate.caps.name,
                        is_known ? " once more: two *.icd files name its driver, one can go" : "");
  if (!is_known) found.push_back(std::move(candidate));
}

std::vector<Candidate> enumerate(std::string& report) {
  std::vector<Candidate> found;
  std::vector<cl::Platform> platforms;
  cl_int code = cl::Platform::get(&platforms);
  if (code != CL_SUCCESS || platforms.empty()) {
    const std::string files = describe_driver_files();
    report += files.empty() ? fmt::format(
                                  "no OpenCL platform is installed ({}); install a driver, "
                                  "e.g. pocl-opencl-icd\n",
                                  error_name(code))
                            : fmt::format("no OpenCL platform can be used ({}):\n{}",
                                          error_name(code), files);
    return found;
  }
  for (const cl::Platform& platform : platforms) {
    std::string name = "?";
    (void)platform.getInfo(CL_PLATFORM_NAME, &name);
    std::vector<cl::Device> devices;
    code = platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    if (devices.empty()) {
      if (code == CL_SUCCESS) code = CL_DEVICE_NOT_FOUND;  // as clhpp has it
      report += fmt::format("platform {}: no device ({})\n", name, error_name(code));
      continue;
    }
    for (const cl::Device& device : devices) {
      try {
        add(found, {platform, device, query_capabilities(platform, device)}, report);
      } catch (const Error& e) {
        report += fmt::format("platform {}: a device is refused: {}\n", name, e.what());
      }
    }
  }
  return found;
}

std::string lower(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return std::tolower(c); });
  return s;
}

// Default order: GPUs, then accelerators, then CPUs, each in the drivers' order.
int rank(const Capabilities& c) {
  return c.type & CL_DEVICE_TYPE_GPU ? 0 : c.type & CL_DEVICE_TYPE_CPU ? 2 : 1;
}

// OCLTENSOR_DEVICES: comma-separated indices (of the default order) or parts of device or platform
// names.
std::vector<Candidate> select(std::vector<Candidate> all, const std::string& wanted,
                              std::string& report) {
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    return rank(a.caps) < rank(b.caps);
  });
  if (wanted.empty()) return all;
  std::vector<Candidate> chosen;
  std::vector<bool> taken(all.size());
  size_t begin = 0;
  while (begin <= wanted.size()) {
    const size_t end = std::min(wanted.find(',', begin), wanted.size());
    const std::string item = lower(wanted.substr(begin, end - begin));
    begin = end + 1;
    if (item.empty()) continue;
    const bool is_index =
        std::all_of(item.begin(), item.end(), [](unsigned char c) { return std::isdigit(c); });
    bool matched = false;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool hit = is_index ? std::to_string(i) == item
                                : lower(all[i].caps.name + " " + all[i].caps.platform).find(item) !=
                                      std::string::npos;
      if (!hit || taken[i]) continue;
      matched = taken[i] = true;
      chosen.push_back(all[i]);
    }
    if (!matched)
      report += fmt::format("OCLTENSOR_DEVICES: '{}' matches no (further) device\n", item);
  }
  return chosen;
}

bool is_cpu(const Candidate& candidate) { return (candidate.caps.type & CL_DEVICE_TYPE_CPU) != 0; }

// How many devices each CPU is shown as: what OCLTENSOR_CPU_DEVICES says, else enough for the
// processes of this host where there are CPUs alone.
int64_t parts_of_cpus(const std::vector<Candidate>& whole) {
  const int64_t asked = config::get_int(config::Knob::CpuDevices);
  const int64_t ranks = config::get_int(config::Knob::LocalRanks);
  const auto devices = static_cast<int64_t>(whole.size());
  if (asked != 0) return asked;
  if (devices == 0 || devices >= ranks || !std::all_of(whole.begin(), whole.end(), is_cpu))
    return 1;
  constexpr int64_t kMostDevices = 64;  // that PyTorch has room for
  const int64_t parts = (ranks + devices - 1) / devices;
  return parts * devices > kMostDevices ? 1 : parts;
}

// Each CPU as that many devices of equal shares of its cores.
std::vector<Candidate> divide_cpus(std::vector<Candidate> whole, std::string& report) {
  const int64_t wanted = parts_of_cpus(whole);
  const bool is_asked = config::get_int(config::Knob::CpuDevices) != 0;
  std::vector<Candidate> found;
  for (Candidate& candidate : whole) {
    const Capabilities& caps = candidate.caps;
    if (wanted <= 1 || !is_cpu(candidate)) {
      found.push_back(std::move(candidate));
      continue;
    }
    const auto units = static_cast<int64_t>(caps.compute_units);
    const std::array<cl_device_partition_property, 3> equally{
        CL_DEVICE_PARTITION_EQUALLY, static_cast<cl_device_partition_property>(units / wanted), 0};
    std::vector<cl::Device> parts;
    const cl_int code = units < wanted ? CL_INVALID_DEVICE_PARTITION_COUNT
                                       : candidate.device.createSubDevices(equally.data(), &parts);
    if (code != CL_SUCCESS || parts.size() < static_cast<size_t>(wanted)) {
      const std::string why = fmt::format(
          "{}={}: {} with {} compute units stays whole ({})",
          is_asked ? "OCLTENSOR_CPU_DEVICES" : "OCLTENSOR_LOCAL_RANKS", wanted, caps.name, units,
          code == CL_SUCCESS ? "its driver makes fewer parts" : error_name(code));
      if (is_asked) logging::warning("device", "{}", why);
      report += why + "\n";
      found.push_back(std::move(candidate));
      continue;
    }
    parts.resize(static_cast<size_t>(wanted));  // a rest of its cores makes more
    for (const cl::Device& part : parts) {
      found.push_back({candidate.platform, part, query_capabilities(candidate.platform, part)});
      (void)new cl::Device(part);  // leaked: unlike a whole device, it ends with its last owner
    }
  }
  return found;
}

// Which kernels a device is given, by what is known of it.
std::string kernels_for(const Capabilities& c) {
  if (c.style == KernelStyle::Cpu) return "kernels for CPUs";
  std::string text = fmt::format("kernels for GPUs, {} ({} registers a work-item)",
                                 c.large_register_tiles() ? "tiles of up to 128 results"
                                 : c.register_tiles()     ? "tiles of up to 64 results"
                                                          : "tiles in local memory",
                                 c.item_registers);
  if (c.steps_at_once < kAllSteps) text += fmt::format(", loops by {} steps", c.steps_at_once);
  if (!c.indexed_structures) text += ", parameters without an index";
  if (!c.structs_by_value) text += ", parameters in buffers";
  if (!c.trusted_compiler) text += ", programs by builders first";
  if (const std::string known = profile_of(c.name); !known.empty())
    text += fmt::format("; {}: its row of plugin/opencl/DEVICES.md", known);
  return text;
}

DeviceList build() {
  DeviceList list;
  try {
    (void)cl();
    note_driver_loaded();
    const DriverVariables kept;
    auto chosen = divide_cpus(
        select(enumerate(list.report), config::get_string(config::Knob::Devices), list.report),
        list.report);
    for (Candidate& c : chosen)
      list.devices.push_back(std::make_unique<Device>(static_cast<int>(list.devices.size()),
                                                      c.platform(), c.device(), std::move(c.caps)));
    for (const auto& device : list.devices)
      list.report += fmt::format("ocl:{}: {}\n", device->index(), kernels_for(device->caps()));
  } catch (const Error& e) {
    list.report += std::string(e.what()) + "\n";
  }
  logging::debug("device", "{} device(s)\n{}", list.devices.size(), list.report);
  return list;
}

}  // namespace

const DeviceList& device_list() {
  check_process();
  static const DeviceList& list =
      *new DeviceList(build());  // leaked: drivers crash in exit handlers
  return list;
}

Device& device(int index) {
  const DeviceList& list = device_list();
  if (list.devices.empty())
    fail(TB_E_UNAVAILABLE, "there is no usable OpenCL device:\n{}", list.report);
  check(index >= 0 && static_cast<size_t>(index) < list.devices.size(),
        "there is no device {}: expected 0 to {}", index, list.devices.size() - 1);
  return *list.devices[static_cast<size_t>(index)];
}

}  // namespace ocltensor::opencl
