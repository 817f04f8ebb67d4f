// The products of a layer of a network, for kernels of matrix units that are specialised by them.
#pragma once

#include <cstdint>

namespace ocltensor::opencl::matmul {

// Which operands have lines along k, whether something is added to the product, and whether k is
// cut into pieces.
struct LayerForm {
  bool a_along_k, b_along_k, self;
  int64_t pieces;
};
// Forward with and without bias, the gradient of the input, and that of the weight, whose sums are
// long.
inline constexpr LayerForm kLayerForms[] = {{true, true, true, 1},   {true, true, false, 1},
                                            {true, false, false, 1}, {false, false, false, 1},
                                            {true, false, false, 2}, {false, false, false, 2}};

}  // namespace ocltensor::opencl::matmul
