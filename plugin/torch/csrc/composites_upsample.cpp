// Resampling of any number of dimensions: each output place is a weighted sum of input places of
// its own dimension ("taps"), so dimensions are done one after the other.
#include <cmath>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using Scale = std::optional<double>;
using Sizes = c10::SymIntArrayRef;

enum class Mode { Nearest, NearestExact, Linear, Cubic, LinearAntialias, CubicAntialias };

// tap k of output i reads places[k][i] with weights[k][i].
struct Taps {
  std::vector<std::vector<int64_t>> places;
  std::vector<std::vector<double>> weights;
  Taps(size_t count, int64_t out)
      : places(count, std::vector<int64_t>(static_cast<size_t>(out))),
        weights(count, std::vector<double>(static_cast<size_t>(out))) {}
};

// The distance between two outputs in inputs, rounded as ATen rounds it (T: its opmath type).
template <typename T>
T step_of(int64_t in, int64_t out, bool align, const Scale& scale) {
  if (align) return out > 1 ? static_cast<T>(in - 1) / static_cast<T>(out - 1) : T(0);
  if (scale.has_value() && *scale > 0) return static_cast<T>(1.0 / *scale);
  return static_cast<T>(in) / static_cast<T>(out);
}

Taps nearest_taps(int64_t in, int64_t out, const Scale& scale, bool exact) {
  Taps taps(1, out);
  const auto step = step_of<float>(in, out, false, scale);
  for (int64_t i = 0; i < out; ++i) {
    const float at = (static_cast<float>(i) + (exact ? 0.5F : 0.0F)) * step;
    int64_t place = static_cast<int64_t>(std::floor(at));
    if (!exact && out == in) place = i;
    if (!exact && out == 2 * in) place = i / 2;
    taps.places[0][static_cast<size_t>(i)] = std::min(place, in - 1);
    taps.weights[0][static_cast<size_t>(i)] = 1;
  }
  return taps;
}

template <typename T>
void set_cubic(Taps& taps, size_t i, int64_t base, T t, int64_t in) {
  const T a = T(-0.75);
  const auto near = [a](T x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [a](T x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  const T weights[] = {far(t + 1), near(t), near(1 - t), far(2 - t)};
  for (size_t k = 0; k < 4; ++k) {
    const int64_t place = base - 1 + static_cast<int64_t>(k);
    taps.places[k][i] = std::clamp<int64_t>(place, 0, in - 1);
    taps.weights[k][i] = static_cast<double>(weights[k]);
  }
}

template <typename T>
Taps smooth_taps(int64_t in, int64_t out, const Scale& scale, bool align, bool cubic) {
  Taps taps(cubic ? 4 : 2, out);
  const T step = step_of<T>(in, out, align, scale);
  for (int64_t i = 0; i < out; ++i) {
    const auto n = static_cast<size_t>(i);
    T at = align ? step * static_cast<T>(i) : step * (static_cast<T>(i) + T(0.5)) - T(0.5);
    if (!cubic && at < 0) at = 0;
    if (!cubic && in == out) at = static_cast<T>(i);
    const int64_t base = std::min(static_cast<int64_t>(std::floor(at)), in - 1);
    const T t = std::min(std::max(at - static_cast<T>(base), T(0)), T(1));
    if (cubic) {
      set_cubic<T>(taps, n, base, t, in);
      continue;
    }
    taps.places[0][n] = base;
    taps.places[1][n] = std::min(base + 1, in - 1);
    taps.weights[0][n] = static_cast<double>(1 - t);
    taps.weights[1][n] = static_cast<double>(t);
  }
  return taps;
}

template <typename T>
T antialias_filter(T x, bool cubic) {
  x = std::abs(x);
  if (!cubic) return x < 1 ? 1 - x : T(0);
  const T a = T(-0.5);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : T(0);
}

// The filter grows with the step when an image shrinks, as Pillow has it.
template <typename T>
Taps antialias_taps(int64_t in, int64_t out, const Scale& scale, bool align, bool cubic) {
  const T step = step_of<T>(in, out, align, scale);
  const T widening = std::max(step, T(1));
  const T support = T(cubic ? 2 : 1) * widening;
  const auto most = static_cast<size_t>(std::ceil(support)) * 2 + 1;
  Taps taps(most, out);
  for (int64_t i = 0; i < out; ++i) {
    const T center = step * (static_cast<T>(i) + T(0.5));
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(center - support + T(0.5)), 0);
    const int64_t end = std::min(static_cast<int64_t>(center + support + T(0.5)), in);
    const size_t count = static_cast<size_t>(std::clamp<int64_t>(end - first, 0, int64_t(most)));
    T total = 0;
    std::vector<T> weights(count);
    for (size_t k = 0; k < count; ++k) {
      const T offset = static_cast<T>(first + static_cast<int64_t>(k)) - center + T(0.5);
      total += weights[k] = antialias_filter<T>(offset / widening, cubic);
    }
    for (size_t k = 0; k < count; ++k) {
      taps.places[k][static_cast<size_t>(i)] = first + static_cast<int64_t>(k);
      taps.weights[k][static_cast<size_t>(i)] =
          static_cast<double>(total != 0 ? weights[k] / total : weights[k]);
    }
  }
  return taps;
}

template <typename T>
Taps taps_of(Mode mode, int64_t in, int64_t out, const Scale& scale, bool align) {
  switch (mode) {
    case Mode::Nearest:
    case Mode::NearestExact: return nearest_taps(in, out, scale, mode == Mode::NearestExact);
    case Mode::Linear:
    case Mode::Cubic: return smooth_taps<T>(in, out, scale, align, mode == Mode::Cubic);
    default: return antialias_taps<T>(in, out, scale, align, mode == Mode::CubicAntialias);
  }
}

Tensor weights_beside(const std::vector<double>& weights, const Tensor& x, int64_t dim) {
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[static_cast<size_t>(dim)] = static_cast<int64_t>(weights.size());
  return at::tensor(weights, x.scalar_type()).view(shape).to(x.device());
}

Tensor resample(const Tensor& x, int64_t dim, const Taps& taps, bool weighted) {
  if (!weighted) return x.index_select(dim, upload(taps.places[0], x));
  Tensor sum;
  for (size_t k = 0; k < taps.places.size(); ++k) {
    const Tensor part = x.index_select(dim, upload(taps.places[k], x));
    const Tensor weights = weights_beside(taps.weights[k], x, dim);
    sum = k == 0 ? part * weights : at::addcmul(sum, part, weights);
  }
  return sum;
}

Tensor spread(const Tensor& grad, int64_t dim, int64_t in, const Taps& taps, bool weighted) {
  std::vector<int64_t> sizes = grad.sizes().vec();
  sizes[static_cast<size_t>(dim)] = in;
  Tensor sum = at::zeros(sizes, grad.options());
  for (size_t k = 0; k < taps.places.size(); ++k)
    sum.index_add_(dim, upload(taps.places[k], grad),
                   weighted ? grad * weights_beside(taps.weights[k], grad, dim) : grad);
  return sum;
}

// float16 and bfloat16 are summed in float32, as ATen does.
at::ScalarType sum_type(const Tensor& x) {
  const at::ScalarType type = x.scalar_type();
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

template <typename F>
Tensor along_all(Mode mode, const Tensor& x, size_t dims, F&& one) {
  const bool weighted = mode != Mode::Nearest && mode != Mode::NearestExact;
  TORCH_CHECK_NOT_IMPLEMENTED(!weighted || x.is_floating_point(),
                              "ocl: interpolation of integers is not implemented");
  Tensor result = x.to(sum_type(x));
  for (int64_t d = static_cast<int64_t>(dims) - 1; d >= 0; --d) result = one(result, d, weighted);
  return result.to(x.scalar_type());
}

Tensor forward(Mode mode, const Tensor& self, Sizes symbolic, bool align,
               std::initializer_list<Scale> scales) {
  const at::IntArrayRef size = C10_AS_INTARRAYREF_SLOW(symbolic);
  return along_all(mode, self, size.size(), [&](const Tensor& x, int64_t d, bool weighted) {
    const Scale& scale = scales.begin()[d];
    const int64_t in = x.size(d + 2);
    const Taps taps = x.scalar_type() == at::kDouble
                          ? taps_of<double>(mode, in, size[d], scale, align)
                          : taps_of<float>(mode, in, size[d], scale, align);
    return resample(x, d + 2, taps, weighted);
  });
}

Tensor backward(Mode mode, const Tensor& grad, Sizes input_size, bool align,
                std::initializer_list<Scale> scales) {
  const at::IntArrayRef size = C10_AS_INTARRAYREF_SLOW(input_size);
  return along_all(mode, grad, size.size() - 2, [&](const Tensor& x, int64_t d, bool weighted) {
    const Scale& scale = scales.begin()[d];
    const int64_t in = size[d + 2], out = x.size(d + 2);
    const Taps taps = x.scalar_type() == at::kDouble ? taps_of<double>(mode, in, out, scale, align)
                                                     : taps_of<float>(mode, in, out, scale, align);
    return spread(x, d + 2, in, taps, weighted);
  });
}

template <Mode mode>
Tensor near1(const Tensor& x, Sizes size, Scale w) {
  return forward(mode, x, size, false, {w});
}
template <Mode mode>
Tensor near1_back(const Tensor& g, Sizes, Sizes in, Scale w) {
  return backward(mode, g, in, false, {w});
}
template <Mode mode>
Tensor near2(const Tensor& x, Sizes size, Scale h, Scale w) {
  return forward(mode, x, size, false, {h, w});
}
template <Mode mode>
Tensor near2_back(const Tensor& g, Sizes, Sizes in, Scale h, Scale w) {
  return backward(mode, g, in, false, {h, w});
}
template <Mode mode>
Tensor near3(const Tensor& x, Sizes size, Scale d, Scale h, Scale w) {
  return forward(mode, x, size, false, {d, h, w});
}
template <Mode mode>
Tensor near3_back(const Tensor& g, Sizes, Sizes in, Scale d, Scale h, Scale w) {
  return backward(mode, g, in, false, {d, h, w});
}
template <Mode mode>
Tensor smooth1(const Tensor& x, Sizes size, bool align, Scale w) {
  return forward(mode, x, size, align, {w});
}
template <Mode mode>
Tensor smooth1_back(const Tensor& g, Sizes, Sizes in, bool align, Scale w) {
  return backward(mode, g, in, align, {w});
}
template <Mode mode>
Tensor smooth2(const Tensor& x, Sizes size, bool align, Scale h, Scale w) {
  return forward(mode, x, size, align, {h, w});
}
template <Mode mode>
Tensor smooth2_back(const Tensor& g, Sizes, Sizes in, bool align, Scale h, Scale w) {
  return backward(mode, g, in, align, {h, w});
}
template <Mode mode>
Tensor smooth3(const Tensor& x, Sizes size, bool align, Scale d, Scale h, Scale w) {
  return forward(mode, x, size, align, {d, h, w});
}
template <Mode mode>
Tensor smooth3_back(const Tensor& g, Sizes, Sizes in, bool align, Scale d, Scale h, Scale w) {
  return backward(mode, g, in, align, {d, h, w});
}

}  // namespace

// All are structured: ATen derives the functional forms, and checks.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#define OCL_RESAMPLE(name, form, mode)            \
  register_out<form<Mode::mode>>(m, name ".out"); \
  register_out<form##_back<Mode::mode>>(m, name "_backward.grad_input");
  OCL_RESAMPLE("upsample_nearest1d", near1, Nearest)
  OCL_RESAMPLE("upsample_nearest3d", near3, Nearest)
  OCL_RESAMPLE("_upsample_nearest_exact1d", near1, NearestExact)
  OCL_RESAMPLE("_upsample_nearest_exact2d", near2, NearestExact)
  OCL_RESAMPLE("_upsample_nearest_exact3d", near3, NearestExact)
  OCL_RESAMPLE("upsample_linear1d", smooth1, Linear)
  OCL_RESAMPLE("upsample_trilinear3d", smooth3, Linear)
  OCL_RESAMPLE("upsample_bicubic2d", smooth2, Cubic)
  OCL_RESAMPLE("_upsample_bilinear2d_aa", smooth2, LinearAntialias)
  OCL_RESAMPLE("_upsample_bicubic2d_aa", smooth2, CubicAntialias)
#undef OCL_RESAMPLE
}

}  // namespace torch_ocl
