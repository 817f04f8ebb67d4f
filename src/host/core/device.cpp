// Devices of the registered backends.
#include "ocltensor/device.h"

#include <fmt/format.h>

#include <charconv>

#include "backend.h"
#include "loader/loader.h"

namespace ocltensor {
namespace {

thread_local int16_t current[kMaxBackends] = {};

Backend& required(std::string_view type) {
  std::string reason;
  Backend* b = find_or_load_backend(type, &reason);
  if (b == nullptr) throw Error(TB_E_UNAVAILABLE, TB_REASON_NONE, reason);
  return *b;
}

int16_t checked_index(const Backend& b, int index) {
  const int count = b.device_count();
  if (count == 0)
    fail(TB_E_UNAVAILABLE, "there is no '{}' device: {}", b.type, unavailable_reason(b.type));
  check(index >= 0 && index < count, "device {}:{} does not exist: there are {} {} device(s)",
        b.type, index, count, b.type);
  return static_cast<int16_t>(index);
}

std::string report_of(const Backend& b) {
  std::string text(b.api->device->report(nullptr, 0) + 1, '\0');
  b.api->device->report(text.data(), text.size());
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  return text;
}

}  // namespace

Device::Device(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view type = text.substr(0, colon);
  check(!type.empty(), "'{}' names no device: expected a type and an index, as in 'ocl:0'", text);
  int index = -1;
  if (colon != std::string_view::npos) {
    const std::string_view digits = text.substr(colon + 1);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    check(!digits.empty() && parsed.ec == std::errc() && index >= 0 &&
              parsed.ptr == digits.data() + digits.size(),
          "'{}' names no device: expected a type and an index, as in 'ocl:0'", text);
  }
  if (type == "cpu" && index <= 0) return;
  const Backend& b = required(type);
  backend_ = b.id;
  index_ = checked_index(b, index < 0 ? current[b.id] : index);
}

Device::Device(std::string_view type, int index) {
  if (type == "cpu" && index == 0) return;
  const Backend& b = required(type);
  backend_ = b.id;
  index_ = checked_index(b, index);
}

std::string_view Device::type() const { return ocltensor::backend(backend_).type; }

std::string Device::text() const { return is_cpu() ? "cpu" : fmt::format("{}:{}", type(), index_); }

int device_count(std::string_view type) noexcept {
  try {
    std::string reason;
    const Backend* b = find_or_load_backend(type, &reason);
    return b == nullptr ? 0 : b->device_count();
  } catch (...) {
    return 0;  // unavailable_reason() has the text
  }
}

bool is_available(std::string_view type) noexcept { return device_count(type) > 0; }

std::string unavailable_reason(std::string_view type) noexcept {
  try {
    std::string reason;
    const Backend* b = find_or_load_backend(type, &reason);
    if (b == nullptr) return reason;
    if (b->device_count() > 0) return {};
    const std::string report = report_of(*b);
    return report.empty() ? "the plugin found no device" : report;
  } catch (const std::exception& e) {
    try {
      return e.what();
    } catch (...) {
    }
  } catch (...) {  // NOLINT: nothing more can be said
  }
  return {};
}

std::string device_report(std::string_view type) { return report_of(required(type)); }

tb_device_properties device_properties(Device device) {
  tb_device_properties p{};
  p.struct_size = sizeof p;
  invoke_api("device properties", backend(device).api->device->properties,
             static_cast<int32_t>(device.index()), &p);
  return p;
}

tb_counters counters(Device device) {
  tb_counters c{};
  c.struct_size = sizeof c;
  invoke_api("counters", backend(device).api->profiler->counters, &c);
  return c;
}

int current_device(std::string_view type) { return current[required(type).id]; }

void set_current_device(Device device) {
  current[device.backend()] = static_cast<int16_t>(device.index());
}

void synchronize(Device device) {
  invoke_api("synchronize", backend(device).api->device->synchronize,
             static_cast<int32_t>(device.index()));
}

std::string load_plugin(const std::string& path) {
  const LoadedPlugin plugin = load_plugin_file(path);
  if (!plugin) fail(TB_E_UNAVAILABLE, "the plugin {}", plugin.refusal);
  const Backend* known = find_backend(plugin.descriptor->device_type);
  if (known == nullptr)
    register_backend(plugin.descriptor->device_type, plugin.api, plugin.path);
  else
    check(known->api == plugin.api, "device type '{}' is already served by '{}'", known->type,
          known->path.empty() ? "the host" : known->path);
  return plugin.descriptor->device_type;
}

std::vector<std::string> device_types() {
  std::vector<std::string> types;
  types.reserve(static_cast<size_t>(backend_count()));
  for (int i = 0; i < backend_count(); ++i) types.push_back(backend(static_cast<uint8_t>(i)).type);
  return types;
}

}  // namespace ocltensor
