// Numbers of several ranks combined on the host, in the order of the ranks.
#pragma once

#include <cstddef>
#include <vector>

#include "engine.h"

namespace torch_ocl::distributed {

size_t size_of(Number type);

// result[i] = (inputs[0][i] * factor  how  inputs[1][i] * factor ...) / divisor. Numbers of 16 bits
// are computed in float32 and rounded once, integers in 64 bits and divided towards zero. `result`
// may be one of the inputs.
void combine(Number type, const Formula& formula, const std::vector<const std::byte*>& inputs,
             Span result);

}  // namespace torch_ocl::distributed
