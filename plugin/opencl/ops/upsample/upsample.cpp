// upsample_nearest2d, upsample_bilinear2d and their gradients, over row-major planes.
#include "upsample.h"

#include <algorithm>

#include "base/infer/common.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/upsample.h"
#include "ops/copy/copy.h"
#include "upsample_params.h"

namespace ocltensor::opencl::upsample {
namespace {

enum class Mode { Nearest, Bilinear, AlignedCorners };

// Input positions per output position. Nearest counts in float32, as every backend does: in float64
// other positions could be nearest.
uint64_t step_bits(const OpCall& call, Mode mode, int64_t in, int64_t out,
                   std::optional<double> scale) {
  const bool given = scale && *scale > 0;
  if (mode == Mode::Nearest)
    return slot_bits(given ? static_cast<float>(1.0 / *scale)
                           : static_cast<float>(in) / static_cast<float>(out));
  double step = given ? 1 / *scale : static_cast<double>(in) / static_cast<double>(out);
  if (mode == Mode::AlignedCorners)
    step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  return call.caps().fp64 ? slot_bits(step) : slot_bits(static_cast<float>(step));
}

// One direction of a resampling; the tensors are row-major.
struct Upsampling {
  bool backward;
  Mode mode;
  TensorView out, in;
  UpsampleParams p;
};

// `pieces`: of the work, one after the other.
template <typename Arguments>
void launch_upsampling(const OpCall& call, const Upsampling& what, int64_t pieces,
                       const KernelOf<Arguments>& kernel, Defines d = {}) {
  const DType type = what.in.dtype();
  d.type(define::A, type).set(define::FLOATING, is_floating(type));
  d.set(define::LINEAR, what.mode != Mode::Nearest)
      .set(define::CORNERS, what.mode == Mode::AlignedCorners);
  UpsampleParams p = what.p;
  p.pieces = pieces;
  const Division division = divide(call.caps(), p.pieces);
  p.per_item = division.per_item;
  call.launch(kernel, d, {.target = what.out, .source = what.in, .p = p})
      .run(division.global, division.local);
}

// For kernels that count all elements.
Defines element_defines(const Upsampling& what) {
  Defines d;
  return d.set(define::INDEX, what.out.numel() < INT32_MAX ? "uint" : "ulong");
}

const char* refuse_rows(const OpCall&, const Upsampling& what) {
  constexpr int32_t kWidth = 1024;  // of the buffers in upsample_cpu.cl
  return std::max(what.p.in[1], what.p.out[1]) <= kWidth ? nullptr : "rows are too long";
}
void run_rows(const OpCall& call, const Upsampling& what) {
  namespace kernel = kernels::upsample::upsample_cpu;
  launch_upsampling(call, what, what.out.numel() / what.out.size(-1),
                    what.backward ? kernel::backward : kernel::forward);
}
void run_planes(const OpCall& call, const Upsampling& what) {
  namespace kernel = kernels::upsample::upsample;
  const int64_t elements = what.out.numel();
  launch_upsampling(call, what, by_style(call, elements / what.out.size(-1), elements),
                    what.backward ? kernel::backward : kernel::forward, element_defines(what));
}

constexpr int64_t kVector = 16;  // bytes, as in upsample_nearest.cl
const char* refuse_nearest(const OpCall&, const Upsampling& what) {
  if (what.mode != Mode::Nearest || what.backward) return "not nearest, forward";
  const int64_t bytes = size_of(what.in.dtype());
  if (bytes > 8) return "elements of 16 bytes";
  if (what.out.size(-1) * bytes % kVector != 0 || what.out.address() % kVector != 0)
    return "rows are not whole vectors";
  return nullptr;
}
void run_nearest(const OpCall& call, const Upsampling& what) {
  const int64_t bytes = size_of(what.in.dtype());
  Defines d = element_defines(what);
  d.set(define::BYTES, bytes);
  launch_upsampling(call, what, what.out.numel() * bytes / kVector,
                    kernels::upsample::upsample_nearest::forward, d);
}

constinit const AlgorithmFor<Upsampling> kRows({.id = "upsample.rows",
                                                .description = "rows that are read again are kept",
                                                .style = DeviceStyle::Cpu},
                                               Steps<refuse_rows, run_rows>());
constinit const AlgorithmFor<Upsampling> kNearest({.id = "upsample.nearest",
                                                   .description = "vectors of nearest elements",
                                                   .style = DeviceStyle::Gpu},
                                                  Steps<refuse_nearest, run_nearest>());
constinit const AlgorithmFor<Upsampling> kPlanes({.id = "upsample.planes",
                                                  .description = "one element after another",
                                                  .last_resort = true},
                                                 Steps<takes_all<Upsampling>, run_planes>());

struct Traits {
  static std::string describe(const OpCall& call, const Upsampling& what) {
    return fmt::format("{} {} {} x {} and {} x {}", call.name(), name(what.in.dtype()),
                       what.p.in[0], what.p.in[1], what.p.out[0], what.p.out[1]);
  }
};
using Algorithms = AlgorithmList<Upsampling, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("upsample", upsample_operators(), {&kRows, &kNearest, &kPlanes});  // leaked
  return list;
}

// `source` is read, call.out(0) written; `small` and `large` are the sizes before and after
// upsampling.
void run(OpCall& call, bool backward, Mode mode, TensorView source, std::span<const int64_t> small,
         std::span<const int64_t> large) {
  const LocalTensor result = copy::as_moved(call, call.out(0));
  const TensorView target = result;
  UpsampleParams p{};
  for (size_t d = 0; d < 2; ++d) {
    if (small[2 + d] > INT32_MAX || large[2 + d] > INT32_MAX)
      unsupported(TB_REASON_SIZE, "{}: images are limited to 2^31 rows and columns", call.name());
    p.in[d] = static_cast<int32_t>(small[2 + d]);
    p.out[d] = static_cast<int32_t>(large[2 + d]);
    p.step[d] =
        step_bits(call, mode, p.in[d], p.out[d], infer::resampling_scale(call.args(), 1 - d));
  }
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous in(call, source);
  ContiguousOutput out(call, target);
  algorithms().run(call, {backward, mode, out.view(), in.view(), p});
  out.finish();
}

void forward(OpCall& call, Mode mode) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  if (mode != Mode::Nearest) call.need(self.dtype());
  run(call, false, mode, copy::as_moved(call, self), self.sizes(), call.out(0).sizes());
}
void backward(OpCall& call, Mode mode) {
  check_outputs(call);
  const TensorView gradient = call.args().tensor(Arg::grad_output);
  run(call, true, mode, gradient, call.out(0).sizes(), gradient.sizes());
}
Mode linear(const OpCall& call) {
  return call.args().boolean(Arg::align_corners) ? Mode::AlignedCorners : Mode::Bilinear;
}

void nearest(OpCall& call) { forward(call, Mode::Nearest); }
void nearest_backward(OpCall& call) { backward(call, Mode::Nearest); }
void bilinear(OpCall& call) { forward(call, linear(call)); }
void bilinear_backward(OpCall& call) { backward(call, linear(call)); }

constexpr OpEntry kOperators[] = {
    {"upsample_nearest2d.out", nearest, false, true},
    {"upsample_nearest2d_backward.grad_input", nearest_backward},
    {"upsample_bilinear2d.out", bilinear},
    {"upsample_bilinear2d_backward.grad_input", bilinear_backward},
};

}  // namespace

std::span<const OpEntry> upsample_operators() { return kOperators; }

const AlgorithmFamily& upsample_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::upsample
