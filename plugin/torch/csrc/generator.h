// PyTorch generators over the plugin's Philox generators.
#pragma once

#include <ATen/core/Generator.h>

#include <optional>

#include "plugin.h"

namespace torch_ocl {

const at::Generator& default_generator(c10::DeviceIndex index);
at::Generator make_generator(c10::DeviceIndex index);
// The plugin's handle of a given generator, or of the device's default one. A generator of another
// device type is an error.
tb_generator generator_handle(const std::optional<at::Generator>& generator,
                              c10::DeviceIndex index);

}  // namespace torch_ocl
