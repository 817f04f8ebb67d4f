// native_layer_norm, _fused_rms_norm and their backward: rows that fit a cache
// or a work-group are normalised in one kernel.
#include "layer.h"

#include <algorithm>

#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/norm.h"
#include "norm.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::norm {

LayerShape layer_shape(TensorView input, std::span<const int64_t> normalized) {
  LayerShape s;
  const auto outer = static_cast<size_t>(input.ndim()) - normalized.size();
  for (size_t d = 0; d < input.sizes().size(); ++d) (d < outer ? s.rows : s.n) *= input.sizes()[d];
  return s;
}

int64_t vector_for(DType type, const LayerShape& s,
                   std::initializer_list<std::optional<TensorView>> operands) {
  constexpr int64_t kBytes = 16;
  const bool known = type == DType::Float32 || type == DType::Float16 || type == DType::BFloat16;
  const int64_t vector = kBytes / size_of(type);
  const bool fits = std::ranges::all_of(operands, [&](const std::optional<TensorView>& t) {
    return !t || (t->dtype() == type && t->address() % kBytes == 0);
  });
  return known && fits && s.n % vector == 0 ? vector : 1;
}

// How many lanes share a row. With vectors: as many as the row needs for its registers, and more if
// rows are too few to fill the device. With single elements: so many that each has 8 or fewer.
LayerLayout layer_layout(const Capabilities& caps, const LayerShape& s, int64_t vector) {
  const int64_t group = reduce::group_size(caps),
                full = 1024 * static_cast<int64_t>(caps.compute_units);
  LayerLayout l{1, vector};
  if (vector == 1) {
    while (l.lanes < group && l.lanes * 8 < s.n) l.lanes *= 2;
    return l;
  }
  const auto grows = [&] {
    return l.lanes * kHeld < s.n || (s.rows * l.lanes < full && l.lanes * vector < s.n);
  };
  while (l.lanes < group && grows()) l.lanes *= 2;
  if (!is_held(l, s)) l.vector = 1;
  return l;
}

int64_t rows_per_item(const LayerShape& s) {
  return std::max({std::min<int64_t>(1024, divide_up(s.rows, 64)), 2048 / s.n, int64_t{1}});
}

DType layer_weight_type(const OpCall& call, DType fallback) {
  const auto w = call.args().optional_tensor(Arg::weight);
  const auto b = call.args().has(Arg::bias) ? call.args().optional_tensor(Arg::bias) : std::nullopt;
  if (w && b && w->dtype() != b->dtype())
    unsupported(TB_REASON_DTYPE, "{}: weight and bias of different types", call.name());
  return w ? w->dtype() : b ? b->dtype() : fallback;
}

Defines layer_defines(const LayerTypes& types, bool has_weight, bool centred) {
  Defines d;
  d.type(define::COMPUTE, types.compute)
      .type(define::W, types.weights)
      .type(define::X, types.x)
      .type(define::S, types.statistics)
      .type(define::OUT, types.out);
  return d.set(define::HAS_WEIGHT, has_weight).set(define::CENTRED, centred);
}
void add_gpu_defines(Defines& d, const OpCall& call, const LayerLayout& layout,
                     const LayerShape& s) {
  d.set(define::GROUP, reduce::group_size(call.caps())).set(define::VEC, layout.vector);
  if (is_held(layout, s)) d.set(define::HELD, 1);
}
void run_gpu_rows(const OpCall& call, Launch launch, const LayerShape& s,
                  const LayerLayout& layout) {
  const int64_t group = reduce::group_size(call.caps());
  launch.run({divide_up(s.rows, group / layout.lanes) * group, 1, 1}, {group, 1, 1});
}
void run_cpu_rows(Launch launch, const LayerShape& s) {
  launch.run({divide_up(s.rows, rows_per_item(s)), 1, 1}, {1, 1, 1});
}

std::string layer_text(const OpCall& call, DType type, const LayerShape& s) {
  return fmt::format("{} {} {} rows of {}", call.name(), name(type), s.rows, s.n);
}

namespace {

// All tensors are contiguous and not empty.
struct LayerProblem {
  LayerShape s;
  TensorView in;
  const LayerWeights &weight, &bias;
  TensorView out, scale;
  double eps;
  DType compute, weights;
  const TensorView* mean = nullptr;  // without it: the root mean square
  MemoryRange mean_range() const { return mean == nullptr ? MemoryRange(nullptr) : *mean; }
};

Defines forward_defines(const LayerProblem& p) {
  Defines d = layer_defines({p.compute, p.weights, p.in.dtype(), p.scale.dtype(), p.out.dtype()},
                            p.weight.tensor.has_value(), p.mean != nullptr);
  return d.set(define::HAS_BIAS, p.bias.tensor.has_value());
}

Planned<LayerLayout> plan_gpu(const OpCall& call, const LayerProblem& p) {
  return layer_layout(call.caps(), p.s,
                      vector_for(p.in.dtype(), p.s, {p.in, p.weight.view(), p.bias.view(), p.out}));
}
void run_gpu(const OpCall& call, const LayerProblem& p, const LayerLayout& layout) {
  Defines d = forward_defines(p);
  d.type(define::DY, p.in.dtype());  // of the kernel beside it in the file
  add_gpu_defines(d, call, layout, p.s);
  run_gpu_rows(call,
               call.launch(kernels::norm::layer_gpu::layer_norm, d,
                           {.x = p.in,
                            .w = p.weight,
                            .b = p.bias,
                            .out = p.out,
                            .mean = p.mean_range(),
                            .scale = p.scale,
                            .rows = p.s.rows,
                            .n = p.s.n,
                            .lanes = layout.lanes,
                            .eps = scalar_bits(p.eps, p.compute)}),
               p.s, layout);
}
void run_cpu(const OpCall& call, const LayerProblem& p) {
  run_cpu_rows(call.launch(kernels::norm::layer_cpu::layer_norm, forward_defines(p),
                           {.x = p.in,
                            .w = p.weight,
                            .b = p.bias,
                            .out = p.out,
                            .mean = p.mean_range(),
                            .scale = p.scale,
                            .rows = p.s.rows,
                            .n = p.s.n,
                            .per = rows_per_item(p.s),
                            .eps = scalar_bits(p.eps, p.compute)}),
               p.s);
}

constinit const AlgorithmFor<LayerProblem> kCpu({.id = "layer_norm.cpu",
                                                 .description = "a work-item takes whole rows",
                                                 .style = DeviceStyle::Cpu,
                                                 .last_resort = true},
                                                Steps<takes_all<LayerProblem>, run_cpu>());
constinit const AlgorithmFor<LayerProblem> kGpu({.id = "layer_norm.gpu",
                                                 .description = "work-items share rows",
                                                 .style = DeviceStyle::Gpu,
                                                 .last_resort = true},
                                                Steps<plan_gpu, run_gpu>());

struct LayerTraits {
  static std::string describe(const OpCall& call, const LayerProblem& p) {
    return layer_text(call, p.in.dtype(), p.s);
  }
};
using Algorithms = AlgorithmList<LayerProblem, LayerTraits>;

Algorithms& algorithms() {
  static Algorithms& list =  // leaked: threads may run while the process ends
      *new Algorithms("layer_norm", kLayerNormOperators, {&kCpu, &kGpu});
  return list;
}

void forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView input = call.args().tensor(Arg::input);
  const DType compute = compute_type(input.dtype());
  const DType w = layer_weight_type(call, compute);
  check(call.out(1).dtype() == call.out(2).dtype(), "{}: statistics of different types",
        call.name());
  call.accept();
  const LayerShape s = layer_shape(input, call.args().ints(Arg::normalized_shape));
  if (input.numel() == 0) {
    for (size_t i = 1; i < 3; ++i) copy::fill_tensor(call, call.out(i), 0);
    return;
  }
  const Contiguous in(call, input);
  const LayerWeights weight(call, Arg::weight), bias(call, Arg::bias);
  ContiguousOutput out(call, call.out(0)), mean(call, call.out(1)), scale(call, call.out(2));
  const TensorView mean_view = mean.view();
  algorithms().run(call, {s, in.view(), weight, bias, out.view(), scale.view(),
                          call.args().real(Arg::eps), compute, w, &mean_view});
  out.finish();
  mean.finish();
  scale.finish();
}

// Without a given eps: the compute type's, as in ATen.
double epsilon_of(DType type) { return type == DType::Float64 ? 0x1p-52 : 0x1p-23; }

void rms_forward(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView input = call.args().tensor(Arg::input);
  const DType compute = compute_type(input.dtype());
  const DType w = layer_weight_type(call, compute);
  call.accept();
  if (input.numel() == 0) return copy::fill_tensor(call, call.out(1), 0);
  const LayerShape s = layer_shape(input, call.args().ints(Arg::normalized_shape));
  const Contiguous in(call, input);
  const LayerWeights weight(call, Arg::weight), bias;
  ContiguousOutput out(call, call.out(0)), scale(call, call.out(1));
  const double eps = call.args().optional_real(Arg::eps).value_or(epsilon_of(compute));
  algorithms().run(call, {s, in.view(), weight, bias, out.view(), scale.view(), eps, compute, w});
  out.finish();
  scale.finish();
}

constexpr OpEntry kOperators[] = {{"native_layer_norm.out", forward},
                                  {"native_layer_norm_backward.out", layer_norm_backward},
                                  {"_fused_rms_norm.out", rms_forward},
                                  {"_fused_rms_norm_backward.out", rms_norm_backward}};

}  // namespace

const std::span<const OpEntry> kLayerNormOperators = kOperators;

const AlgorithmFamily& layer_norm_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::norm
