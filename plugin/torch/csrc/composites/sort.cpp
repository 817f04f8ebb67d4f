// ATen's order statistics and unique elements, composed of the plugin's sort, gather and scans.
#include <ATen/native/ReduceOpsUtils.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>

#include "composite.h"
#include "operators/register_kernels.h"

namespace torch_ocl {
namespace {

using Two = std::tuple<at::Tensor, at::Tensor>;
using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::Tensor median_of_all(const at::Tensor& self, bool skip_nan) {
  if (self.numel() == 0)
    return at::full({}, std::numeric_limits<float>::quiet_NaN()).to(self.options());
  const at::Tensor row = self.reshape({-1});
  return std::get<0>(skip_nan ? at::nanmedian(row, 0, false) : at::median(row, 0, false));
}
at::Tensor median(const at::Tensor& self) { return median_of_all(self, false); }
at::Tensor nanmedian(const at::Tensor& self) { return median_of_all(self, true); }

// True where an element of a sorted row differs from its left neighbour.
at::Tensor begins_of_runs(const at::Tensor& sorted, int64_t dim) {
  const int64_t n = sorted.size(dim);
  at::Tensor begins = at::ones(sorted.sizes(), sorted.options().dtype(at::kBool));
  if (n > 1)
    begins.narrow(dim, 1, n - 1)
        .copy_(sorted.narrow(dim, 1, n - 1).ne(sorted.narrow(dim, 0, n - 1)));
  return begins;
}

PluginOperator plugin_mode("mode.values");
Two mode(const at::Tensor& self, int64_t dim, bool keepdim) {
  at::native::zero_numel_check_dims(self, at::maybe_wrap_dim(dim, self.dim()), "mode()");
  return Functional<at::_ops::mode, plugin_mode>::call(self, dim, keepdim);
}

// The results of unique for runs of equal rows. `order` has the rows' positions in the input
// (undefined: already in order). Results: the rows that begin a run, the run of every input row,
// and the lengths.
struct Runs {
  at::Tensor begins, inverse, counts;
};

Runs describe_runs(const at::Tensor& begins, const at::Tensor& order, bool inverse, bool counts) {
  const int64_t n = begins.size(0);
  const auto numbers = begins.options().dtype(at::kLong);
  Runs runs{begins.nonzero().squeeze(1), at::empty({0}, numbers), at::empty({0}, numbers)};
  if (inverse) {
    const at::Tensor run = begins.cumsum(0).sub_(1);
    runs.inverse = order.defined() ? at::empty({n}, numbers).scatter_(0, order, run) : run;
  }
  if (counts) {
    const int64_t found = runs.begins.size(0);
    at::Tensor ends = at::full({found}, n, numbers);
    if (found > 1) ends.narrow(0, 0, found - 1).copy_(runs.begins.narrow(0, 1, found - 1));
    runs.counts = ends.sub_(runs.begins);
  }
  return runs;
}

Three unique_flat(const at::Tensor& self, bool sort, bool inverse, bool counts) {
  const auto numbers = self.options().dtype(at::kLong);
  if (self.numel() == 0)
    return {at::empty({0}, self.options()),
            inverse ? at::empty(self.sizes(), numbers) : at::empty({0}, numbers),
            at::empty({0}, numbers)};
  at::Tensor flat = self.reshape({-1});
  at::Tensor order;
  if (sort) std::tie(flat, order) = at::sort(flat, true, 0, false);
  const Runs runs = describe_runs(begins_of_runs(flat, 0), order, inverse, counts);
  return {flat.index_select(0, runs.begins),
          inverse ? runs.inverse.view(self.sizes()) : runs.inverse, runs.counts};
}

Three unique2(const at::Tensor& self, bool, bool inverse, bool counts) {
  return unique_flat(self, true, inverse, counts);
}
Two unique(const at::Tensor& self, bool, bool inverse) {
  const auto [values, places, counts] = unique_flat(self, true, inverse, false);
  return {values, places};
}

// The permutation that sorts rows lexicographically: stable sorts by every column, the last column
// first.
at::Tensor order_of_rows(const at::Tensor& rows) {
  at::Tensor order = at::arange(rows.size(0), rows.options().dtype(at::kLong));
  for (int64_t column = rows.size(1) - 1; column >= 0; --column) {
    const at::Tensor keys = rows.select(1, column).index_select(0, order);
    order = order.index_select(0, std::get<1>(at::sort(keys, true, 0, false)));
  }
  return order;
}

Three unique_rows(const at::Tensor& self, int64_t dim, bool sort, bool inverse, bool counts) {
  dim = at::maybe_wrap_dim(dim, self.dim());
  const at::IntArrayRef sizes = self.sizes();
  const auto zeros = std::count(sizes.begin(), sizes.end(), int64_t{0});
  const auto numbers = self.options().dtype(at::kLong);
  if (self.dim() > 0 && self.size(dim) == 0) {
    TORCH_CHECK(zeros == 1,
                "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    return {at::empty(sizes, self.options()), at::empty({0}, numbers), at::empty({0}, numbers)};
  }
  TORCH_CHECK(zeros == 0,
              "There are 0 sized dimensions, and they aren't selected, so unique cannot be "
              "applied");
  const at::Tensor front = at_least_1d(self).movedim(dim, 0).contiguous();
  const int64_t n = front.size(0);
  at::Tensor rows = front.view({n, -1});
  at::Tensor order;
  if (sort) {
    order = order_of_rows(rows);
    rows = rows.index_select(0, order);
  }
  at::Tensor begins = at::ones({n}, self.options().dtype(at::kBool));
  if (n > 1)
    begins.narrow(0, 1, n - 1).copy_(rows.narrow(0, 1, n - 1).ne(rows.narrow(0, 0, n - 1)).any(1));
  const Runs runs = describe_runs(begins, order, inverse, counts);
  std::vector<int64_t> shape = front.sizes().vec();
  shape[0] = runs.begins.size(0);
  const at::Tensor chosen = rows.index_select(0, runs.begins).view(shape).movedim(0, dim);
  return {chosen.contiguous(), runs.inverse, runs.counts};
}

Three unique_dim(const at::Tensor& self, int64_t dim, bool, bool inverse, bool counts) {
  return unique_rows(self, dim, true, inverse, counts);
}
Three unique_dim_consecutive(const at::Tensor& self, int64_t dim, bool inverse, bool counts) {
  return unique_rows(self, dim, false, inverse, counts);
}
Three unique_consecutive(const at::Tensor& self, bool inverse, bool counts,
                         std::optional<int64_t> dim) {
  if (dim.has_value()) return unique_rows(self, *dim, false, inverse, counts);
  return unique_flat(self, false, inverse, counts);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("median", TORCH_FN(median));
  m.impl("nanmedian", TORCH_FN(nanmedian));
  m.impl("mode", TORCH_FN(mode));
  register_out<mode>(m, "mode.values");
  m.impl("_unique2", TORCH_FN(unique2));
  m.impl("_unique", TORCH_FN(unique));
  m.impl("unique_dim", TORCH_FN(unique_dim));
  m.impl("unique_consecutive", TORCH_FN(unique_consecutive));
  m.impl("unique_dim_consecutive", TORCH_FN(unique_dim_consecutive));
}

}  // namespace torch_ocl
