// Resampling with one launch per dimension, where upsample.cpp has no kernel.
#include <algorithm>
#include <cstring>

#include "base/infer/common.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "kernels/upsample.h"
#include "resample_params.h"
#include "upsample.h"

namespace ocltensor::opencl::upsample {
namespace {

// Numbered as in resample_taps.h.
enum class Mode { Nearest, NearestExact, Linear, Cubic, LinearSmooth, CubicSmooth, LanczosSmooth };

template <typename T>
uint64_t step_bits(int64_t small, int64_t large, bool align, std::optional<double> scale) {
  T step = static_cast<T>(small) / static_cast<T>(large);
  if (align)
    step = large > 1 ? static_cast<T>(small - 1) / static_cast<T>(large - 1) : T(0);
  else if (scale && *scale > 0)
    step = static_cast<T>(1.0 / *scale);
  uint64_t bits = 0;
  std::memcpy(&bits, &step, sizeof step);
  return bits;
}

struct Resampling {
  Mode mode;
  bool backward, align;
  DType compute;
};

// Resamples [outer, from, inner] of `source` to `target`, which differ in the size of `dim` only.
void launch_dimension(const OpCall& call, const Resampling& what, TensorView target,
                      TensorView source, int64_t dim, std::optional<double> scale) {
  ResampleParams p{};
  p.outer = p.inner = 1;
  for (int64_t d = 0; d < source.ndim(); ++d)
    if (d != dim) (d < dim ? p.outer : p.inner) *= source.size(d);
  const int64_t from = source.size(dim), to = target.size(dim);
  p.small = static_cast<int32_t>(what.backward ? to : from);
  p.large = static_cast<int32_t>(what.backward ? from : to);
  p.align = what.align;
  const bool nearest = what.mode <= Mode::NearestExact;
  p.step = what.compute == DType::Float64 && !nearest
               ? step_bits<double>(p.small, p.large, what.align, scale)
               : step_bits<float>(p.small, p.large, what.align, scale);
  Defines d;
  d.type(define::IN, source.dtype())
      .type(define::OUT, target.dtype())
      .type(define::COMPUTE, what.compute);
  d.set(define::MODE, static_cast<int64_t>(what.mode)).set(define::BACKWARD, what.backward);
  d.set(define::MOVES, nearest && !what.backward);
  d.set(define::ROUNDED, !nearest && !is_floating(target.dtype()));
  d.set(define::INDEX, target.numel() < INT32_MAX ? "uint" : "ulong");
  const bool along = p.inner >= 16;
  const int64_t groups = divide_up(along ? p.inner : p.outer, 16) * (along ? p.outer : p.inner);
  p.chunks = by_style<int64_t>(call, std::clamp<int64_t>(64 / groups, 1, to), 1);
  p.pieces = by_style(call, groups * p.chunks, target.numel());
  const Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  call.launch(kernels::upsample::resample::resample, d, {.out = target, .in = source, .p = p})
      .run(division.global, division.local);
}

// Resamples all dimensions of a row-major tensor.
struct Resample {
  Resampling how;
  TensorView out, in;
};

// The last dimension comes first; intermediate sums are not rounded.
void run_dimensions(const OpCall& call, const Resample& what) {
  const bool nearest = what.how.mode <= Mode::NearestExact;
  const DType between = nearest && !what.how.backward ? what.in.dtype() : what.how.compute;
  std::vector<Scratch> memory;
  Dims sizes(what.in.sizes());
  TensorView current = what.in;
  std::vector<LocalTensor> steps;
  steps.reserve(sizes.size());
  for (int64_t d = what.in.ndim() - 1; d >= 2; --d) {
    sizes[static_cast<size_t>(d)] = what.out.size(d);
    const bool last = d == 2;
    if (!last)
      memory.push_back(call.scratch(static_cast<uint64_t>(numel(sizes) * size_of(between))));
    steps.emplace_back(last ? what.out.address() : memory.back().address(),
                       last ? what.out.dtype() : between, sizes);
    const auto from_last = static_cast<size_t>(what.in.ndim() - 1 - d);
    launch_dimension(call, what.how, steps.back(), current, d,
                     infer::resampling_scale(call.args(), from_last));
    current = steps.back().view();
  }
}

constinit const AlgorithmFor<Resample> kDimensions({.id = "resample.dimensions",
                                                    .description = "one dimension after another",
                                                    .last_resort = true},
                                                   Steps<takes_all<Resample>, run_dimensions>());

struct Traits {
  static std::string describe(const OpCall& call, const Resample& what) {
    return fmt::format("{} {} {} to {}", call.name(), name(what.in.dtype()),
                       to_string(what.in.sizes()), to_string(what.out.sizes()));
  }
};
using Algorithms = AlgorithmList<Resample, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("resample", resample_operators(), {&kDimensions});  // leaked
  return list;
}

void run(OpCall& call, Mode mode, bool backward) {
  check_outputs(call);
  const TensorView source = call.args().tensor(backward ? Arg::grad_output : Arg::self);
  const bool nearest = mode <= Mode::NearestExact;
  const bool bytes = source.dtype() == DType::UInt8;
  if (!is_floating(source.dtype()) && (backward || !(nearest || bytes)))
    unsupported(TB_REASON_DTYPE, "{}: {} is not supported", call.name(), name(source.dtype()));
  const int64_t rank = source.ndim();
  for (int64_t d = 2; d < rank; ++d)
    if (std::max(source.size(d), call.out(0).size(d)) >= (1 << 30))
      unsupported(TB_REASON_SIZE, "{}: dimensions are limited to 2^30 elements", call.name());
  const Resampling what{mode, backward, !nearest && call.args().boolean(Arg::align_corners),
                        is_floating(source.dtype()) ? compute_type(source.dtype())
                        : nearest                   ? source.dtype()
                                                    : DType::Float32};
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous in(call, source);
  ContiguousOutput out(call, call.out(0));
  algorithms().run(call, {what, out.view(), in.view()});
  out.finish();
}

template <Mode mode>
void forward(OpCall& call) {
  run(call, mode, false);
}
template <Mode mode>
void backward(OpCall& call) {
  run(call, mode, true);
}

#define OCL_RESAMPLE(name, mode) \
  {name ".out", forward<Mode::mode>}, { name "_backward.grad_input", backward<Mode::mode> }
constexpr OpEntry kOperators[] = {
    OCL_RESAMPLE("upsample_nearest1d", Nearest),
    OCL_RESAMPLE("upsample_nearest3d", Nearest),
    OCL_RESAMPLE("_upsample_nearest_exact1d", NearestExact),
    OCL_RESAMPLE("_upsample_nearest_exact2d", NearestExact),
    OCL_RESAMPLE("_upsample_nearest_exact3d", NearestExact),
    OCL_RESAMPLE("upsample_linear1d", Linear),
    OCL_RESAMPLE("upsample_trilinear3d", Linear),
    OCL_RESAMPLE("upsample_bicubic2d", Cubic),
    OCL_RESAMPLE("_upsample_bilinear2d_aa", LinearSmooth),
    OCL_RESAMPLE("_upsample_bicubic2d_aa", CubicSmooth),
    OCL_RESAMPLE("_upsample_lanczos2d_aa", LanczosSmooth),
};
#undef OCL_RESAMPLE

}  // namespace

std::span<const OpEntry> resample_operators() { return kOperators; }

const AlgorithmFamily& resample_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::upsample
