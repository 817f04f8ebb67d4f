// Options: dtype and device of a tensor that is made, and the thread's default device.
#pragma once

#include <optional>

#include "ocltensor/device.h"
#include "ocltensor/dtype.h"

namespace ocltensor {

// The device of tensors that are made without one, in this thread; the CPU at first.
OCLTENSOR_API Device default_device() noexcept;

// Another default device for this thread, until the end of the scope:
//   DefaultDevice on("ocl");
//   Tensor x = zeros({2, 3});
class OCLTENSOR_API DefaultDevice {
 public:
  explicit DefaultDevice(Device device) noexcept;
  ~DefaultDevice();
  DefaultDevice(const DefaultDevice&) = delete;
  DefaultDevice& operator=(const DefaultDevice&) = delete;

 private:
  Device before_;
};

// What a function that makes a tensor takes after its shape: a dtype, a device, both, or nothing.
//   zeros({2}); zeros({2}, DType::Int64); zeros({2}, "ocl"); zeros({2}, {DType::Int64, "ocl"});
// Not {.dtype = ...}: it has constructors, for the short forms.
struct Options {
  std::optional<DType> dtype;    // none: the function's own choice, float32 for most
  std::optional<Device> device;  // none: default_device()

  Options() = default;
  Options(DType type) : dtype(type) {}             // NOLINT: implicit on purpose, like the others
  Options(Device on) : device(on) {}               // NOLINT
  Options(const char* on) : device(Device(on)) {}  // NOLINT
  Options(std::string_view on) : device(Device(on)) {}  // NOLINT
  Options(std::optional<DType> type, Device on) : dtype(type), device(on) {}

  DType dtype_or(DType other) const { return dtype.value_or(other); }
  Device device_or_default() const { return device ? *device : default_device(); }
};

}  // namespace ocltensor
