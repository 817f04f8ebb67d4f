// Random shapes, layouts and values.
#include "draw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ocltensor::testing {
namespace {

constexpr int64_t kWidths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};

constexpr int64_t kAnyRank = 5;  // as a limit of ranks it stands for none

// Elements of storage per element of a tensor: 300,000 complex numbers stay below 64 MiB, which is
// all that some devices give in one piece.
constexpr int64_t kLargestPadding = 9;

int64_t budget(SizeMode mode) {
  switch (mode) {
    case SizeMode::Small: return 300;
    case SizeMode::Edge: return 400;
    case SizeMode::Medium: return 5000;
    default: return 300000;
  }
}

Layout contiguous_layout(const Dims& sizes) { return {contiguous_strides(sizes), 0, numel(sizes)}; }

// Moves the lowest address to storage element `front` and sizes the storage.
void settle(Layout& layout, const Dims& sizes, int64_t front) {
  if (numel(sizes) == 0) {
    layout.offset = layout.storage = 0;
    return;
  }
  const Extent span = extent(sizes, layout.strides);
  layout.offset = front - span.low;
  layout.storage = front + span.high - span.low;
}

}  // namespace

int64_t Draw::extent(int64_t limit, bool may_be_zero) {
  if (limit < 1) limit = 1;
  if (may_be_zero && size_ == SizeMode::Edge && rng.chance(0.15)) return 0;
  const int64_t width = rng.pick(kWidths);
  return width <= limit && rng.chance(0.6) ? width : rng.range(1, limit);
}

Dims Draw::many_axes() {
  Dims sizes;
  for (int64_t i = rng.range(9, 20); i > 0; --i) sizes.push_back(sizes.size() % 2 == 0 ? 2 : 1);
  std::vector<int64_t> order(sizes.begin(), sizes.end());
  rng.shuffle(order);
  return Dims(std::span<const int64_t>(order));
}

Dims Draw::shape(int64_t min_rank, int64_t max_rank) {
  int64_t rank = rng.range(std::max<int64_t>(min_rank, 1), std::min<int64_t>(max_rank, 4));
  const bool edge = size_ == SizeMode::Edge;
  if (edge) rank = rng.chance(0.3) ? max_rank : rng.range(min_rank, max_rank);
  // Where any rank will do, also more than kernels take at once: axes of one and two.
  if (edge && max_rank >= kAnyRank && rng.chance(0.1)) return many_axes();
  Dims sizes;
  int64_t left = budget(size_);
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t share = static_cast<int64_t>(
        std::pow(static_cast<double>(left), 1.0 / static_cast<double>(rank - i)) * 1.7);
    const int64_t limit = rank == 1 ? left : std::min(left, share);
    // Large cases must be large: the share is used in full.
    const int64_t n = size_ == SizeMode::Large
                          ? std::max<int64_t>(1, limit * 2 / 3 + rng.range(0, 3))
                          : extent(limit, true);
    sizes.push_back(n);
    left = std::max<int64_t>(1, left / std::max<int64_t>(1, n));
  }
  std::vector<int64_t> order(sizes.begin(), sizes.end());
  rng.shuffle(order);
  return Dims(std::span<const int64_t>(order));
}

Dims Draw::broadcastable(const Dims& shape) {
  Dims result;
  const size_t drop = rng.chance(0.3) && !shape.empty()
                          ? static_cast<size_t>(rng.range(0, static_cast<int64_t>(shape.size())))
                          : 0;
  for (size_t i = drop; i < shape.size(); ++i) result.push_back(rng.chance(0.3) ? 1 : shape[i]);
  return result;
}

void Draw::scatter_specials(HostTensor& t, const Domain& domain) {
  const int64_t n = t.numel();
  if (n == 0) return;
  const int64_t count = std::min<int64_t>(n, 1 + n / 8);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double reals[] = {std::nan(""),
                          kInf,
                          -kInf,
                          -0.0,
                          0.0,
                          smallest_denormal(t.dtype),
                          -smallest_denormal(t.dtype) * 3,
                          smallest_normal(t.dtype)};
  const int64_t integers[] = {lowest_integer(t.dtype), highest_integer(t.dtype), 0,
                              highest_integer(t.dtype) - 1};
  for (int64_t k = 0; k < count; ++k) {
    const int64_t i = rng.range(0, n - 1);
    const double special = rng.pick(reals);
    const bool wanted =
        (domain.infinite || !std::isinf(special)) &&
        (domain.tiny || !(std::fabs(special) <= smallest_normal(t.dtype))) &&
        (domain.denormals || special == 0 || !(std::fabs(special) <= smallest_normal(t.dtype)));
    if (is_floating(t.dtype) && domain.specials && wanted) t.set(i, special);
    if (!is_floating(t.dtype) && domain.extremes) t.set_integer(i, rng.pick(integers));
  }
}

HostTensor Draw::values(DType dtype, const Dims& sizes, Domain domain) {
  if (is_complex(dtype)) {  // both parts from the domain
    Dims parts(sizes);
    parts.push_back(2);
    HostTensor t(dtype, sizes);
    t.bytes = values(real_type(dtype), parts, domain).bytes;
    return t;
  }
  HostTensor t(dtype, sizes);
  const int64_t n = t.numel();
  if (dtype == DType::Bool) {
    for (int64_t i = 0; i < n; ++i) t.set_integer(i, rng.chance(0.5));
  } else if (is_floating(dtype)) {
    for (int64_t i = 0; i < n; ++i) {
      double v = rng.uniform(domain.low, domain.high);
      if (domain.grid != 0) v = std::nearbyint(v / domain.grid) * domain.grid;
      t.set(i, v);
    }
  } else {
    const auto low = std::max(lowest_integer(dtype), static_cast<int64_t>(std::ceil(domain.low)));
    const auto high = std::max(
        low, std::min(highest_integer(dtype), static_cast<int64_t>(std::floor(domain.high))));
    for (int64_t i = 0; i < n; ++i) t.set_integer(i, rng.range(low, high));
  }
  if (specials) scatter_specials(t, domain);
  return t;
}

bool Draw::strided() {
  return layout_ == LayoutMode::Strided || (layout_ == LayoutMode::Any && rng.chance(0.6));
}

Layout Draw::output_layout(const Dims& sizes) {
  if (!strided()) return contiguous_layout(sizes);
  const size_t rank = sizes.size();
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  if (rng.chance(0.7)) rng.shuffle(order);
  Layout layout;
  layout.strides = Dims(rank, 1);
  int64_t stride = 1, padding = 1;
  for (size_t k = rank; k > 0; --k) {
    const size_t d = order[k - 1];
    if (rng.chance(0.3)) {  // a step, or padding of rows
      const int64_t times = rng.range(2, 3);
      if (padding * times <= kLargestPadding) stride *= times, padding *= times;
    }
    layout.strides[d] = stride;
    stride *= std::max<int64_t>(1, sizes[d]);
  }
  settle(layout, sizes, rng.chance(0.5) ? rng.range(1, 5) : 0);
  return layout;
}

Layout Draw::layout(const Dims& sizes) {
  Layout layout = output_layout(sizes);
  if (!strided() || numel(sizes) == 0) return layout;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (rng.chance(0.15)) layout.strides[d] = -layout.strides[d];
  settle(layout, sizes, layout_ == LayoutMode::Contiguous ? 0 : rng.range(0, 4));
  return layout;
}

TensorPtr Draw::place(HostTensor value) {
  Layout chosen = layout(value.sizes);
  return std::make_shared<TensorData>(TensorData{std::move(value), chosen});
}

TensorPtr Draw::contiguous(HostTensor value) {
  Layout chosen = contiguous_layout(value.sizes);
  return std::make_shared<TensorData>(TensorData{std::move(value), chosen});
}

TensorPtr Draw::tensor(DType dtype, const Dims& sizes, Domain domain) {
  Dims kept = sizes;
  const bool expand = strided() && rng.chance(0.25);
  if (expand)
    for (int64_t& n : kept)
      if (n > 1 && rng.chance(0.5)) n = 1;
  HostTensor small = values(dtype, kept, domain);
  if (kept == sizes) return place(std::move(small));
  Layout chosen = layout(kept);
  HostTensor full(dtype, sizes);
  const Dims strides = broadcast_strides(kept, contiguous_strides(kept), sizes);
  const int64_t n = full.numel();
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, from = 0;
    for (size_t d = sizes.size(); d > 0; --d) {
      from += rest % sizes[d - 1] * strides[d - 1];
      rest /= sizes[d - 1];
    }
    std::copy_n(small.element(from), size_of(dtype), full.element(i));
  }
  for (size_t d = 0; d < sizes.size(); ++d)
    if (kept[d] != sizes[d]) chosen.strides[d] = 0;
  return std::make_shared<TensorData>(TensorData{std::move(full), chosen});
}

TensorPtr Draw::indices(const Dims& sizes, int64_t low, int64_t high, DType dtype) {
  HostTensor t(dtype, sizes);
  for (int64_t i = 0, n = t.numel(); i < n; ++i) t.set_integer(i, rng.range(low, high));
  return place(std::move(t));
}

}  // namespace ocltensor::testing
