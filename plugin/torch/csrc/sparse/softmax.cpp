// Softmax and log_softmax of COO tensors over one dimension: entries that are not stored do not
// take part.
#include "sparse.h"

namespace torch_ocl::sparse {
namespace {

// What is normalised together: a dimension of the values, or, along a sparse dimension, the entries
// whose other indices are equal.
struct Slices {
  int64_t dense = -1;  // the dimension of the values; -1: `number` says which group an entry is in
  Tensor number;       // [entries]
  int64_t count = 0;
};

Slices slices_of(const Tensor& self, int64_t dim) {
  const int64_t sparse_dim = self.sparse_dim();
  if (dim >= sparse_dim) return {.dense = dim - sparse_dim + 1};
  std::vector<int64_t> kept, sizes;
  for (int64_t d = 0; d < sparse_dim; ++d)
    if (d != dim) {
      kept.push_back(d);
      sizes.push_back(self.size(d));
    }
  if (kept.empty())
    return {.number = at::zeros({self._nnz()}, self._indices().options()), .count = 1};
  const Tensor rows = at::tensor(kept, at::kLong).to(self.device());
  const Groups groups = group_equal(flatten(self._indices().index_select(0, rows), sizes));
  return {.number = numbers_of(groups), .count = groups.count};
}

Tensor as_rows(const Tensor& values) {
  return values.reshape(
      {values.size(0), values.size(0) == 0 ? 0 : values.numel() / values.size(0)});
}

// The sum of each element's slice, at each element; of rows.
Tensor slice_sums(const Slices& slices, const Tensor& rows) {
  return at::zeros({slices.count, rows.size(1)}, rows.options())
      .index_add_(0, slices.number, rows)
      .index_select(0, slices.number);
}

Tensor forward_values(const Tensor& values, const Slices& slices, bool logarithm) {
  if (values.numel() == 0) return values.clone();
  if (slices.dense >= 0)
    return logarithm ? at::_log_softmax(values, slices.dense, false)
                     : at::_softmax(values, slices.dense, false);
  const Tensor rows = as_rows(values);
  const Tensor places = slices.number.unsqueeze(1).expand_as(rows);
  const Tensor largest = at::full({slices.count, rows.size(1)},
                                  -std::numeric_limits<double>::infinity(), rows.options())
                             .scatter_reduce_(0, places, rows, "amax")
                             .index_select(0, slices.number);
  const Tensor shifted = rows.sub(largest);
  const Tensor powers = shifted.exp();
  const Tensor sums = slice_sums(slices, powers);
  return (logarithm ? shifted.sub(sums.log()) : powers.div(sums)).view(values.sizes());
}

template <bool logarithm>
Tensor forward(const Tensor& self, int64_t dim, bool half_to_float) {
  TORCH_CHECK(!half_to_float, logarithm ? "log_softmax" : "softmax",
              ": with half to float conversion is not supported on ocl");
  dim = at::maybe_wrap_dim(dim, self.dim());
  const Tensor input = self.coalesce();
  const Tensor values = input._nnz() == 0
                            ? input._values().clone()
                            : forward_values(input._values(), slices_of(input, dim), logarithm);
  return make_coo(input._indices().clone(), values, input.sizes(), true);
}

Tensor backward_values(const Tensor& grad, const Tensor& output, const Slices& slices,
                       bool logarithm) {
  if (output.numel() == 0) return output.clone();
  if (slices.dense >= 0)
    return logarithm
               ? at::_log_softmax_backward_data(grad, output, slices.dense, output.scalar_type())
               : at::_softmax_backward_data(grad, output, slices.dense, output.scalar_type());
  const Tensor g = as_rows(grad), y = as_rows(output);
  const Tensor result = logarithm ? g.sub(y.exp().mul(slice_sums(slices, g)))
                                  : y.mul(g.sub(slice_sums(slices, g.mul(y))));
  return result.view(output.sizes());
}

template <bool logarithm>
Tensor backward(const Tensor& grad, const Tensor& output, int64_t dim, const Tensor& self) {
  TORCH_CHECK(grad.sizes() == self.sizes(), logarithm ? "log_softmax" : "softmax",
              "_backward: 'grad' has size ", grad.sizes(), " but 'input' has size ", self.sizes());
  dim = at::maybe_wrap_dim(dim, self.dim());
  const Tensor result = output.coalesce();
  // What the gradient does not store is 0.
  const Tensor slopes = grad.sparse_mask(result);
  const Tensor values = result._nnz() == 0 ? result._values().clone()
                                           : backward_values(slopes._values(), result._values(),
                                                             slices_of(result, dim), logarithm);
  return make_coo(result._indices().clone(), values, self.sizes(), true);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, SparsePrivateUse1, m) {
  m.impl("_sparse_softmax", TORCH_FN(forward<false>));
  m.impl("_sparse_log_softmax", TORCH_FN(forward<true>));
  m.impl("_sparse_softmax_backward_data", TORCH_FN(backward<false>));
  m.impl("_sparse_log_softmax_backward_data", TORCH_FN(backward<true>));
}

}  // namespace torch_ocl::sparse
