// The products of a layer of a network, for kernels of matrix units that are specialised by them.
#pragma once

namespace ocltensor::opencl::matmul {

// Which operands have lines along k, and whether something is added to the product.
struct LayerForm {
  bool a_along_k, b_along_k, self;
};
// Forward with and without bias, the gradient of the input, and that of the weight.
inline constexpr LayerForm kLayerForms[] = {
    {true, true, true}, {true, true, false}, {true, false, false}, {false, false, false}};

}  // namespace ocltensor::opencl::matmul
