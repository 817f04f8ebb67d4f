// native_layer_norm and its backward: rows that fit a cache or a work-group are normalised in one
// kernel.
#include <algorithm>
#include <optional>

#include "call/divide_up.h"
#include "kernel_sources.h"
#include "norm.h"
#include "ops/copy/copy.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl {
namespace {

struct Shape {
  int64_t rows = 1, n = 1;
};
Shape shape_of(TensorView input, std::span<const int64_t> normalized) {
  Shape s;
  const auto outer = static_cast<size_t>(input.ndim()) - normalized.size();
  for (size_t d = 0; d < input.sizes().size(); ++d) (d < outer ? s.rows : s.n) *= input.sizes()[d];
  return s;
}

// How a GPU's work-items share rows: see layer_gpu.cl.
struct Layout {
  int64_t lanes, vector;
};
constexpr int64_t kHeld = 16;  // elements of a lane in registers
bool is_held(const Layout& l, const Shape& s) { return s.n <= kHeld * l.lanes; }

// Of 16 bytes, where all that is read and written by elements has type `type` and lies at multiples
// of that; else 1.
int64_t vector_for(DType type, const Shape& s,
                   std::initializer_list<std::optional<TensorView>> operands) {
  constexpr int64_t kBytes = 16;
  const bool known = type == DType::Float32 || type == DType::Float16 || type == DType::BFloat16;
  const int64_t vector = kBytes / size_of(type);
  const bool fits = std::ranges::all_of(operands, [&](const std::optional<TensorView>& t) {
    return !t || (t->dtype() == type && t->address() % kBytes == 0);
  });
  return known && fits && s.n % vector == 0 ? vector : 1;
}

// Vectors want lanes with all of their elements, where there are rows enough to fill the device.
Layout layout_for(const Capabilities& caps, const Shape& s, int64_t vector) {
  const int64_t group = group_size(caps), full = 1024 * static_cast<int64_t>(caps.compute_units);
  Layout l{1, vector};
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

// Of a CPU driver's work-item.
int64_t rows_per_item(const Shape& s) {
  return std::max({std::min<int64_t>(1024, divide_up(s.rows, 64)), 2048 / s.n, int64_t{1}});
}

// The last arguments (rows, n, rows per item or lanes) and the range; `eps` follows where it is
// given.
void run(const OpCall& call, Launch& launch, const Shape& s, const Layout& layout,
         const uint64_t* eps) {
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  const int64_t group = gpu_style ? group_size(call.caps()) : 1;
  const int64_t per = gpu_style ? layout.lanes : rows_per_item(s);
  const int64_t groups = gpu_style ? divide_up(s.rows, group / per) : divide_up(s.rows, per);
  launch.value(s.rows).value(s.n).value(per);
  if (eps != nullptr) launch.value(*eps);
  launch.run({static_cast<size_t>(groups * group), 1, 1}, {static_cast<size_t>(group), 1, 1});
}

// A contiguous optional argument.
struct Weights {
  std::optional<Contiguous> tensor;
  Weights(const OpCall& call, size_t argument) {
    if (const auto t = call.args().optional_tensor(argument)) tensor.emplace(call, *t);
  }
  void bind_to(Launch& launch) const {
    if (tensor)
      bind(launch, tensor->view());
    else
      launch.memory(0, 0, 0);
  }
  std::optional<TensorView> view() const {
    return tensor ? std::optional(tensor->view()) : std::nullopt;
  }
};

DType weight_type(const OpCall& call, size_t weight, size_t bias, DType fallback) {
  const auto w = call.args().optional_tensor(weight);
  const auto b = call.args().optional_tensor(bias);
  if (w && b && w->dtype() != b->dtype())
    unsupported(TB_REASON_DTYPE, "{}: weight and bias of different types", call.name());
  return w ? w->dtype() : b ? b->dtype() : fallback;
}

Defines defines_for(const OpCall& call, const Shape& s, const Layout& layout, DType compute,
                    DType w) {
  Defines d;
  d.type("COMPUTE", compute).type("W", w);
  if (call.caps().style == KernelStyle::Gpu) {
    d.set("GROUP", group_size(call.caps())).set("VEC", layout.vector);
    if (is_held(layout, s)) d.set("HELD", 1);
  }
  return d;
}

void forward(OpCall& call) {
  (void)checked_outputs(call);
  const TensorView input = call.args().tensor(0);
  const DType compute = compute_type(input.dtype());
  const DType w = weight_type(call, 2, 3, compute);
  check(call.out(1).dtype() == call.out(2).dtype(), "{}: statistics of different types",
        call.name());
  call.accept();
  const Shape s = shape_of(input, call.args().ints(1));
  if (input.numel() == 0) {
    for (size_t i = 1; i < 3; ++i) fill_tensor(call, call.out(i), 0);
    return;
  }
  const Contiguous in(call, input);
  const Weights weight(call, 2), bias(call, 3);
  ContiguousOutput out(call, call.out(0)), mean(call, call.out(1)), scale(call, call.out(2));
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  const Layout layout =
      layout_for(call.caps(), s,
                 vector_for(input.dtype(), s, {in.view(), weight.view(), bias.view(), out.view()}));
  Defines d = defines_for(call, s, layout, compute, w);
  d.type("X", input.dtype())
      .type("DY", input.dtype())
      .type("S", mean.view().dtype())
      .type("OUT", out.view().dtype());
  d.set("HAS_WEIGHT", weight.tensor.has_value()).set("HAS_BIAS", bias.tensor.has_value());
  Launch launch = call.launch(
      gpu_style ? kernel_sources::norm_layer_gpu : kernel_sources::norm_layer_cpu, "layer_norm", d);
  bind(launch, in.view());
  weight.bind_to(launch);
  bias.bind_to(launch);
  for (const ContiguousOutput* o : {&out, &mean, &scale}) bind(launch, o->view());
  const uint64_t eps = number_bits(call.args().real(4), compute);
  run(call, launch, s, layout, &eps);
  out.finish();
  mean.finish();
  scale.finish();
}

constexpr Reduction kWeightSums{2, {{"a * (b - c) * d", kAdd, "0", "x"}, {"a", kAdd, "0", "y"}}};
constexpr Reduction kWeightSum{1, {{"a * (b - c) * d", kAdd, "0", "x"}}};
constexpr Reduction kBiasSum{1, {{"a", kAdd, "0", "x"}}};

// Runs `what`, which sums rows of n, for each gradient that is wanted.
void sum_rows(const OpCall& call, ReduceLaunch what, int64_t n, bool of_weight, bool of_bias) {
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
  launch_reduce(call, what);
  for (auto& out : outs)
    if (out) out->finish();
}

// Sums over the rows: dy * (x - mean) * rstd, and dy.
void weight_gradients(const OpCall& call, TensorView dy, TensorView x, TensorView mean,
                      TensorView scale, const Shape& s, bool of_weight, bool of_bias) {
  const Dims sizes{s.rows, s.n};
  const LocalTensor parts[] = {LocalTensor(dy.address(), dy.dtype(), sizes),
                               LocalTensor(x.address(), x.dtype(), sizes),
                               LocalTensor(mean.address(), mean.dtype(), Dims{s.rows, 1}),
                               LocalTensor(scale.address(), scale.dtype(), Dims{s.rows, 1})};
  const TensorView views[] = {parts[0].view(), parts[1].view(), parts[2].view(), parts[3].view()};
  ReduceLaunch what{&kBiasSum, compute_type(x.dtype()), sizes, 1, {&views[0]}, {}};
  if (of_weight) {
    what.formula = of_bias ? &kWeightSums : &kWeightSum;
    what.inputs = {&views[0], &views[1], &views[2], &views[3]};
  }
  sum_rows(call, what, s.n, of_weight, of_bias);
}

constexpr Reduction kPartSums{2, {{"a", kAdd, "0", "x"}, {"b", kAdd, "0", "y"}}};

// What the work-items of layer_backward_cpu.cl add up on their way: a row of n sums each.
class PartSums {
 public:
  PartSums(const OpCall& call, const Shape& s, DType compute)
      : n_(s.n),
        items_(divide_up(s.rows, rows_per_item(s))),
        compute_(compute),
        dots_(call.scratch(static_cast<uint64_t>(items_ * s.n * size_of(compute)))),
        sums_(call.scratch(dots_.bytes())) {}
  // Rows so few that this costs more than sweeping them again, or so long that it leaves the cache.
  static bool pay(const Shape& s) { return rows_per_item(s) >= 8 && s.n <= 8192; }
  void bind_to(Launch& launch) const {
    for (const Scratch* m : {&dots_, &sums_})
      launch.memory(m->address(), 0, static_cast<int64_t>(m->bytes()));
  }
  void finish(const OpCall& call, bool of_weight, bool of_bias) const {
    const Dims sizes{items_, n_};
    const LocalTensor dots(dots_.address(), compute_, sizes),
        sums(sums_.address(), compute_, sizes);
    const TensorView views[] = {dots.view(), sums.view()};
    ReduceLaunch what{&kPartSums, compute_, sizes, 1, {&views[0], &views[1]}, {}};
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

void backward(OpCall& call) {
  (void)checked_outputs(call);
  const TensorView grad = call.args().tensor(0), input = call.args().tensor(1);
  const auto mask = call.args().booleans(7);
  const DType compute = compute_type(input.dtype());
  const DType w = weight_type(call, 5, 6, compute);
  const Shape s = shape_of(input, call.args().ints(2));
  check(Dims(grad.sizes()) == Dims(input.sizes()), "{}: grad_out has shape {}, input {}",
        call.name(), to_string(grad.sizes()), to_string(input.sizes()));
  for (size_t i = 3; i < 5; ++i)
    check(call.args().tensor(i).numel() == s.rows, "{}: mean and rstd must have {} elements",
          call.name(), s.rows);
  if (call.args().tensor(3).dtype() != call.args().tensor(4).dtype())
    unsupported(TB_REASON_DTYPE, "{}: mean and rstd of different types", call.name());
  call.accept();
  if (input.numel() == 0) {
    for (size_t i = 1; i < 3; ++i)
      if (mask[i]) fill_tensor(call, call.out(i), 0);
    return;
  }
  const Contiguous dy(call, grad), x(call, input), mean(call, call.args().tensor(3)),
      scale(call, call.args().tensor(4));
  std::optional<PartSums> parts;
  if (mask[0]) {
    const Weights weight(call, 5);
    ContiguousOutput out(call, call.out(0));
    const bool gpu_style = call.caps().style == KernelStyle::Gpu;
    const Layout layout =
        layout_for(call.caps(), s,
                   vector_for(input.dtype(), s, {dy.view(), x.view(), weight.view(), out.view()}));
    Defines d = defines_for(call, s, layout, compute, w);
    d.type("X", input.dtype())
        .type("DY", grad.dtype())
        .type("S", mean.view().dtype())
        .type("OUT", out.view().dtype());
    d.set("HAS_WEIGHT", weight.tensor.has_value()).set("HAS_BIAS", int64_t{0});
    if (!gpu_style && (mask[1] || mask[2]) && PartSums::pay(s)) parts.emplace(call, s, compute);
    if (!gpu_style) d.set("SUMS", parts.has_value());
    Launch launch = call.launch(
        gpu_style ? kernel_sources::norm_layer_gpu : kernel_sources::norm_layer_backward_cpu,
        gpu_style ? "layer_norm_backward" : "layer_norm", d);
    bind(launch, dy.view());
    bind(launch, x.view());
    weight.bind_to(launch);
    for (const Contiguous* c : {&mean, &scale}) bind(launch, c->view());
    bind(launch, out.view());
    if (parts)
      parts->bind_to(launch);
    else if (!gpu_style)
      launch.memory(0, 0, 0).memory(0, 0, 0);
    run(call, launch, s, layout, nullptr);
    out.finish();
  }
  if (parts)
    parts->finish(call, mask[1], mask[2]);
  else if (mask[1] || mask[2])
    weight_gradients(call, dy.view(), x.view(), mean.view(), scale.view(), s, mask[1], mask[2]);
}

constexpr OpEntry kOperators[] = {{"native_layer_norm.out", forward},
                                  {"native_layer_norm_backward.out", backward}};

}  // namespace

const std::span<const OpEntry> kLayerNormOperators = kOperators;

}  // namespace ocltensor::opencl
