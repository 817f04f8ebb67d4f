// histogram and histogramdd: edges made on the host, and the plugin's histogram between edges.
#include <cmath>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Two = std::tuple<Tensor, Tensor>;
using Weight = std::optional<Tensor>;
using Range = std::optional<at::ArrayRef<double>>;

// The points as rows of a matrix.
Tensor rows_of(const Tensor& self) {
  TORCH_CHECK(self.dim() >= 2, "torch.histogramdd: input tensor should have at least 2 dimensions");
  return self.reshape({-1, self.size(-1)});
}

// The edges of bins of equal width over the given range, or over the range of the points.
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
    Tensor ends = at::empty({2, dims}, points.options());
    Tensor least = ends[0], most = ends[1];
    at::aminmax_out(least, most, points, 0);
    ends = ends.to(at::kCPU, at::kDouble);
    for (size_t d = 0; d < bins.size(); ++d) {
      low[d] = ends[0][static_cast<int64_t>(d)].item<double>();
      high[d] = ends[1][static_cast<int64_t>(d)].item<double>();
    }
  }
  std::vector<Tensor> parts;
  for (size_t d = 0; d < bins.size(); ++d) {
    TORCH_CHECK(bins[d] > 0, "torch.histogramdd(): bins must be > 0, but got ", bins[d]);
    TORCH_CHECK(std::isfinite(low[d]) && std::isfinite(high[d]), "torch.histogramdd(): dimension ",
                d, "'s range [", low[d], ", ", high[d], "] is not finite");
    TORCH_CHECK(low[d] <= high[d], "torch.histogramdd(): min should not exceed max, but got min ",
                low[d], " max ", high[d]);
    if (low[d] == high[d]) low[d] -= 0.5, high[d] += 0.5;
    parts.push_back(at::linspace(low[d], high[d], bins[d] + 1,
                                 at::TensorOptions(at::kCPU).dtype(points.scalar_type())));
  }
  // One copy to the device for all dimensions.
  const Tensor all = at::cat(parts).to(points.device());
  std::vector<Tensor> edges;
  int64_t start = 0;
  for (const int64_t count : bins) {
    edges.push_back(all.narrow(0, start, count + 1));
    start += count + 1;
  }
  return edges;
}

// One value a point, as the points are rows by now.
Weight flat(const Weight& weight) {
  return weight.has_value() ? Weight(weight->reshape({-1})) : weight;
}

Tensor count(const Tensor& points, at::TensorList edges, const Weight& weight, bool density) {
  return at::_histogramdd_from_bin_tensors(points, edges, flat(weight), density);
}

std::vector<Tensor> bin_edges(const Tensor& self, at::IntArrayRef bins, Range range, const Weight&,
                              bool) {
  return make_edges(rows_of(self), bins, range);
}
Tensor from_counts(const Tensor& self, at::IntArrayRef bins, Range range, const Weight& weight,
                   bool density) {
  const Tensor points = rows_of(self);
  const at::IntArrayRef shape = self.sizes().slice(0, self.dim() - 1);
  TORCH_CHECK(!weight.has_value() || weight->sizes() == shape,
              "torch.histogramdd: the weights should have the shape of the input without its last "
              "dimension, ",
              shape, ", but have ", weight->sizes());
  return count(points, make_edges(points, bins, range), weight, density);
}

Two histogram_counts(const Tensor& self, int64_t bins, Range range, const Weight& weight,
                     bool density) {
  const Tensor points = self.reshape({-1, 1});
  const std::vector<Tensor> edges = make_edges(points, bins, range);
  return {count(points, edges, weight, density), edges[0]};
}
Two histogram_edges(const Tensor& self, const Tensor& edges, const Weight& weight, bool density) {
  const Weight flat = weight;
  return {count(self.reshape({-1, 1}), {edges}, flat, density), edges.clone()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("histogram.bin_ct", TORCH_FN(histogram_counts));
  register_out<histogram_counts>(m, "histogram.bin_ct_out");
  m.impl("histogram.bins_tensor", TORCH_FN(histogram_edges));
  register_out<histogram_edges>(m, "histogram.bins_tensor_out");
  m.impl("_histogramdd_bin_edges", TORCH_FN(bin_edges));
  m.impl("_histogramdd_from_bin_cts", TORCH_FN(from_counts));
}

}  // namespace torch_ocl
