// fractional_max_pool2d and fractional_max_pool3d.
#include <algorithm>

#include "base/infer/common.h"
#include "call/division.h"
#include "fractional_params.h"
#include "kernels/pool.h"
#include "pool.h"

namespace ocltensor::opencl::pool {
namespace {

struct FractionalPool {
  TensorView out, indices, in, samples;  // row-major
  FractionalParams p;
};

void run_windows(const OpCall& call, const FractionalPool& pool) {
  const DType type = pool.in.dtype();
  Defines d;
  d.type(define::A, type);
  d.set(define::HALF, type == DType::Float16).set(define::BFLOAT, type == DType::BFloat16);
  FractionalParams p = pool.p;
  p.pieces = pool.out.numel();
  const Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  call.launch(
          kernels::pool::fractional::forward, d,
          {.out = pool.out, .index = pool.indices, .in = pool.in, .sample = pool.samples, .p = p})
      .run(division.global, division.local);
}

constinit const AlgorithmFor<FractionalPool> kWindows(
    {.id = "pool_fractional.windows",
     .description = "one window after another",
     .last_resort = true},
    Steps<takes_all<FractionalPool>, run_windows>());

struct Traits {
  static std::string describe(const OpCall& call, const FractionalPool& pool) {
    return fmt::format("{} {} {} results", call.name(), name(pool.in.dtype()), pool.out.numel());
  }
};
using Algorithms = AlgorithmList<FractionalPool, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("pool_fractional", kFractionalOperators, {&kWindows});  // leaked
  return list;
}

void forward(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self),
                   samples = call.args().tensor(Arg::random_samples);
  const TensorView result = call.out(0);
  FractionalParams p{};
  p.dims = static_cast<int32_t>(samples.size(2));
  const auto dims = static_cast<size_t>(p.dims), flat = 3 - dims;
  const Dims window = infer::spatial(call.args(), Arg::kernel_size, dims, {});
  if (flat == 1) p.in[0] = p.out[0] = p.window[0] = 1;
  for (size_t d = 0; d < dims; ++d) {
    const int64_t from_end = static_cast<int64_t>(d) - static_cast<int64_t>(dims);
    if (self.size(from_end) > INT32_MAX / 2)
      unsupported(TB_REASON_SIZE, "{}: dimensions are limited to 2^30 elements", call.name());
    p.in[flat + d] = static_cast<int32_t>(self.size(from_end));
    p.out[flat + d] = static_cast<int32_t>(result.size(from_end));
    p.window[flat + d] = static_cast<int32_t>(window[d]);
    // In two dimensions ATen's samples are in the order columns, rows.
    p.drawn[flat + d] = static_cast<int32_t>(dims == 2 ? 1 - d : d);
  }
  if (int64_t{p.out[0]} * p.out[1] * p.out[2] > INT32_MAX)
    unsupported(TB_REASON_SIZE, "{}: results are limited to 2^31 a plane", call.name());
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous in(call, self), drawn(call, samples);
  ContiguousOutput out(call, result), indices(call, call.out(1));
  algorithms().run(call, {out.view(), indices.view(), in.view(), drawn.view(), p});
  out.finish();
  indices.finish();
}

constexpr OpEntry kOperators[] = {{"fractional_max_pool2d.output", forward},
                                  {"fractional_max_pool3d.output", forward}};

}  // namespace

const std::span<const OpEntry> kFractionalOperators = kOperators;

const AlgorithmFamily& pool_fractional_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::pool
