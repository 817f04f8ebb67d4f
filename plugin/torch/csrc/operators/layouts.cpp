// Strides of results over PyTorch's tensors.
#include "layouts.h"

#include <ATen/native/Resize.h>

#include <array>

#include "base/iteration.h"

namespace torch_ocl {
namespace {

ocltensor::Strided strided(const at::Tensor& t) {
  return {{t.sizes().data(), t.sizes().size()}, {t.strides().data(), t.strides().size()}};
}

}  // namespace

ocltensor::Dims strides_of_both(const at::Tensor& a, const at::Tensor& b, at::IntArrayRef sizes) {
  const std::array operands{strided(a), strided(b)};
  return ocltensor::elementwise_strides({sizes.data(), sizes.size()}, operands);
}

void resize_given(const at::Tensor& out, at::IntArrayRef sizes, const ocltensor::Dims& strides) {
  if (at::native::resize_output(out, sizes) && !strides.empty())
    out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, {strides.data(), strides.size()});
}

}  // namespace torch_ocl
