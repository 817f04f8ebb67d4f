// Changes in place of tensors that repeat elements (expanded ones), where ATen takes them: an
// element changes if any of its repetitions does. Where the result would depend on the order of
// the repetitions (addmv_, baddbmm_), the plugin refuses them, as it does wherever ATen does.
#include "operators/repeated.h"

#include <numeric>

#include "composite.h"
#include "operators/register_kernels.h"

namespace torch_ocl {
namespace {

using OptionalTensors = c10::List<std::optional<at::Tensor>>;

void warn(const char* name) {
  TORCH_WARN("Use of ", name,
             " on expanded tensors is deprecated: clone() the tensor before this operation.");
}

std::vector<int64_t> repeated_dims(const at::Tensor& tensor) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (repeats(tensor, d)) dims.push_back(d);
  return dims;
}

// ---- fills of masked elements

template <typename Value>
at::Tensor& fill_any(at::Tensor& self, const at::Tensor& mask, const Value& value) {
  TORCH_CHECK(mask.scalar_type() == at::kBool,
              "masked_fill_ only supports boolean masks, but got mask with dtype ",
              mask.scalar_type());
  const std::vector<int64_t> dims = repeated_dims(self);
  unrepeated(self).masked_fill_(mask.expand(self.sizes()).any(dims, true), value);
  return self;
}

PluginOperator plugin_fill_scalar("masked_fill.Scalar_out");
at::Tensor& masked_fill_scalar_(at::Tensor& self, const at::Tensor& mask, const at::Scalar& value) {
  if (!has_repeats(self))
    return InPlace<at::_ops::masked_fill__Scalar, plugin_fill_scalar>::call(self, mask, value);
  warn("masked_fill_");
  return fill_any(self, mask, value);
}

PluginOperator plugin_fill_tensor("masked_fill.Tensor_out");
at::Tensor& masked_fill_tensor_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& value) {
  if (!has_repeats(self))
    return InPlace<at::_ops::masked_fill__Tensor, plugin_fill_tensor>::call(self, mask, value);
  warn("masked_fill_");
  return fill_any(self, mask, value);
}

// ---- triangles: what one repetition sets to zero is zero

at::Tensor places(const at::Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "triangles need a tensor with at least 2 dimensions, got ",
              self.dim());
  return at::ones({self.size(-2), self.size(-1)}, self.options().dtype(at::kBool));
}

at::Tensor& tril_(at::Tensor& self, c10::SymInt diagonal) {
  if (!has_repeats(self)) return at::tril_out(self, self, plain(diagonal));
  return fill_any(self, places(self).triu_(plain(diagonal) + 1), 0);
}

at::Tensor& triu_(at::Tensor& self, c10::SymInt diagonal) {
  if (!has_repeats(self)) return at::triu_out(self, self, plain(diagonal));
  return fill_any(self, places(self).tril_(plain(diagonal) - 1), 0);
}

// ---- a threshold gives the same when it is applied again

at::Tensor& threshold_(at::Tensor& self, const at::Scalar& threshold, const at::Scalar& value) {
  at::Tensor once = unrepeated(self);
  at::threshold_out(once, once, threshold, value);
  return self;
}

// ---- indices: numbers for one element are added; otherwise the last one stays

at::Tensor sum_of_repetitions(const at::Tensor& numbers, at::IntArrayRef dims) {
  if (numbers.scalar_type() == at::kBool) return numbers.any(dims, true);
  return numbers.sum(dims, true, numbers.scalar_type());
}

// The last repetition that was written, for each element.
at::Tensor chosen(const at::Tensor& self, at::IntArrayRef dims, const OptionalTensors& indices,
                  const at::Tensor& values) {
  at::Tensor numbers = self.contiguous();
  at::_index_put_impl_(numbers, indices, values, false, false);
  at::Tensor written = at::zeros(self.sizes(), self.options().dtype(at::kBool));
  at::_index_put_impl_(written, indices, at::ones({}, written.options()), false, false);
  const int64_t first = self.dim() - static_cast<int64_t>(dims.size());
  std::vector<int64_t> last(dims.size());
  std::iota(last.begin(), last.end(), first);
  const at::Tensor which =
      written.movedim(dims, last).flatten(first).flip(-1).to(at::kByte).argmax(-1, true);
  return numbers.movedim(dims, last).flatten(first).flip(-1).gather(-1, which).squeeze(-1);
}

PluginOperator plugin_index_put("_index_put_impl.out");
at::Tensor& index_put_impl_(at::Tensor& self, const OptionalTensors& indices,
                            const at::Tensor& values, bool accumulate, bool unsafe) {
  using Kernel = InPlace<at::_ops::_index_put_impl_, plugin_index_put>;
  if (!has_repeats(self)) return Kernel::call(self, indices, values, accumulate, unsafe);
  warn("index_put_");
  const std::vector<int64_t> dims = repeated_dims(self);
  at::Tensor once = unrepeated(self);
  if (accumulate) {
    at::Tensor added = at::zeros(self.sizes(), self.options());
    at::_index_put_impl_(added, indices, values, true, unsafe);
    once.add_(sum_of_repetitions(added, dims));
  } else {
    once.copy_(chosen(self, dims, indices, values).view(once.sizes()));
  }
  return self;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("masked_fill_.Scalar", TORCH_FN(masked_fill_scalar_));
  m.impl("masked_fill_.Tensor", TORCH_FN(masked_fill_tensor_));
  m.impl("tril_", TORCH_FN(tril_));
  m.impl("triu_", TORCH_FN(triu_));
  m.impl("threshold_", TORCH_FN(threshold_));
  m.impl("_index_put_impl_", TORCH_FN(index_put_impl_));
}

}  // namespace torch_ocl
