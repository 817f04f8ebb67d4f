// Devices: "cpu", and the device types of plugins ("ocl"). Every function here is thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ocltensor/api.h"
#include "tensor_backend/plugin.h"

namespace ocltensor {

// A device type and an index, as small as an int. Naming a plugin's type loads the plugin.
class OCLTENSOR_API Device {
 public:
  Device() = default;  // "cpu"
  // "cpu", "ocl" (the thread's current device of that type) or "ocl:1". Error TB_E_INVALID for
  // another text and for an index beyond the last device; TB_E_UNAVAILABLE, with the reason, if
  // there is no plugin for the type or it has no device.
  Device(const char* text) : Device(std::string_view(text)) {}  // NOLINT: implicit on purpose
  Device(std::string_view text);                                // NOLINT
  Device(std::string_view type, int index);                     // the same errors
  std::string_view type() const;
  int index() const { return index_; }
  bool is_cpu() const { return backend_ == 0; }
  std::string text() const;  // "ocl:0"; "cpu"
  friend bool operator==(Device, Device) = default;

  uint8_t backend() const { return backend_; }  // position in the registry
  static Device from_backend(uint8_t backend, int index) {
    Device d;
    d.backend_ = backend;
    d.index_ = static_cast<int16_t>(index);
    return d;
  }

 private:
  uint8_t backend_ = 0;
  int16_t index_ = 0;
};

// These three never throw. Without a driver, device or plugin they give 0, false and the reason;
// the reason is empty if there is a device.
OCLTENSOR_API int device_count(std::string_view type = "ocl") noexcept;
OCLTENSOR_API bool is_available(std::string_view type = "ocl") noexcept;
OCLTENSOR_API std::string unavailable_reason(std::string_view type = "ocl") noexcept;
// The backend's text about the drivers and devices that it found or refused.
OCLTENSOR_API std::string device_report(std::string_view type = "ocl");

OCLTENSOR_API tb_device_properties device_properties(Device device);
// Operators, launches, copies and program builds of the device's backend since the process began.
OCLTENSOR_API tb_counters counters(Device device);
// The index that "ocl" without one means in this thread; 0 at first.
OCLTENSOR_API int current_device(std::string_view type = "ocl");
OCLTENSOR_API void set_current_device(Device device);
// Waits for all streams of the device. Raises an asynchronous failure; its text names the kernel.
OCLTENSOR_API void synchronize(Device device);

// Loads the plugin at an absolute path now, and returns its device type. Error TB_E_UNAVAILABLE,
// with the reason, if the file is refused; TB_E_INVALID if another plugin has the type. Plugins are
// never unloaded.
OCLTENSOR_API std::string load_plugin(const std::string& path);
// Of the backends loaded so far, "cpu" first. The first use of another type (Device("ocl"),
// is_available("ocl")) loads all of OCLTENSOR_PLUGIN_PATH, and ocltensor's own if that type lacks.
OCLTENSOR_API std::vector<std::string> device_types();

}  // namespace ocltensor

// The CPU backend's tables, for tests that compare backends through the C ABI.
extern "C" OCLTENSOR_API const tb_api* ocltensor_cpu_api(void);
