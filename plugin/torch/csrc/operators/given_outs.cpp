// Out forms whose result takes its shape or its type from the tensor that the caller gives.
#include <ATen/native/Resize.h>

#include "kernel.h"

namespace torch_ocl {
namespace {

// ---- a sequence keeps the shape of a tensor with as many elements

// `write` makes the sequence in a tensor with one dimension.
template <typename Write>
at::Tensor& in_shape_of(at::Tensor& out, const Write& write) {
  if (out.dim() == 1) return write(out);
  at::Tensor numbers = at::empty({0}, out.options());
  write(numbers);
  if (out.numel() == numbers.numel()) return out.copy_(numbers.view(out.sizes()));
  at::native::resize_output(out, numbers.sizes());
  return out.copy_(numbers);
}

// For int64 outputs start, end and step are converted to integers first; for other types the length
// follows from the numbers as given.
PluginOperator plugin_arange("arange.start_out");
at::Tensor& arange_out(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step,
                       at::Tensor& out) {
  using Kernel = Out<at::_ops::arange_start_out, plugin_arange>;
  TORCH_CHECK_VALUE(!at::isIntegralType(out.scalar_type(), false) || step.to<int64_t>() != 0,
                    "step must be nonzero after conversion to the output's dtype, got ", step,
                    " for ", out.scalar_type());
  return in_shape_of(out, [&](at::Tensor& line) -> at::Tensor& {
    if (out.scalar_type() != at::kLong) return Kernel::call(start, end, step, line);
    return Kernel::call(start.to<int64_t>(), end.to<int64_t>(), step.to<int64_t>(), line);
  });
}

PluginOperator plugin_linspace("linspace.out");
at::Tensor& linspace_out(const at::Scalar& start, const at::Scalar& end, int64_t steps,
                         at::Tensor& out) {
  return in_shape_of(out, [&](at::Tensor& line) -> at::Tensor& {
    return Out<at::_ops::linspace_out, plugin_linspace>::call(start, end, steps, line);
  });
}

// ---- running sums and products are of the tensor's type, unless another is asked for
PluginOperator plugin_cumsum("cumsum.out");
at::Tensor& cumsum_out(const at::Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype,
                       at::Tensor& out) {
  return Out<at::_ops::cumsum_out, plugin_cumsum>::call(self, dim,
                                                        dtype.value_or(out.scalar_type()), out);
}
PluginOperator plugin_cumprod("cumprod.out");
at::Tensor& cumprod_out(const at::Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype,
                        at::Tensor& out) {
  return Out<at::_ops::cumprod_out, plugin_cumprod>::call(self, dim,
                                                          dtype.value_or(out.scalar_type()), out);
}

// ---- zeros and ones are of any type
at::Tensor& bernoulli_out(const at::Tensor& self, std::optional<at::Generator> generator,
                          at::Tensor& out) {
  at::native::resize_output(out, self.sizes());
  return out.bernoulli_(self, std::move(generator));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("arange.start_out", TORCH_FN(arange_out));
  m.impl("linspace.out", TORCH_FN(linspace_out));
  m.impl("cumsum.out", TORCH_FN(cumsum_out));
  m.impl("cumprod.out", TORCH_FN(cumprod_out));
  m.impl("bernoulli.out", TORCH_FN(bernoulli_out));
}

}  // namespace torch_ocl
