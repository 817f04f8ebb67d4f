// PyTorch generators over the plugin's Philox generators.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

#include "plugin.h"

namespace torch_ocl {

at::Generator make_generator(c10::DeviceIndex index);
// The plugin's handle of `generator`, or of the device's default one. A generator of another device
// is an error.
tb_generator generator_handle(const std::optional<at::Generator>& generator,
                              c10::DeviceIndex index);

// The random numbers of a kernel: seed and offset at which it starts. `count` counter blocks of the
// device's default generator are reserved for it.
struct PhiloxNumbers {
  uint64_t seed, offset;
};
PhiloxNumbers take_numbers(c10::DeviceIndex index, uint64_t count);

}  // namespace torch_ocl
