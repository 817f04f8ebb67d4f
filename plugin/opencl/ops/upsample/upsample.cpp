// upsample_nearest2d, upsample_bilinear2d and their gradients, over row-major planes.
#include "upsample.h"

#include <algorithm>
#include <cstring>

#include "call/division.h"
#include "kernel_sources.h"
#include "ops/copy/copy.h"
#include "upsample_params.h"

namespace ocltensor::opencl {
namespace {

enum class Mode { Nearest, Bilinear, AlignedCorners };

template <typename T>
uint64_t bits_of(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// Input positions per output position. Nearest counts in float32, as every backend does: in float64
// others could be nearest.
uint64_t step_bits(const OpCall& call, Mode mode, int64_t in, int64_t out,
                   std::optional<double> scale) {
  const bool given = scale && *scale > 0;
  if (mode == Mode::Nearest)
    return bits_of(given ? static_cast<float>(1.0 / *scale)
                         : static_cast<float>(in) / static_cast<float>(out));
  double step = given ? 1 / *scale : static_cast<double>(in) / static_cast<double>(out);
  if (mode == Mode::AlignedCorners)
    step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  return call.caps().fp64 ? bits_of(step) : bits_of(static_cast<float>(step));
}

// `source` is read, the output written; `small` is the image before upsampling, `scales` the
// position of scales_h.
void run(OpCall& call, const char* function, Mode mode, TensorView source,
         std::span<const int64_t> small, std::span<const int64_t> large, size_t scales) {
  const LocalTensor result = as_moved(call, call.out(0));
  const TensorView target = result;
  UpsampleParams p{};
  for (size_t d = 0; d < 2; ++d) {
    if (small[2 + d] > INT32_MAX || large[2 + d] > INT32_MAX)
      unsupported(TB_REASON_SIZE, "{}: images are limited to 2^31 rows and columns", call.name());
    p.in[d] = static_cast<int32_t>(small[2 + d]);
    p.out[d] = static_cast<int32_t>(large[2 + d]);
    p.step[d] = step_bits(call, mode, p.in[d], p.out[d], call.args().optional_real(scales + d));
  }
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous in(call, source);
  ContiguousOutput out(call, target);
  const int64_t elements = target.numel();
  Defines d;
  d.type("A", source.dtype())
      .set("FLOATING", is_floating(source.dtype()))
      .set("CPU_STYLE", is_cpu_style(call));
  d.set("LINEAR", mode != Mode::Nearest).set("CORNERS", mode == Mode::AlignedCorners);
  d.set("INDEX", elements < INT32_MAX ? "uint" : "ulong");
  p.pieces = is_cpu_style(call) ? elements / target.size(-1) : elements;
  const Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  constexpr int32_t kWidth = 1024;  // of the buffers in upsample_cpu.cl
  const bool fits = is_cpu_style(call) && std::max(p.in[1], p.out[1]) <= kWidth;
  Launch launch =
      call.launch(fits ? kernel_sources::upsample_upsample_cpu : kernel_sources::upsample_upsample,
                  function, d);
  bind(launch, out.view());
  bind(launch, in.view());
  launch.value(p).run(division.global, division.local);
  out.finish();
}

void forward(OpCall& call, Mode mode, size_t scales) {
  check_outputs(call);
  const TensorView self = call.args().tensor(0);
  if (mode != Mode::Nearest) call.need(self.dtype());
  run(call, "forward", mode, as_moved(call, self), self.sizes(), call.out(0).sizes(), scales);
}
void backward(OpCall& call, Mode mode, size_t scales) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(0);
  run(call, "backward", mode, gradient, call.out(0).sizes(), gradient.sizes(), scales);
}
Mode linear(bool corners) { return corners ? Mode::AlignedCorners : Mode::Bilinear; }

void nearest(OpCall& call) { forward(call, Mode::Nearest, 2); }
void nearest_backward(OpCall& call) { backward(call, Mode::Nearest, 3); }
void bilinear(OpCall& call) { forward(call, linear(call.args().boolean(2)), 3); }
void bilinear_backward(OpCall& call) { backward(call, linear(call.args().boolean(3)), 4); }

constexpr OpEntry kOperators[] = {
    {"upsample_nearest2d.out", nearest, false, true},
    {"upsample_nearest2d_backward.grad_input", nearest_backward},
    {"upsample_bilinear2d.out", bilinear},
    {"upsample_bilinear2d_backward.grad_input", bilinear_backward},
};

}  // namespace

std::span<const OpEntry> upsample_operators() { return kOperators; }

}  // namespace ocltensor::opencl
