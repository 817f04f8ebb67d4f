// native_layer_norm_backward and _fused_rms_norm_backward: the input's gradient
// row by row, those of weight and bias as sums over the rows.
#include <algorithm>
#include <optional>

#include "call/algorithms.h"
#include "call/division.h"
#include "kernels/norm.h"
#include "layer.h"
#include "norm.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::norm {
namespace {

constexpr reduce::Reduction kWeightSums{
    2, {{"a * (b - c) * d", reduce::kAdd, "0", "x"}, {"a", reduce::kAdd, "0", "y"}}};
constexpr reduce::Reduction kWeightSum{1, {{"a * (b - c) * d", reduce::kAdd, "0", "x"}}};
constexpr reduce::Reduction kRmsWeightSum{1, {{"a * b * c", reduce::kAdd, "0", "x"}}};
constexpr reduce::Reduction kBiasSum{1, {{"a", reduce::kAdd, "0", "x"}}};

// Runs `what`, a sum over rows of n elements, for each gradient that is wanted.
void sum_rows(const OpCall& call, reduce::ReduceLaunch what, int64_t n, bool of_weight,
              bool of_bias) {
  std::optional<ContiguousOutput> outs[2];
  std::optional<LocalTensor> flat[2];
  std::optional<TensorView> flat_views[2];
  size_t next = 0;
  for (size_t i = 0; i < 2; ++i) {
    if (!(i == 0 ? of_weight : of_bias)) continue;
    outs[i].emplace(call, call.out(i + 1));
    flat[i].emplace(outs[i]->view().address(), outs[i]->view().dtype(), Dims{n});
    flat_views[i].emplace(flat[i]->view());
    what.outs[next++] = &*flat_views[i];
  }
  reduce::launch_reduce(call, what);
  for (auto& out : outs)
    if (out) out->finish();
}

// The gradients of weight and bias: sums over the rows of dy * (x - mean) *
// rstd and of dy. Without a mean: of dy * x * rstd, for the weight alone.
void weight_gradients(const OpCall& call, TensorView dy, TensorView x, const TensorView* mean,
                      TensorView scale, const LayerShape& s, bool of_weight, bool of_bias) {
  const Dims sizes{s.rows, s.n};
  const TensorView centre = mean == nullptr ? scale : *mean;
  const LocalTensor tensors[] = {LocalTensor(dy.address(), dy.dtype(), sizes),
                                 LocalTensor(x.address(), x.dtype(), sizes),
                                 LocalTensor(centre.address(), centre.dtype(), Dims{s.rows, 1}),
                                 LocalTensor(scale.address(), scale.dtype(), Dims{s.rows, 1})};
  const TensorView views[] = {tensors[0].view(), tensors[1].view(), tensors[2].view(),
                              tensors[3].view()};
  reduce::ReduceLaunch what{&kBiasSum, compute_type(x.dtype()), sizes, 1, {&views[0]}, {}};
  if (mean == nullptr) {
    what.formula = &kRmsWeightSum;
    what.inputs = {&views[0], &views[1], &views[3]};
  } else if (of_weight) {
    what.formula = of_bias ? &kWeightSums : &kWeightSum;
    what.inputs = {&views[0], &views[1], &views[2], &views[3]};
  }
  sum_rows(call, what, s.n, of_weight, of_bias);
}

constexpr reduce::Reduction kPartialSums{
    2, {{"a", reduce::kAdd, "0", "x"}, {"b", reduce::kAdd, "0", "y"}}};

// Partial sums that each work-item of layer_backward_cpu.cl makes besides its rows: n of each kind.
class PartialSums {
 public:
  PartialSums(const OpCall& call, const LayerShape& s, DType compute)
      : n_(s.n),
        items_(divide_up(s.rows, rows_per_item(s))),
        compute_(compute),
        dots_(call.scratch(static_cast<uint64_t>(items_ * s.n * size_of(compute)))),
        sums_(call.scratch(dots_.bytes())) {}
  // Not if a work-item has so few rows that a second sweep costs less, or if the sums leave the
  // cache.
  static bool pay(const LayerShape& s) { return rows_per_item(s) >= 8 && s.n <= 8192; }
  const Scratch& dots() const { return dots_; }
  const Scratch& sums() const { return sums_; }
  void finish(const OpCall& call, bool of_weight, bool of_bias) const {
    const Dims sizes{items_, n_};
    const LocalTensor dots(dots_.address(), compute_, sizes),
        sums(sums_.address(), compute_, sizes);
    const TensorView views[] = {dots.view(), sums.view()};
    reduce::ReduceLaunch what{&kPartialSums, compute_, sizes, 1, {&views[0], &views[1]}, {}};
    if (!of_weight || !of_bias) {
      what.formula = &kBiasSum;
      what.inputs = {&views[of_weight ? 0 : 1]};
    }
    sum_rows(call, what, n_, of_weight, of_bias);
  }

 private:
  int64_t n_, items_;
  DType compute_;
  Scratch dots_, sums_;
};

// The input's gradient, and those of weight and bias that are wanted.
struct LayerGradient {
  LayerShape s;
  TensorView dy, x, scale;
  const LayerWeights& weight;
  TensorView out;
  bool of_weight, of_bias;
  DType compute, weights;
  const TensorView* mean = nullptr;  // without it: the root mean square
  MemoryRange mean_range() const { return mean == nullptr ? MemoryRange(nullptr) : *mean; }
};

Defines gradient_defines(const LayerGradient& p) {
  Defines d = layer_defines({p.compute, p.weights, p.x.dtype(), p.scale.dtype(), p.out.dtype()},
                            p.weight.tensor.has_value(), p.mean != nullptr);
  return d.type(define::DY, p.dy.dtype());
}

Planned<LayerLayout> plan_gradient_gpu(const OpCall& call, const LayerGradient& p) {
  return layer_layout(call.caps(), p.s,
                      vector_for(p.x.dtype(), p.s, {p.dy, p.x, p.weight.view(), p.out}));
}
void run_gradient_gpu(const OpCall& call, const LayerGradient& p, const LayerLayout& layout) {
  Defines d = gradient_defines(p);
  d.set(define::HAS_BIAS, false);  // of the kernel beside it in the file
  add_gpu_defines(d, call, layout, p.s);
  run_gpu_rows(call,
               call.launch(kernels::norm::layer_gpu::layer_norm_backward, d,
                           {.dy = p.dy,
                            .x = p.x,
                            .w = p.weight,
                            .mean = p.mean_range(),
                            .scale = p.scale,
                            .out = p.out,
                            .rows = p.s.rows,
                            .n = p.s.n,
                            .lanes = layout.lanes}),
               p.s, layout);
  if (p.of_weight || p.of_bias)
    weight_gradients(call, p.dy, p.x, p.mean, p.scale, p.s, p.of_weight, p.of_bias);
}

const char* refuse_sums(const OpCall&, const LayerGradient& p) {
  if (!p.of_weight && !p.of_bias) return "no gradient of the weights is wanted";
  return PartialSums::pay(p.s) ? nullptr : "rows are too few, or too long for the caches";
}
void run_gradient_cpu(const OpCall& call, const LayerGradient& p, const PartialSums* partials) {
  Defines d = gradient_defines(p);
  d.set(define::SUMS, partials != nullptr);
  run_cpu_rows(call.launch(kernels::norm::layer_backward_cpu::layer_norm, d,
                           {.dy = p.dy,
                            .x = p.x,
                            .w = p.weight,
                            .mean = p.mean_range(),
                            .scale = p.scale,
                            .out = p.out,
                            .dot = partials != nullptr ? MemoryRange(partials->dots()) : nullptr,
                            .sum = partials != nullptr ? MemoryRange(partials->sums()) : nullptr,
                            .rows = p.s.rows,
                            .n = p.s.n,
                            .per = rows_per_item(p.s)}),
               p.s);
}
void run_sums(const OpCall& call, const LayerGradient& p) {
  const PartialSums partials(call, p.s, p.compute);
  run_gradient_cpu(call, p, &partials);
  partials.finish(call, p.of_weight, p.of_bias);
}
void run_separately(const OpCall& call, const LayerGradient& p) {
  run_gradient_cpu(call, p, nullptr);
  if (p.of_weight || p.of_bias)
    weight_gradients(call, p.dy, p.x, p.mean, p.scale, p.s, p.of_weight, p.of_bias);
}

constinit const AlgorithmFor<LayerGradient> kGradientSums(
    {.id = "layer_norm_backward.cpu_sums",
     .description = "whole rows, with sums for the weights beside",
     .style = DeviceStyle::Cpu},
    Steps<refuse_sums, run_sums>());
constinit const AlgorithmFor<LayerGradient> kGradientCpu(
    {.id = "layer_norm_backward.cpu",
     .description = "a work-item takes whole rows",
     .style = DeviceStyle::Cpu,
     .last_resort = true},
    Steps<takes_all<LayerGradient>, run_separately>());
constinit const AlgorithmFor<LayerGradient> kGradientGpu(
    {.id = "layer_norm_backward.gpu",
     .description = "work-items share rows",
     .style = DeviceStyle::Gpu,
     .last_resort = true},
    Steps<plan_gradient_gpu, run_gradient_gpu>());

struct GradientTraits {
  static std::string describe(const OpCall& call, const LayerGradient& p) {
    return layer_text(call, p.x.dtype(), p.s);
  }
};
using GradientAlgorithms = AlgorithmList<LayerGradient, GradientTraits>;

GradientAlgorithms& gradient_algorithms() {
  static GradientAlgorithms& list = *new GradientAlgorithms(  // leaked, as above
      "layer_norm_backward", kLayerNormOperators, {&kGradientSums, &kGradientCpu, &kGradientGpu});
  return list;
}

}  // namespace

namespace {

void backward(OpCall& call, bool centred) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView grad = call.args().tensor(Arg::grad_out), input = call.args().tensor(Arg::input);
  const auto mask = call.args().booleans(Arg::output_mask);
  const bool of_bias = centred && mask[2];
  const DType compute = compute_type(input.dtype());
  const DType w = layer_weight_type(call, compute);
  const LayerShape s = layer_shape(input, call.args().ints(Arg::normalized_shape));
  check(Dims(grad.sizes()) == Dims(input.sizes()), "{}: grad_out has shape {}, input {}",
        call.name(), to_string(grad.sizes()), to_string(input.sizes()));
  const TensorView rstd = call.args().tensor(Arg::rstd);
  const TensorView centre = centred ? call.args().tensor(Arg::mean) : rstd;
  check(rstd.numel() == s.rows && centre.numel() == s.rows, "{}: statistics must have {} elements",
        call.name(), s.rows);
  if (centre.dtype() != rstd.dtype())
    unsupported(TB_REASON_DTYPE, "{}: mean and rstd of different types", call.name());
  call.accept();
  if (input.numel() == 0) {
    for (size_t i = 1; i < mask.size(); ++i)
      if (mask[i]) copy::fill_tensor(call, call.out(i), 0);
    return;
  }
  const Contiguous dy(call, grad), x(call, input), mean(call, centre), scale(call, rstd);
  const TensorView mean_view = mean.view();
  const TensorView* const used_mean = centred ? &mean_view : nullptr;
  if (mask[0]) {
    const LayerWeights weight(call, Arg::weight);
    ContiguousOutput out(call, call.out(0));
    gradient_algorithms().run(call, {s, dy.view(), x.view(), scale.view(), weight, out.view(),
                                     mask[1], of_bias, compute, w, used_mean});
    out.finish();
  } else if (mask[1] || of_bias) {
    weight_gradients(call, dy.view(), x.view(), used_mean, scale.view(), s, mask[1], of_bias);
  }
}

}  // namespace

void layer_norm_backward(OpCall& call) { backward(call, true); }
void rms_norm_backward(OpCall& call) { backward(call, false); }

const AlgorithmFamily& layer_norm_backward_algorithms() { return gradient_algorithms().family(); }

}  // namespace ocltensor::opencl::norm
