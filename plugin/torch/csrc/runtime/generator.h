// PyTorch generators over the plugin's Philox generators.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

#include "plugin.h"

namespace torch_ocl {

// Seeded by seed_all() if that was called before, else at random.
const at::Generator& default_generator(c10::DeviceIndex index);
// Seeds the default generators of all devices, also of those not used yet; opens no device.
void seed_all(uint64_t seed);
at::Generator make_generator(c10::DeviceIndex index);
// The plugin's handle of a given generator, or of the device's default one. A generator of another
// device is an error.
tb_generator generator_handle(const std::optional<at::Generator>& generator,
                              c10::DeviceIndex index);

// Where a kernel's random numbers start, and the counters it was promised: `count` counter blocks
// of the device's default generator, which then goes on behind them.
struct PhiloxNumbers {
  uint64_t seed, offset;
};
PhiloxNumbers take_numbers(c10::DeviceIndex index, uint64_t count);

}  // namespace torch_ocl
