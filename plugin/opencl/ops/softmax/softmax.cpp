// softmax and log-softmax with their backward operators: rows of a contiguous [outer, n, inner].
#include "softmax.h"

#include <algorithm>
#include <optional>

#include "call/divide_up.h"
#include "kernel_sources.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl {
namespace {

struct Shape {
  int64_t outer = 1, n = 1, inner = 1;
};
Shape shape_of(TensorView self, int64_t dim) {
  Shape s;
  const int64_t at = wrap_dim(dim, self.ndim());
  for (int64_t d = 0; d < self.ndim(); ++d)
    (d < at ? s.outer : d == at ? s.n : s.inner) *= self.size(d);
  return s;
}

constexpr int64_t kHeld = 16;  // softmax_gpu.cl, long_rows.h: HELD

// An item takes 16 elements where that leaves enough groups, else 8.
int64_t lanes_for(const Capabilities& caps, const Shape& s) {
  const int64_t group = group_size(caps);
  const int64_t widest = s.inner == 1 ? group : std::max<int64_t>(1, group / 32);
  const int64_t busy = static_cast<int64_t>(caps.compute_units) * 4 * group;
  int64_t lanes = 1;
  while (lanes < widest &&
         (lanes * kHeld < s.n || (lanes * 8 < s.n && s.outer * s.inner * lanes < busy)))
    lanes *= 2;
  return lanes;
}

// GPUs: contiguous rows that the registers of a group do not hold are shared by several.
bool is_long(const OpCall& call, const Shape& s) {
  return call.caps().style == KernelStyle::Gpu && s.inner == 1 &&
         s.n > group_size(call.caps()) * kHeld;
}

// Two launches: numbers of each chunk, `numbers` of them, then the results. `source` has both
// kernels.
void run_long(const OpCall& call, const Source& source, const Defines& d, const Shape& s,
              std::initializer_list<TensorView> inputs, TensorView out, DType compute,
              int64_t numbers) {
  const int64_t group = group_size(call.caps());
  const int64_t splits = divide_up(s.n, group * kHeld);
  const int64_t chunk = divide_up(s.n, splits);
  const Scratch parts =
      call.scratch(static_cast<uint64_t>(s.outer * splits * numbers * size_of(compute)));
  for (const bool last : {false, true}) {
    Launch launch = call.launch(source, last ? "softmax_apply" : "softmax_part", d);
    for (const TensorView& in : inputs) bind(launch, in);
    launch.memory(parts.address(), 0, static_cast<int64_t>(parts.bytes()));
    if (last) bind(launch, out);
    launch.value(s.n).value(splits).value(chunk).run(
        {static_cast<size_t>(s.outer * splits * group), 1, 1}, {static_cast<size_t>(group), 1, 1});
  }
}

void run(const OpCall& call, Launch& launch, const Shape& s) {
  launch.value(s.outer).value(s.n).value(s.inner);
  if (call.caps().style == KernelStyle::Gpu) {
    const int64_t group = group_size(call.caps());
    const int64_t lanes = lanes_for(call.caps(), s);
    const auto groups = static_cast<size_t>(divide_up(s.outer * s.inner, group / lanes));
    launch.value(lanes).run({groups * static_cast<size_t>(group), 1, 1},
                            {static_cast<size_t>(group), 1, 1});
    return;
  }
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 2048;  // elements that are worth a work-item
  const int64_t units = s.inner == 1 ? s.outer : s.outer * divide_up(s.inner, 64);
  const int64_t per = std::max(
      {divide_up(units, kPieces), kSmallest / (s.n * std::min<int64_t>(s.inner, 64)), int64_t{1}});
  launch.value(per).run({static_cast<size_t>(divide_up(units, per)), 1, 1}, {1, 1, 1});
}

Defines common_defines(const OpCall& call, DType compute) {
  Defines d;
  const bool log = call.name().find("log_") != std::string::npos;
  d.type("COMPUTE", compute).set("LOG", log);
  if (call.caps().style == KernelStyle::Gpu)
    d.set("GROUP", group_size(call.caps()));
  else if (compute == DType::Float32)
    d.set("FAST_EXP", 1);
  return d;
}

void forward(OpCall& call) {
  (void)checked_outputs(call);
  const TensorView self = call.args().tensor(0);
  const Shape s = shape_of(self, call.args().integer(1));
  call.accept();
  if (self.numel() == 0) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const DType compute = compute_type(self.dtype());
  const DType result = out.view().dtype();
  Defines d = common_defines(call, compute);
  d.type("A", self.dtype()).type("OUT", result);
  if (is_long(call, s)) {
    run_long(call, kernel_sources::softmax_softmax_long_rows, d, s, {in.view()}, out.view(),
             compute, 2);
    return out.finish();
  }
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  if (gpu_style && s.inner == 1) d.set("UNIT", 1);
  if (!gpu_style && result == compute) d.set("KEEP", 1);
  const bool held = gpu_style && s.n <= lanes_for(call.caps(), s) * kHeld;
  Launch launch = call.launch(
      gpu_style ? kernel_sources::softmax_softmax_gpu : kernel_sources::softmax_softmax_cpu,
      held ? "softmax_held" : "softmax", d);
  bind(launch, in.view());
  bind(launch, out.view());
  run(call, launch, s);
  out.finish();
}

void backward(OpCall& call) {
  (void)checked_outputs(call);
  const TensorView grad = call.args().tensor(0);
  const TensorView result = call.args().tensor(1);
  const Shape s = shape_of(grad, call.args().integer(2));
  call.accept();
  if (grad.numel() == 0) return;
  const Contiguous a(call, grad);
  const Contiguous b(call, result);
  ContiguousOutput out(call, call.out(0));
  const DType compute = compute_type(grad.dtype());
  Defines d = common_defines(call, compute);
  d.type("A", grad.dtype()).type("B", result.dtype()).type("OUT", out.view().dtype());
  if (is_long(call, s)) {
    run_long(call, kernel_sources::softmax_softmax_long_rows_backward, d, s, {a.view(), b.view()},
             out.view(), compute, 1);
    return out.finish();
  }
  const bool gpu_style = call.caps().style == KernelStyle::Gpu;
  if (gpu_style && s.inner == 1) d.set("UNIT", 1);
  Launch launch = call.launch(gpu_style ? kernel_sources::softmax_softmax_backward_gpu
                                        : kernel_sources::softmax_softmax_backward_cpu,
                              "softmax", d);
  bind(launch, a.view());
  bind(launch, b.view());
  bind(launch, out.view());
  run(call, launch, s);
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_softmax.out", forward},
                                  {"_log_softmax.out", forward},
                                  {"_softmax_backward_data.out", backward},
                                  {"_log_softmax_backward_data.out", backward}};

}  // namespace

std::span<const OpEntry> softmax_operators() { return kOperators; }

}  // namespace ocltensor::opencl
