// max_pool2d_with_indices, avg_pool2d, _adaptive_avg_pool2d and their gradients, over row-major
// planes.
#include "pool.h"

#include "base/infer/common.h"
#include "call/division.h"
#include "kernel_sources.h"
#include "pool_params.h"

namespace ocltensor::opencl {
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

// `self` and `result` are the images before and after pooling; a window's arguments start at
// `kernel`.
PoolParams params_for(const OpCall& call, TensorView self, TensorView result, size_t kernel = 0,
                      size_t dilation = 0) {
  PoolParams p{};
  Pair{p.in} = Dims{self.size(-2), self.size(-1)};
  Pair{p.out} = Dims{result.size(-2), result.size(-1)};
  if (self.size(-2) * self.size(-1) > INT32_MAX)
    unsupported(TB_REASON_ARGUMENT, "{}: images are limited to 2^31 elements", call.name());
  if (kernel == 0) return p;
  const Dims size = infer::spatial(call.args(), kernel, 2, {});
  Pair{p.kernel_size} = size;
  Pair{p.stride} = infer::spatial(call.args(), kernel + 1, 2, size);
  Pair{p.padding} = infer::spatial(call.args(), kernel + 2, 2, {});
  Pair{p.dilation} = dilation == 0 ? Dims{1, 1} : infer::spatial(call.args(), dilation, 2, {});
  return p;
}

Defines pool_defines(const OpCall& call, DType type, int64_t pieces) {
  Defines d;
  d.type("A", type)
      .set("CPU_STYLE", is_cpu_style(call))
      .set("INDEX", pieces < INT32_MAX ? "uint" : "ulong");
  return d;
}

void run(const OpCall& call, Launch& launch, PoolParams p, int64_t pieces, int64_t smallest) {
  const Division division = divide(call.caps(), pieces, smallest);
  p.pieces = pieces;
  p.per_item = division.per_item;
  launch.value(p).run(division.global, division.local);
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

// Whether pool_max_cpu.cl takes the call: its buffer holds padding, a row and a vector's reach past
// the last window.
bool fits_rows(const OpCall& call, DType type, const PoolParams& p) {
  constexpr int32_t kWidth = 1024;
  const int64_t reach =
      int64_t{p.stride[1]} * (p.out[1] + 32) + int64_t{p.kernel_size[1]} * p.dilation[1];
  return is_cpu_style(call) && is_floating(type) && type != DType::Float64 && p.stride[1] <= 2 &&
         reach <= kWidth && p.in[1] + p.padding[1] <= kWidth;
}

void max_pool(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(0);
  if (self.dtype() == DType::Bool)
    unsupported(TB_REASON_DTYPE, "max_pool2d is not supported for bool");
  const PoolParams p = params_for(call, self, call.out(0), 1, 4);
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  ContiguousOutput indices(call, call.out(1));
  const int64_t elements = out.view().numel();
  Defines d = pool_defines(call, self.dtype(), elements);
  const bool fast = fits_rows(call, self.dtype(), p);
  fast ? d.set("STEP", p.stride[1]) : d.set("LOWEST", lowest(self.dtype()));
  Launch launch = call.launch(
      fast ? kernel_sources::pool_pool_max_cpu : kernel_sources::pool_pool_max, "max_pool", d);
  bind(launch, out.view());
  bind(launch, indices.view());
  bind(launch, in.view());
  run(call, launch, p, is_cpu_style(call) ? elements / p.out[1] : elements, 1);
  out.finish();
  indices.finish();
}

void max_pool_backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(0);
  const TensorView out = call.out(0);
  infer::check_same_type(call.args(), gradient, out);
  const PoolParams p = params_for(call, out, gradient, 2, 5);
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous g(call, gradient);
  const Contiguous indices(call, call.args().tensor(7));
  ContiguousOutput result(call, out);
  const bool spread = is_cpu_style(call) && size_of(out.dtype()) >= 4;
  Launch launch = call.launch(kernel_sources::pool_pool_max_backward, spread ? "spread" : "gather",
                              pool_defines(call, out.dtype(), out.numel()));
  bind(launch, result.view());
  bind(launch, g.view());
  bind(launch, indices.view());
  run(call, launch, p, spread ? planes_of(out) : out.numel(), 1);
  result.finish();
}

// Whether pool_average_backward_cpu.cl takes the call: its buffer holds the sums of a row of
// windows, and the zeros that vectors read around them.
bool average_fits_rows(const OpCall& call, const PoolParams& p) {
  return is_cpu_style(call) && p.kernel_size[1] <= 16 && p.out[1] <= 1024 &&
         p.in[1] + p.padding[1] <= 960;
}

// Both directions: `self` is the tensor read, the output the one written.
void average(OpCall& call, bool backward, TensorView self, const PoolParams& p, bool adaptive) {
  infer::check_same_type(call.args(), self, call.out(0));
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const int64_t elements = out.view().numel();
  Defines d = pool_defines(call, self.dtype(), elements);
  d.set("ADAPTIVE", adaptive).set("STEP", p.stride[1] <= 2 ? p.stride[1] : 0);
  const Source& source = backward && average_fits_rows(call, p)
                             ? kernel_sources::pool_pool_average_backward_cpu
                             : kernel_sources::pool_pool_average;
  Launch launch = call.launch(source, backward ? "average_backward" : "average", d);
  bind(launch, out.view());
  bind(launch, in.view());
  run(call, launch, p, is_cpu_style(call) ? elements / out.view().size(-1) : elements, 1);
  out.finish();
}

// `options` is the position of count_include_pad.
PoolParams plain(const OpCall& call, TensorView self, TensorView result, size_t kernel,
                 size_t options) {
  PoolParams p = params_for(call, self, result, kernel);
  p.count_padding = call.args().boolean(options);
  p.divisor = static_cast<int32_t>(call.args().optional_integer(options + 1).value_or(0));
  return p;
}

void avg_pool(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(0);
  average(call, false, self, plain(call, self, call.out(0), 1, 5), false);
}
void avg_pool_backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(0);
  average(call, true, gradient, plain(call, call.out(0), gradient, 2, 6), false);
}
void adaptive_avg_pool(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(0);
  average(call, false, self, params_for(call, self, call.out(0)), true);
}
void adaptive_avg_pool_backward(OpCall& call) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(0);
  average(call, true, gradient, params_for(call, call.out(0), gradient), true);
}

constexpr OpEntry kOperators[] = {
    {"max_pool2d_with_indices.out", max_pool},
    {"max_pool2d_with_indices_backward.grad_input", max_pool_backward},
    {"avg_pool2d.out", avg_pool},
    {"avg_pool2d_backward.grad_input", avg_pool_backward},
    {"_adaptive_avg_pool2d.out", adaptive_avg_pool},
    {"_adaptive_avg_pool2d_backward.out", adaptive_avg_pool_backward},
};

}  // namespace

std::span<const OpEntry> pool_operators() { return kOperators; }

}  // namespace ocltensor::opencl
