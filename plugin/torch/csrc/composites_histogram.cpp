// histogram and histogramdd: a binary search per dimension, and a sum at the places found.
#include <cmath>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;
using Weight = std::optional<Tensor>;
using Range = std::optional<at::ArrayRef<double>>;

// Points as rows.
Tensor rows_of(const Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  return self.reshape({-1, self.size(-1)});
}

// Bins of equal width over the range given, or over what the points cover.
std::vector<Tensor> make_edges(const Tensor& points, at::IntArrayRef bins, const Range& range) {
  const int64_t dims = points.size(1);
  TORCH_CHECK(static_cast<int64_t>(bins.size()) == dims, "torch.histogramdd: the size of bins (",
              bins.size(), ") does not fit the ", dims, " dimensions of the input");
  std::vector<double> low(bins.size(), 0), high(bins.size(), 1);
  if (range.has_value()) {
    TORCH_CHECK(range->size() == 2 * bins.size(), "torch.histogramdd: for a ", dims,
                "-dimensional histogram range should have ", 2 * dims, " elements, but got ",
                range->size());
    for (size_t d = 0; d < bins.size(); ++d)
      low[d] = (*range)[2 * d], high[d] = (*range)[2 * d + 1];
  } else if (points.size(0) > 0) {
    const Tensor ends = at::stack({points.amin(0), points.amax(0)}).to(at::kCPU).to(at::kDouble);
    for (size_t d = 0; d < bins.size(); ++d) {
      low[d] = ends[0][static_cast<int64_t>(d)].item<double>();
      high[d] = ends[1][static_cast<int64_t>(d)].item<double>();
    }
  }
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    TORCH_CHECK(bins[d] > 0, "torch.histogramdd(): bins must be > 0, but got ", bins[d]);
    TORCH_CHECK(std::isfinite(low[d]) && std::isfinite(high[d]), "torch.histogramdd(): dimension ",
                d, "'s range [", low[d], ", ", high[d], "] is not finite");
    TORCH_CHECK(low[d] <= high[d], "torch.histogramdd(): min should not exceed max, but got min ",
                low[d], " max ", high[d]);
    if (low[d] == high[d]) low[d] -= 0.5, high[d] += 0.5;
    edges.push_back(at::linspace(low[d], high[d], bins[d] + 1, points.options()));
  }
  return edges;
}

// A bin holds its left edge; the last one holds both.
Tensor count(const Tensor& points, at::TensorList edges, const Weight& weight, bool density) {
  TORCH_CHECK(static_cast<int64_t>(edges.size()) == points.size(1), "torch.histogramdd: expected ",
              points.size(1), " sequences of bin edges, but got ", edges.size());
  const bool weighted = weight.has_value() && weight->defined();
  TORCH_CHECK(!weighted || weight->numel() == points.size(0),
              "torch.histogramdd: weight should have one element per point, got shape ",
              weighted ? weight->sizes() : at::IntArrayRef());
  std::vector<int64_t> sizes;
  Tensor place = at::zeros({points.size(0)}, points.options().dtype(at::kLong));
  Tensor inside = at::ones({points.size(0)}, points.options().dtype(at::kBool));
  for (size_t d = 0; d < edges.size(); ++d) {
    const Tensor x = points.select(1, static_cast<int64_t>(d)).contiguous();
    const Tensor edge = edges[d].contiguous();
    const int64_t bins = edge.numel() - 1;
    TORCH_CHECK(edge.dim() == 1 && bins >= 1,
                "torch.histogramdd: bin edges should be a vector of at least two elements");
    inside = inside.logical_and_(x.ge(edge[0])).logical_and_(x.le(edge[bins]));
    const Tensor bin = at::searchsorted(edge, x, false, true).sub_(1).clamp_(0, bins - 1);
    place = place.mul_(bins).add_(bin);
    sizes.push_back(bins);
  }
  const Tensor amount = weighted ? weight->reshape({-1}).to(points.scalar_type())
                                 : at::ones({points.size(0)}, points.options());
  Tensor sums = at::zeros({c10::multiply_integers(sizes)}, points.options());
  sums = sums.scatter_add_(0, place, amount.masked_fill(inside.logical_not(), 0)).view(sizes);
  if (!density) return sums;
  sums = sums / sums.sum();
  for (size_t d = 0; d < edges.size(); ++d) {
    std::vector<int64_t> along(edges.size(), 1);
    along[d] = sizes[d];
    sums.div_(edges[d].diff().view(along));
  }
  return sums;
}

std::vector<Tensor> bin_edges(const Tensor& self, at::IntArrayRef bins, Range range, const Weight&,
                              bool) {
  return make_edges(rows_of(self), bins, range);
}
Tensor from_counts(const Tensor& self, at::IntArrayRef bins, Range range, const Weight& weight,
                   bool density) {
  const Tensor points = rows_of(self);
  return count(points, make_edges(points, bins, range), weight, density);
}
Tensor from_edges(const Tensor& self, at::TensorList edges, const Weight& weight, bool density) {
  return count(rows_of(self), edges, weight, density);
}

Two histogram_counts(const Tensor& self, int64_t bins, Range range, const Weight& weight,
                     bool density) {
  const Tensor points = self.reshape({-1, 1});
  const std::vector<Tensor> edges = make_edges(points, bins, range);
  return {count(points, edges, weight, density), edges[0]};
}
Two histogram_edges(const Tensor& self, const Tensor& edges, const Weight& weight, bool density) {
  return {count(self.reshape({-1, 1}), {edges}, weight, density), edges.clone()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("histogram.bin_ct", TORCH_FN(histogram_counts));
  register_out<histogram_counts>(m, "histogram.bin_ct_out");
  m.impl("histogram.bins_tensor", TORCH_FN(histogram_edges));
  register_out<histogram_edges>(m, "histogram.bins_tensor_out");
  m.impl("_histogramdd_bin_edges", TORCH_FN(bin_edges));
  m.impl("_histogramdd_from_bin_cts", TORCH_FN(from_counts));
  m.impl("_histogramdd_from_bin_tensors", TORCH_FN(from_edges));
}

}  // namespace torch_ocl
