// How tensors are printed: Tensor::text(), and << to a stream.
#pragma once

#include <cstdint>

#include "ocltensor/api.h"

namespace ocltensor {

struct PrintOptions {
  int precision = 6;         // significant digits of floating-point numbers; at least 1
  int64_t threshold = 1000;  // of tensors with more elements only the edges are printed
  int64_t edge = 3;          // elements at each end of a dimension then
};

// Of this thread. TB_E_INVALID for numbers that are not positive.
OCLTENSOR_API PrintOptions print_options() noexcept;
OCLTENSOR_API void set_print_options(const PrintOptions& options);

}  // namespace ocltensor
