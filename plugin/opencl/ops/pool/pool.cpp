// max_pool2d_with_indices, adaptive_max_pool2d, avg_pool2d, _adaptive_avg_pool2d and gradients,
// over row-major planes.
#include "pool.h"

#include <algorithm>

#include "base/infer/common.h"
#include "call/division.h"
#include "kernels/pool.h"
#include "pool_params.h"

namespace ocltensor::opencl::pool {
namespace {

struct Pair {
  int32_t* at;
  void operator=(const Dims& values) const {
    for (size_t d = 0; d < 2; ++d) {
      if (values[d] > INT32_MAX / 2)
        unsupported(TB_REASON_ARGUMENT, "pooling is limited to 2^30 rows and columns");
      at[d] = static_cast<int32_t>(values[d]);
    }
  }
};

int64_t planes_of(TensorView t) {
  return numel(t.sizes().first(static_cast<size_t>(t.ndim()) - 2));
}

// `self` and `result` are the images before and after pooling.
PoolParams params_for(const OpCall& call, TensorView self, TensorView result) {
  PoolParams p{};
  Pair{p.in} = Dims{self.size(-2), self.size(-1)};
  Pair{p.out} = Dims{result.size(-2), result.size(-1)};
  if (self.size(-2) * self.size(-1) > INT32_MAX)
    unsupported(TB_REASON_ARGUMENT, "{}: images are limited to 2^31 elements", call.name());
  const Args& args = call.args();
  if (!args.has(Arg::kernel_size)) return p;  // adaptive
  const Dims size = infer::spatial(args, Arg::kernel_size, 2, {});
  Pair{p.kernel_size} = size;
  Pair{p.stride} = infer::spatial(args, Arg::stride, 2, size);
  Pair{p.padding} = infer::spatial(args, Arg::padding, 2, {});
  Pair{p.dilation} =
      args.has(Arg::dilation) ? infer::spatial(args, Arg::dilation, 2, {}) : Dims{1, 1};
  return p;
}

// For kernels that count all elements.
void count_elements(Defines& d, int64_t elements) {
  d.set(define::INDEX, elements < INT32_MAX ? "uint" : "ulong");
}

// Divides the pieces among work-items and sets p.pieces and p.per_item.
Division divide_pieces(const OpCall& call, PoolParams& p, int64_t pieces) {
  const Division division = divide(call.caps(), pieces, 1);
  p.pieces = pieces;
  p.per_item = division.per_item;
  return division;
}

const char* lowest(DType type) {
  switch (type) {
    case DType::UInt8:
    case DType::Bool: return "0";
    case DType::Int8: return "CHAR_MIN";
    case DType::Int16: return "SHRT_MIN";
    case DType::Int32: return "INT_MIN";
    case DType::Int64: return "LONG_MIN";
    default: return "-INFINITY";
  }
}

struct Traits {
  template <typename Pool>
  static std::string describe(const OpCall& call, const Pool& pool) {
    const PoolParams& p = pool.p;
    return fmt::format("{} {} {} x {} to {} x {}", call.name(), name(pool.in.dtype()), p.in[0],
                       p.in[1], p.out[0], p.out[1]);
  }
};

// ---- Maxima: all tensors are row-major

struct MaxPool {
  TensorView out, indices, in;
  PoolParams p;
  bool adaptive;
};

// The buffer of pool_max_cpu.cl holds padding, a row, and the elements that a vector reads past the
// last window.
const char* refuse_max_rows(const OpCall&, const MaxPool& pool) {
  constexpr int32_t kWidth = 1024;
  const DType type = pool.in.dtype();
  const PoolParams& p = pool.p;
  const int64_t reach =
      int64_t{p.stride[1]} * (p.out[1] + 32) + int64_t{p.kernel_size[1]} * p.dilation[1];
  if (pool.adaptive) return "windows have several sizes";
  if (!is_floating(type) || type == DType::Float64) return "it is for floats of 16 and 32 bits";
  if (p.stride[1] > 2) return "the stride is above 2";
  return reach <= kWidth && p.in[1] + p.padding[1] <= kWidth ? nullptr : "rows are too long";
}

template <typename Arguments>
void launch_max(const OpCall& call, const MaxPool& pool, const KernelOf<Arguments>& kernel,
                const Defines& d, int64_t pieces) {
  PoolParams p = pool.p;
  const Division division = divide_pieces(call, p, pieces);
  call.launch(kernel, d, {.out = pool.out, .index = pool.indices, .in = pool.in, .p = p})
      .run(division.global, division.local);
}
void run_max_rows(const OpCall& call, const MaxPool& pool) {
  const int64_t elements = pool.out.numel();
  Defines d;
  d.type(define::A, pool.in.dtype()).set(define::STEP, pool.p.stride[1]);
  launch_max(call, pool, kernels::pool::pool_max_cpu::max_pool, d, elements / pool.p.out[1]);
}
void run_max_windows(const OpCall& call, const MaxPool& pool) {
  const int64_t elements = pool.out.numel();
  Defines d;
  d.type(define::A, pool.in.dtype());
  count_elements(d, elements);
  d.set(define::LOWEST, lowest(pool.in.dtype())).set(define::ADAPTIVE, pool.adaptive);
  launch_max(call, pool, kernels::pool::pool_max::max_pool, d,
             by_style(call, elements / pool.p.out[1], elements));
}

constinit const AlgorithmFor<MaxPool> kMaxRows(
    {.id = "pool_max.rows",
     .description = "maxima of columns, then of windows, in vectors",
     .style = DeviceStyle::Cpu},
    Steps<refuse_max_rows, run_max_rows>());
constinit const AlgorithmFor<MaxPool> kMaxWindows({.id = "pool_max.windows",
                                                   .description = "one window after another",
                                                   .last_resort = true},
                                                  Steps<takes_all<MaxPool>, run_max_windows>());

using MaxAlgorithms = AlgorithmList<MaxPool, Traits>;
MaxAlgorithms& max_algorithms() {
  static MaxAlgorithms& list =
      *new MaxAlgorithms("pool_max", pool_operators(), {&kMaxRows, &kMaxWindows});  // leaked
  return list;
}

template <bool adaptive>
void max_pool(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  if (self.dtype() == DType::Bool)
    unsupported(TB_REASON_DTYPE, "max_pool2d is not supported for bool");
  const PoolParams p = params_for(call, self, call.out(0));
  call.accept();
  if (!call.wants(0) || call.out(0).numel() == 0) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  ContiguousOutput indices(call, call.out(1));
  max_algorithms().run(call, {out.view(), indices.view(), in.view(), p, adaptive});
  out.finish();
  indices.finish();
}

// ---- Gradients of maxima

struct MaxGradient {
  TensorView out, in, indices;
  PoolParams p;
};

const char* refuse_spread(const OpCall&, const MaxGradient& pool) {
  return size_of(pool.out.dtype()) < 4 ? "sums of small types would be rounded at each step"
                                       : nullptr;
}
template <typename Arguments>
void launch_max_gradient(const OpCall& call, const MaxGradient& pool,
                         const KernelOf<Arguments>& kernel, int64_t pieces) {
  const int64_t elements = std::max(pool.out.numel(), pool.in.numel());
  PoolParams p = pool.p;
  const Division division = divide_pieces(call, p, pieces);
  Defines d;
  d.type(define::A, pool.out.dtype());
  count_elements(d, elements);
  // Argument names are those of the forward kernel: `in` is the tensor that the kernel reads.
  call.launch(kernel, d, {.in = pool.out, .out = pool.in, .index = pool.indices, .p = p})
      .run(division.global, division.local);
}
void run_spread(const OpCall& call, const MaxGradient& pool) {
  launch_max_gradient(call, pool, kernels::pool::pool_max_backward::spread, planes_of(pool.out));
}
void run_gather(const OpCall& call, const MaxGradient& pool) {
  launch_max_gradient(call, pool, kernels::pool::pool_max_backward::gather, pool.out.numel());
}

constinit const AlgorithmFor<MaxGradient> kSpread(
    {.id = "pool_max_backward.spread",
     .description = "a work-item adds a plane's gradients where they belong",
     .style = DeviceStyle::Cpu},
    Steps<refuse_spread, run_spread>());
constinit const AlgorithmFor<MaxGradient> kGather(
    {.id = "pool_max_backward.gather",
     .description = "an element of the input looks for the outputs that name it",
     .last_resort = true},
    Steps<takes_all<MaxGradient>, run_gather>());

using MaxBackwardAlgorithms = AlgorithmList<MaxGradient, Traits>;
MaxBackwardAlgorithms& max_backward_algorithms() {
  static MaxBackwardAlgorithms& list = *new MaxBackwardAlgorithms(
      "pool_max_backward", pool_operators(), {&kSpread, &kGather});  // leaked
  return list;
}

void max_pool_backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(Arg::grad_output);
  const TensorView out = call.out(0);
  infer::check_same_type(call.args(), gradient, out);
  const PoolParams p = params_for(call, out, gradient);
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous g(call, gradient);
  const Contiguous indices(call, call.args().tensor(Arg::indices));
  ContiguousOutput result(call, out);
  max_backward_algorithms().run(call, {result.view(), g.view(), indices.view(), p});
  result.finish();
}

// ---- Averages and their gradients: `in` is the tensor that is read

struct AveragePool {
  TensorView out, in;
  PoolParams p;
  bool backward, adaptive;
};

// The buffer of pool_average_backward_cpu.cl holds the sums of a row of windows, and the zeros
// around them that vectors read.
const char* refuse_average_rows(const OpCall&, const AveragePool& pool) {
  const PoolParams& p = pool.p;
  if (!pool.backward) return "it is for gradients";
  if (p.kernel_size[1] > 16) return "windows are wider than 16";
  return p.out[1] <= 1024 && p.in[1] + p.padding[1] <= 960 ? nullptr : "rows are too long";
}
template <typename Arguments>
void launch_average(const OpCall& call, const AveragePool& pool, const KernelOf<Arguments>& kernel,
                    Defines d = {}) {
  PoolParams p = pool.p;
  const int64_t elements = pool.out.numel();
  d.type(define::A, pool.in.dtype());
  d.set(define::ADAPTIVE, pool.adaptive).set(define::STEP, p.stride[1] <= 2 ? p.stride[1] : 0);
  const Division division =
      divide_pieces(call, p, by_style(call, elements / pool.out.size(-1), elements));
  call.launch(kernel, d, {.target = pool.out, .source = pool.in, .p = p})
      .run(division.global, division.local);
}
void run_average_rows(const OpCall& call, const AveragePool& pool) {
  launch_average(call, pool, kernels::pool::pool_average_backward_cpu::average_backward);
}
void run_average_windows(const OpCall& call, const AveragePool& pool) {
  namespace kernel = kernels::pool::pool_average;
  Defines d;
  count_elements(d, pool.out.numel());
  launch_average(call, pool, pool.backward ? kernel::average_backward : kernel::average, d);
}

constinit const AlgorithmFor<AveragePool> kAverageRows(
    {.id = "pool_average.rows",
     .description = "gradients: sums of a row of windows, in vectors",
     .style = DeviceStyle::Cpu},
    Steps<refuse_average_rows, run_average_rows>());
constinit const AlgorithmFor<AveragePool> kAverageWindows(
    {.id = "pool_average.windows", .description = "one window after another", .last_resort = true},
    Steps<takes_all<AveragePool>, run_average_windows>());

using AverageAlgorithms = AlgorithmList<AveragePool, Traits>;
AverageAlgorithms& average_algorithms() {
  static AverageAlgorithms& list = *new AverageAlgorithms(
      "pool_average", pool_operators(), {&kAverageRows, &kAverageWindows});  // leaked
  return list;
}

void average(OpCall& call, bool backward, TensorView self, const PoolParams& p, bool adaptive) {
  infer::check_same_type(call.args(), self, call.out(0));
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  average_algorithms().run(call, {out.view(), in.view(), p, backward, adaptive});
  out.finish();
}

PoolParams plain(const OpCall& call, TensorView self, TensorView result) {
  PoolParams p = params_for(call, self, result);
  p.count_padding = call.args().boolean(Arg::count_include_pad);
  p.divisor = static_cast<int32_t>(call.args().optional_integer(Arg::divisor_override).value_or(0));
  return p;
}

void avg_pool(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  average(call, false, self, plain(call, self, call.out(0)), false);
}
void avg_pool_backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(Arg::grad_output);
  average(call, true, gradient, plain(call, call.out(0), gradient), false);
}
void adaptive_avg_pool(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  average(call, false, self, params_for(call, self, call.out(0)), true);
}
void adaptive_avg_pool_backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(Arg::grad_output);
  average(call, true, gradient, params_for(call, call.out(0), gradient), true);
}

constexpr OpEntry kOperators[] = {
    {"max_pool2d_with_indices.out", max_pool<false>},
    {"adaptive_max_pool2d.out", max_pool<true>},
    {"max_pool2d_with_indices_backward.grad_input", max_pool_backward},
    {"avg_pool2d.out", avg_pool},
    {"avg_pool2d_backward.grad_input", avg_pool_backward},
    {"_adaptive_avg_pool2d.out", adaptive_avg_pool},
    {"_adaptive_avg_pool2d_backward.out", adaptive_avg_pool_backward},
};

}  // namespace

std::span<const OpEntry> pool_operators() { return kOperators; }

const AlgorithmFamily& pool_max_algorithms() { return max_algorithms().family(); }
const AlgorithmFamily& pool_max_backward_algorithms() { return max_backward_algorithms().family(); }
const AlgorithmFamily& pool_average_algorithms() { return average_algorithms().family(); }

}  // namespace ocltensor::opencl::pool
