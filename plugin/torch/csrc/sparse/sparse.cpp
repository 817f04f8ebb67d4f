// Positions, groups and compressed rows: see sparse.h.
#include "sparse.h"

#include <torch/version.h>

#include <numeric>

#include "operators/operator.h"

namespace torch_ocl::sparse {

Tensor flatten(const Tensor& indices, at::IntArrayRef sizes) {
  if (indices.size(0) == 0) return at::zeros({indices.size(1)}, indices.options());
  Tensor flat = indices.select(0, 0);
  for (int64_t d = 1; d < indices.size(0); ++d)
    flat = flat.mul(sizes[static_cast<size_t>(d)]).add_(indices.select(0, d));
  return flat;
}

Tensor positions_of(const Tensor& coo) {
  return flatten(coo._indices(), coo.sizes().slice(0, static_cast<size_t>(coo.sparse_dim())));
}

int64_t sparse_numel(const Tensor& coo) {
  const auto sizes = coo.sizes().slice(0, static_cast<size_t>(coo.sparse_dim()));
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

Found find_sorted(const Tensor& sorted, const Tensor& wanted) {
  if (sorted.numel() == 0)
    return {at::zeros_like(wanted), at::zeros_like(wanted, wanted.options().dtype(at::kBool))};
  const Tensor at = at::searchsorted(sorted, wanted).clamp_max_(sorted.numel() - 1);
  return {at, sorted.index_select(0, at).eq(wanted)};
}

Groups group_equal(const Tensor& keys) {
  const int64_t elements = keys.numel();
  const auto [sorted, order] = at::sort(keys, std::optional<bool>(true), 0);
  Tensor first = at::ones({elements}, keys.options().dtype(at::kBool));
  if (elements > 1)
    first.narrow(0, 1, elements - 1)
        .copy_(sorted.narrow(0, 1, elements - 1).ne(sorted.narrow(0, 0, elements - 1)));
  const Tensor starts = at::nonzero(first).squeeze(1);
  return {order, starts, starts.numel()};
}

Tensor numbers_of(const Groups& groups) {
  const int64_t elements = groups.order.numel();
  const Tensor places = at::arange(elements, groups.order.options());
  const Tensor sorted = at::searchsorted(groups.starts, places, false, /*right=*/true).sub_(1);
  return at::empty_like(groups.order).index_copy_(0, groups.order, sorted);
}

Tensor sum_groups(const Groups& groups, const Tensor& values) {
  const int64_t elements = groups.order.numel();
  if (groups.count == elements) return values.index_select(0, groups.order);
  std::vector<int64_t> sizes = values.sizes().vec();
  sizes[0] = groups.count;
  if (values.scalar_type() == at::kBool) return sum_groups(groups, values.to(at::kInt)).ne(0);
  const Tensor start = at::cat({groups.starts, at::full({1}, elements, groups.starts.options())});
  const Tensor ones = at::ones({elements}, values.options());
  const Rows rows{start, groups.order, ones};
  return multiply(rows, values.reshape({elements, values.numel() / elements})).reshape(sizes);
}

Tensor rows_from_start(const Tensor& start, int64_t entries) {
  const Tensor places = at::arange(entries, start.options());
  return at::searchsorted(start, places, start.scalar_type() == at::kInt, /*right=*/true).sub_(1);
}

Tensor start_from_rows(const Tensor& rows, int64_t count) {
  const Tensor numbers = at::arange(count + 1, rows.options());
  return at::searchsorted(rows.contiguous(), numbers, rows.scalar_type() == at::kInt);
}

Expanded expand_rows(const Tensor& start, const Tensor& rows) {
  const Tensor first = start.index_select(0, rows);
  const Tensor counts = start.index_select(0, rows.add(1)).sub_(first).to(at::kLong);
  const Tensor ends = counts.cumsum(0);
  const int64_t total = rows.numel() == 0 ? 0 : ends.select(0, -1).item<int64_t>();
  const Tensor places = at::arange(total, counts.options());
  const Tensor asked = at::searchsorted(ends, places, false, /*right=*/true);
  const Tensor before = ends.sub(counts).index_select(0, asked);
  return {asked, places.sub(before).add_(first.to(at::kLong).index_select(0, asked))};
}

Rows transposed(const Rows& rows, int64_t columns) {
  const auto [sorted, order] = at::sort(rows.columns, std::optional<bool>(true), 0);
  const Tensor origin = rows_from_start(rows.start, rows.values.numel());
  return {start_from_rows(sorted, columns), origin.index_select(0, order),
          rows.values.index_select(0, order)};
}

namespace {

Rows rows_of_coo(const Tensor& matrix) {
  const Tensor indices = matrix._indices();
  Tensor rows = indices.select(0, 0), columns = indices.select(0, 1), values = matrix._values();
  if (!matrix.is_coalesced()) {
    const auto [sorted, order] = at::sort(rows, std::optional<bool>(true), 0);
    rows = sorted;
    columns = columns.index_select(0, order);
    values = values.index_select(0, order);
  }
  return {start_from_rows(rows, matrix.size(0)), columns, values};
}

// The product where the plugin has no kernel for it: for the type, or because it is disabled.
Tensor composed_product(const Rows& rows, const Tensor& mat, c10::string_view reduce) {
  const Tensor place = rows_from_start(rows.start, rows.values.numel());
  const Tensor products = rows.values.unsqueeze(1) * mat.index_select(0, rows.columns);
  const Tensor out = at::zeros({rows.start.numel() - 1, mat.size(1)}, products.options());
  if (reduce == "sum") return out.index_add(0, place, products);
  return out.scatter_reduce(0, place.unsqueeze(1).expand_as(products), products, reduce, false);
}

}  // namespace

Rows rows_of(const Tensor& matrix) {
  if (matrix.layout() == at::kSparseCsr)
    return {matrix.crow_indices(), matrix.col_indices(), matrix.values()};
  return rows_of_coo(matrix.layout() == at::kSparse ? matrix : matrix.to_sparse());
}

Tensor multiply(const Rows& rows, const Tensor& mat, c10::string_view reduce) {
  static PluginOperator& op = *new PluginOperator("_ocl_csr_mm.out");
  if (mat.scalar_type() == at::kBool) {  // as ATen's kernels: the logical or of logical ands
    const Rows numbers{rows.start, rows.columns, rows.values.to(at::kInt)};
    return multiply(numbers, mat.to(at::kInt), reduce).ne(0);
  }
  std::array<Tensor, 1> out;
  return try_plugin(op, out, rows.values.resolve_conj().resolve_neg(), rows.start, rows.columns,
                    mat.resolve_conj().resolve_neg(), reduce)
             ? out[0]
             : composed_product(rows, mat, reduce);
}

Tensor make_coo(const Tensor& indices, const Tensor& values, at::IntArrayRef sizes,
                bool coalesced) {
  const int64_t sparse_dim = indices.size(0);
  return at::_sparse_coo_tensor_with_dims_and_tensors(
      sparse_dim, static_cast<int64_t>(sizes.size()) - sparse_dim, sizes, indices, values,
      values.options().layout(at::kSparse), coalesced);
}

Tensor make_csr(const Tensor& start, const Tensor& columns, const Tensor& values,
                at::IntArrayRef sizes) {
  return at::_sparse_csr_tensor_unsafe(start, columns, values, sizes,
                                       values.options().layout(at::kSparseCsr));
}

Tensor& deliver_coo(Tensor& out, const Tensor& result) {
  TORCH_CHECK(c10::canCast(result.scalar_type(), out.scalar_type()), "Can't convert result type ",
              result.scalar_type(), " to output ", out.scalar_type());
  at::SparseTensorImpl* const impl = at::sparse::get_sparse_impl(out);
  impl->raw_resize_(result.sparse_dim(), result.dense_dim(), result.sizes());
  impl->set_indices_and_values_unsafe(result._indices(), result._values().to(out.scalar_type()));
  return out._coalesced_(result.is_coalesced());
}

void check_device(const char* name, const Tensor& expected, const Tensor& other) {
  TORCH_CHECK(expected.device() == other.device(), name,
              ": Expected all tensors to be on the same device, but found at least two devices, ",
              expected.device(), " and ", other.device(), "!");
}

// Whether PyTorch begins these words with the operator's name.
constexpr bool kNamesOperator = TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 15;

void check_inner_sizes(const char* name, const Tensor& mat1, const Tensor& mat2) {
  TORCH_CHECK(mat1.size(1) == mat2.size(0), kNamesOperator ? name : "", kNamesOperator ? ": " : "",
              "mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x", mat1.size(1),
              " and ", mat2.size(0), "x", mat2.size(1), ")");
}

bool is_zero(const at::Scalar& factor) { return factor.equal(0); }

Tensor blend(const Tensor& self, Tensor product, const at::Scalar& beta, const at::Scalar& alpha) {
  if (!alpha.equal(1)) product.mul_(alpha);
  if (is_zero(beta)) return product;
  return beta.equal(1) ? product.add_(self) : product.add_(self, beta);
}

}  // namespace torch_ocl::sparse
