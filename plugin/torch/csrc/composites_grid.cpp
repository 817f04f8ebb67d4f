// Sampling an image or a volume at the points of a grid. Its steps are differentiable operators,
// and it is registered for autograd as well: the gradients are theirs, and no backward is needed.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;

enum Interpolation { Bilinear, Nearest, Bicubic };
enum Padding { Zeros, Border, Reflection };

struct Sampling {
  int64_t padding;
  bool align;
};

Tensor reflect(const Tensor& at, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return at * 0;
  const double low = static_cast<double>(twice_low) / 2;
  const double span = static_cast<double>(twice_high - twice_low) / 2;
  const Tensor distance = (at - low).abs();
  const Tensor rest = distance.fmod(span);
  const Tensor even = (distance.detach() / span).floor().remainder(2) == 0;
  return at::where(even, rest + low, span - rest + low);
}

// A coordinate in elements, moved into the image as `padding` says.
Tensor pad_coordinate(Tensor at, int64_t size, const Sampling& how) {
  if (how.padding == Reflection)
    at = how.align ? reflect(at, 0, 2 * (size - 1)) : reflect(at, -1, 2 * size - 1);
  if (how.padding != Zeros) at = at.clamp(0, size - 1);
  return at;
}

// Points that are no number, or far outside, become points just outside: they are cast to integers.
Tensor tame(const Tensor& at, int64_t size, const Sampling& how) {
  const double far = static_cast<double>(size) + 8;
  const Tensor known = at.masked_fill(at.detach().isnan(), how.padding == Zeros ? -8.0 : 0.0);
  return how.padding == Reflection ? known : known.clamp(-8, far);
}

Tensor unnormalize(const Tensor& at, int64_t size, bool align) {
  const auto n = static_cast<double>(size);
  return align ? (at + 1) * ((n - 1) / 2) : ((at + 1) * n - 1) / 2;
}

// The values at whole coordinates (one tensor per dimension, [N, 1, P]); outside: zero.
Tensor read(const Tensor& flat, at::IntArrayRef size, const std::vector<Tensor>& whole) {
  Tensor place, inside;
  for (size_t d = 0; d < whole.size(); ++d) {
    const Tensor w = whole[d].detach();
    const Tensor here = at::logical_and(w >= 0, w <= size[d] - 1);
    const Tensor index = w.clamp(0, size[d] - 1).to(at::kLong);
    place = d == 0 ? index : place * size[d] + index;
    inside = d == 0 ? here : at::logical_and(inside, here);
  }
  const Tensor taken = flat.gather(2, place.expand({-1, flat.size(1), -1}));
  return taken.masked_fill(inside.logical_not(), 0);
}

// Weights of the taps of one dimension and their whole coordinates.
struct Axis {
  std::vector<Tensor> places, weights;
};

Axis linear_axis(const Tensor& at) {
  const Tensor low = at.detach().floor();
  return {{low, low + 1}, {low + 1 - at, at - low}};
}

Axis cubic_axis(const Tensor& at, int64_t size, const Sampling& how) {
  constexpr double a = -0.75;
  const Tensor low = at.detach().floor();
  const Tensor t = at - low;
  const auto near = [](const Tensor& x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](const Tensor& x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  Axis axis{{}, {far(t + 1), near(t), near(1 - t), far(2 - t)}};
  for (int k = -1; k < 3; ++k) {
    const Tensor place = pad_coordinate(low + k, size, how);
    axis.places.push_back(how.padding == Zeros ? place : place.trunc());
  }
  return axis;
}

Tensor sum_taps(const Tensor& flat, at::IntArrayRef size, const std::vector<Axis>& axes) {
  size_t count = 1;
  for (const Axis& axis : axes) count *= axis.places.size();
  Tensor sum;
  for (size_t tap = 0; tap < count; ++tap) {
    std::vector<Tensor> whole;
    Tensor weight;
    size_t rest = tap;
    for (const Axis& axis : axes) {
      const size_t k = rest % axis.places.size();
      rest /= axis.places.size();
      whole.push_back(axis.places[k]);
      weight = weight.defined() ? weight * axis.weights[k] : axis.weights[k];
    }
    const Tensor part = read(flat, size, whole) * weight;
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

void check(const Tensor& input, const Tensor& grid, int64_t dims) {
  TORCH_CHECK(input.device() == grid.device(),
              "grid_sampler(): expected input and grid to be on "
              "same device, but input is on ",
              input.device(), " and grid is on ", grid.device());
  TORCH_CHECK(input.dim() == dims + 2 && grid.dim() == dims + 2 && input.size(0) == grid.size(0) &&
                  grid.size(-1) == dims,
              "grid_sampler(): input of size ", input.sizes(), " and grid of size ", grid.sizes(),
              " do not fit together");
  TORCH_CHECK(c10::multiply_integers(input.sizes().slice(2)) > 0,
              "grid_sampler(): expected input to have non-empty spatial dimensions, but got ",
              input.sizes());
}

template <int64_t dims>
Tensor grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation, int64_t padding,
                    bool align) {
  check(input, grid, dims);
  const Sampling how{padding, align};
  const at::IntArrayRef size = input.sizes().slice(2);
  const Tensor flat = input.flatten(2);
  std::vector<Axis> axes;
  for (int64_t d = 0; d < dims; ++d) {
    // The grid's last dimension counts from the innermost: x, y, z.
    Tensor at = grid.select(-1, dims - 1 - d).reshape({grid.size(0), 1, -1});
    at = tame(unnormalize(at, size[d], align), size[d], how);
    if (interpolation == Bicubic) {
      axes.push_back(cubic_axis(at, size[d], how));
      continue;
    }
    at = pad_coordinate(at, size[d], how);
    if (interpolation == Nearest)
      axes.push_back({{at.round()}, {at * 0 + 1}});
    else
      axes.push_back(linear_axis(at));
  }
  std::vector<int64_t> shape{input.size(0), input.size(1)};
  for (int64_t d = 0; d < dims; ++d) shape.push_back(grid.size(1 + d));
  return sum_taps(flat, size, axes).reshape(shape);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("grid_sampler_2d", TORCH_FN(grid_sampler<2>));
  m.impl("grid_sampler_3d", TORCH_FN(grid_sampler<3>));
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("grid_sampler_2d", TORCH_FN(grid_sampler<2>));
  m.impl("grid_sampler_3d", TORCH_FN(grid_sampler<3>));
}

}  // namespace torch_ocl
