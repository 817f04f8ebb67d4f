// Bags of embeddings: sums, means and maxima of rows, and their gradients; embedding_renorm_.
#include <ATen/OpMathType.h>

#include <limits>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

// What every mode needs: the bag of each index, and which indices count.
struct Bags {
  Tensor indices, bag, counts;  // counts: undefined if all indices count
  Tensor masked(const Tensor& rows) const {
    if (!counts.defined()) return rows;
    return rows.masked_fill(
        rows.dim() == 1 ? counts.logical_not() : counts.logical_not().unsqueeze(1), 0);
  }
};

Tensor counted(const Tensor& indices, int64_t padding) {
  return padding >= 0 ? indices.ne(padding) : Tensor();
}

// The bag of each index. Indices behind the last offset of a call that gives the end of the last
// bag, too, get the number of bags: one bag more, which is not returned.
Tensor bags_of(const Tensor& indices, const Tensor& offsets) {
  return row_of_each(offsets, indices.numel(), {true, false});
}

Tensor spread(const Tensor& bag, const Tensor& like) {
  return bag.unsqueeze(1).expand(like.sizes());
}

// The largest element of each bag and feature, and the row of `weight` in which it is found first.
std::pair<Tensor, Tensor> maxima(const Bags& b, const Tensor& rows, int64_t bags) {
  const int64_t n = rows.size(0);
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  const Tensor candidates =
      b.counts.defined() ? rows.masked_fill(b.counts.logical_not().unsqueeze(1), kLowest) : rows;
  const Tensor place = spread(b.bag, rows);
  const Tensor best = at::full({bags, rows.size(1)}, kLowest, rows.options())
                          .scatter_reduce(0, place, candidates, "amax");
  Tensor hits = candidates.eq(best.gather(0, place));
  if (b.counts.defined()) hits = hits.logical_and(b.counts.unsqueeze(1));
  const Tensor numbers = at::arange(n, b.indices.options()).unsqueeze(1).expand(rows.sizes());
  const Tensor first = at::full({bags, rows.size(1)}, n, b.indices.options())
                           .scatter_reduce(0, place, at::where(hits, numbers, n), "amin");
  const Tensor none = first.eq(n);
  const Tensor at_row = b.indices.index_select(0, first.clamp_max(n - 1).reshape({-1}))
                            .view(first.sizes())
                            .masked_fill_(none, 0);
  return {best.masked_fill(none, 0), at_row};
}

Four embedding_bag(const Tensor& weight, const Tensor& given, const Tensor& offsets, bool,
                   int64_t mode, bool, const std::optional<Tensor>& per_sample, bool with_last,
                   int64_t padding) {
  TORCH_CHECK(weight.dim() == 2 && given.dim() == 1 && offsets.dim() == 1,
              "embedding_bag: weight has to be a 2D, indices and offsets 1D tensors, got shapes ",
              weight.sizes(), ", ", given.sizes(), " and ", offsets.sizes());
  const bool scaled = per_sample.has_value() && per_sample->defined();
  TORCH_CHECK(!scaled || mode == kSum,
              "embedding_bag: per_sample_weights only supported with mode='sum'");
  TORCH_CHECK(!with_last || offsets.size(0) > 0,
              "include_last_offset: number of offset should be at least 1");
  const int64_t bags = offsets.size(0) - (with_last ? 1 : 0);
  const Tensor indices = given.to(at::kLong);
  const auto numbers = indices.options();
  const std::array<int64_t, 2> empty{bags, weight.size(1)};
  const Tensor bag = offsets.size(0) > 0 ? bags_of(indices, offsets) : at::empty({0}, numbers);
  if (indices.numel() == 0 || bags == 0)
    return {at::zeros(empty, weight.options()), bag, at::zeros({bags}, numbers),
            at::zeros(mode == kMax ? at::IntArrayRef(empty) : at::IntArrayRef(bags), numbers)};
  const Bags b{indices, bag, counted(indices, padding)};
  const auto own = [&](const Tensor& of_all) { return of_all.narrow(0, 0, bags); };
  const Tensor ones = b.masked(at::ones_like(indices));
  const Tensor sizes = own(at::zeros({offsets.size(0)}, numbers).scatter_add_(0, b.bag, ones));
  Tensor rows = weight.index_select(0, indices);
  if (mode == kMax) {
    const auto [best, place] = maxima(b, rows, offsets.size(0));
    return {own(best), b.bag, sizes, own(place)};
  }
  // 16-bit elements are rounded once, at the end.
  if (scaled || mode == kMean) rows = rows.to(at::toOpMathType(rows.scalar_type()));
  if (scaled) rows = rows * per_sample->unsqueeze(1);
  Tensor result = own(at::zeros({offsets.size(0), weight.size(1)}, rows.options())
                          .index_add_(0, b.bag, b.masked(rows)));
  if (mode == kMean) result.div_(sizes.clamp_min(1).unsqueeze(1));
  return {result.to(weight.scalar_type()), b.bag, sizes, sizes};
}

// A row of zeros more, for the indices behind the last bag.
struct OneBagMore {
  Tensor grad, sizes;
  OneBagMore(const Tensor& of_grad, const Tensor& of_sizes, const Tensor& offsets)
      : grad(of_grad), sizes(of_sizes) {
    if (offsets.size(0) <= grad.size(0)) return;
    grad = at::constant_pad_nd(grad, {0, 0, 0, 1}, 0);
    if (sizes.defined()) sizes = at::constant_pad_nd(sizes, {0, 1}, 1);
  }
};

Tensor bag_backward(const Tensor& grad, const Tensor& given, const Tensor& bag, const Tensor& sizes,
                    const Tensor& maxima, c10::SymInt rows, bool by_frequency, int64_t mode,
                    const std::optional<Tensor>& per_sample, int64_t padding) {
  const Tensor indices = given.to(at::kLong);
  Tensor result = at::zeros({plain(rows), grad.size(1)}, grad.options());
  if (indices.numel() == 0) return result;
  if (mode == kMax)
    return result.scatter_add_(0, maxima, grad.masked_fill(sizes.eq(0).unsqueeze(1), 0));
  const Bags b{indices, bag, counted(indices, padding)};
  Tensor each = grad.index_select(0, bag);
  if (mode == kMean) each = each / sizes.index_select(0, bag).unsqueeze(1);
  if (per_sample.has_value() && per_sample->defined()) each = each * per_sample->unsqueeze(1);
  if (by_frequency) {
    const Tensor frequency = at::zeros({plain(rows)}, indices.options())
                                 .scatter_add_(0, indices, at::ones_like(indices));
    each = each / frequency.index_select(0, indices).unsqueeze(1);
  }
  return result.index_add_(0, indices, b.masked(each));
}

Tensor embedding_bag_backward(const Tensor& grad, const Tensor& indices, const Tensor& offsets,
                              const Tensor& bag, const Tensor& sizes, const Tensor& maxima,
                              c10::SymInt rows, bool by_frequency, int64_t mode, bool sparse,
                              const std::optional<Tensor>& per_sample, int64_t padding) {
  const Tensor of = bag.numel() > 0 ? bag : bags_of(indices, offsets);
  const OneBagMore all(grad, sizes, offsets);
  if (sparse)
    return at::_embedding_bag_sparse_backward_symint(all.grad, indices, offsets, of, all.sizes,
                                                     std::move(rows), by_frequency, mode,
                                                     per_sample, padding);
  return bag_backward(mode == kMax ? grad : all.grad, indices, of, mode == kMax ? sizes : all.sizes,
                      maxima, std::move(rows), by_frequency, mode, per_sample, padding);
}

Tensor per_sample_backward(const Tensor& grad, const Tensor& weight, const Tensor& given,
                           const Tensor& offsets, const Tensor& bag, int64_t mode,
                           int64_t padding) {
  TORCH_CHECK(mode == kSum, "embedding_bag_backward: per_sample_weights only for mode='sum'");
  const Tensor indices = given.to(at::kLong);
  if (indices.numel() == 0) return at::zeros({0}, grad.options());
  const Tensor of = bag.numel() > 0 ? bag : bags_of(indices, offsets);
  const Bags b{indices, of, counted(indices, padding)};
  const auto wide = at::toOpMathType(grad.scalar_type());
  const Tensor products = OneBagMore(grad, Tensor(), offsets).grad.index_select(0, of).to(wide) *
                          weight.index_select(0, indices);
  return b.masked(products.sum(1).to(grad.scalar_type()));
}

// An index that appears twice writes the same values to its row twice.
Tensor& embedding_renorm_(Tensor& self, const Tensor& indices, double max_norm, double p) {
  TORCH_CHECK(self.dim() == 2, "embedding_renorm_: weight must be a matrix, got ", self.sizes());
  if (indices.numel() == 0) return self;
  const Tensor flat = indices.reshape({-1}).to(at::kLong);
  return self.index_copy_(0, flat, self.index_select(0, flat).renorm(p, 0, max_norm));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_embedding_bag", TORCH_FN(embedding_bag));
  m.impl("_embedding_bag_forward_only", TORCH_FN(embedding_bag));
  m.impl("_embedding_bag_backward", TORCH_FN(embedding_bag_backward));
  m.impl("_embedding_bag_dense_backward", TORCH_FN(bag_backward));
  m.impl("_embedding_bag_per_sample_weights_backward", TORCH_FN(per_sample_backward));
  m.impl("embedding_renorm_", TORCH_FN(embedding_renorm_));
}

}  // namespace torch_ocl
