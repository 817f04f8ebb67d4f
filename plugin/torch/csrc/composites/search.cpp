// searchsorted, bucketize and the helpers of cummax and cummin: the plugin's operators with
// arguments in ATen's order.
#include <ATen/native/BucketizationUtils.h>
#include <torch/library.h>

#include "composite.h"
#include "operators/operator.h"

namespace torch_ocl {
namespace {

using Side = std::optional<c10::string_view>;

// `self` may be a wrapped number: both tensors are converted to their common type.
at::Tensor& search(const at::Tensor& sequence, const at::Tensor& self, bool out_int32, bool right,
                   Side side, const std::optional<at::Tensor>& sorter, at::Tensor& out) {
  static PluginOperator& op = *new PluginOperator("searchsorted.Tensor_out");
  at::native::searchsorted_pre_check(sequence, self, out, out_int32, right, side,
                                     sorter.value_or(at::Tensor()));
  const at::ScalarType type = at::result_type(sequence, self);
  const at::Tensor sorted = sequence.to(type);
  const at::Tensor values = self.to(type);
  const std::optional<at::Tensor> order =
      sorter.has_value() && sorter->defined() ? sorter : std::nullopt;
  at::Tensor outs[] = {out};
  call_plugin_out(op, outs, sorted, values, out_int32, right, side, order);
  return out;
}

at::Tensor new_places(const at::Tensor& sequence, bool out_int32) {
  return at::empty({0}, sequence.options().dtype(out_int32 ? at::kInt : at::kLong));
}

at::Tensor number(const at::Scalar& value, const at::Tensor& beside) {
  at::Tensor tensor = at::scalar_tensor(value, beside.options().dtype(value.type()));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor& searchsorted_out(const at::Tensor& sequence, const at::Tensor& self, bool out_int32,
                             bool right, Side side, const std::optional<at::Tensor>& sorter,
                             at::Tensor& out) {
  return search(sequence, self, out_int32, right, side, sorter, out);
}
at::Tensor searchsorted(const at::Tensor& sequence, const at::Tensor& self, bool out_int32,
                        bool right, Side side, const std::optional<at::Tensor>& sorter) {
  at::Tensor out = new_places(sequence, out_int32);
  return search(sequence, self, out_int32, right, side, sorter, out);
}
at::Tensor& searchsorted_scalar_out(const at::Tensor& sequence, const at::Scalar& self,
                                    bool out_int32, bool right, Side side,
                                    const std::optional<at::Tensor>& sorter, at::Tensor& out) {
  return search(sequence, number(self, sequence), out_int32, right, side, sorter, out);
}
at::Tensor searchsorted_scalar(const at::Tensor& sequence, const at::Scalar& self, bool out_int32,
                               bool right, Side side, const std::optional<at::Tensor>& sorter) {
  at::Tensor out = new_places(sequence, out_int32);
  return search(sequence, number(self, sequence), out_int32, right, side, sorter, out);
}

at::Tensor& bucketize_out(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32,
                          bool right, at::Tensor& out) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(",
              boundaries.dim(), ")");
  return search(boundaries, self, out_int32, right, std::nullopt, std::nullopt, out);
}
at::Tensor bucketize(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32,
                     bool right) {
  at::Tensor out = new_places(boundaries, out_int32);
  return bucketize_out(self, boundaries, out_int32, right, out);
}
at::Tensor bucketize_scalar(const at::Scalar& self, const at::Tensor& boundaries, bool out_int32,
                            bool right) {
  return at::bucketize(number(self, boundaries), boundaries, out_int32, right);
}

void extremes(PluginOperator& op, const at::Tensor& self, at::Tensor& values, at::Tensor& indices,
              int64_t dim) {
  at::Tensor outs[] = {values, indices};
  call_plugin_out(op, outs, self, dim);
}
void cummax_helper(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t dim) {
  static PluginOperator& op = *new PluginOperator("cummax.out");
  extremes(op, self, values, indices, dim);
}
void cummin_helper(const at::Tensor& self, at::Tensor& values, at::Tensor& indices, int64_t dim) {
  static PluginOperator& op = *new PluginOperator("cummin.out");
  extremes(op, self, values, indices, dim);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("searchsorted.Tensor", TORCH_FN(searchsorted));
  m.impl("searchsorted.Tensor_out", TORCH_FN(searchsorted_out));
  m.impl("searchsorted.Scalar", TORCH_FN(searchsorted_scalar));
  m.impl("searchsorted.Scalar_out", TORCH_FN(searchsorted_scalar_out));
  m.impl("bucketize.Tensor", TORCH_FN(bucketize));
  m.impl("bucketize.Tensor_out", TORCH_FN(bucketize_out));
  m.impl("bucketize.Scalar", TORCH_FN(bucketize_scalar));
  m.impl("_cummax_helper", TORCH_FN(cummax_helper));
  m.impl("_cummin_helper", TORCH_FN(cummin_helper));
}

}  // namespace torch_ocl
