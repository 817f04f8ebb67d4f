// The operators _fft_c2c, _fft_r2c and _fft_c2r: one-dimensional transforms, one after the other.
#include "fft.h"

#include <cmath>

#include "call/division.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::fft {
namespace {

// The transform of one dimension, with the kinds of its input and output.
struct Stage {
  Signal in, out;
  Transform transform;
};

// `sizes` are those that the stage sees, except that the dimension itself has `length` points.
Stage stage_of(const Dims& sizes, int64_t dim, int64_t length, bool forward) {
  Stage stage{Signal::Complex, Signal::Complex, {}};
  Transform& t = stage.transform;
  t.length = length;
  t.forward = forward;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (const auto at = static_cast<int64_t>(d); at != dim)
      (at < dim ? t.outer : t.inner) *= sizes[d];
  return stage;
}

// The factor of ATen's fft_norm_mode: 1, 1 / sqrt(points) or 1 / points.
double scale_of(int64_t normalization, double points) {
  check(normalization >= 0 && normalization <= 2, "fft: unknown normalization {}", normalization);
  return normalization == 0 ? 1 : normalization == 1 ? 1 / std::sqrt(points) : 1 / points;
}

// Results between stages alternate between two scratch buffers.
void run_stages(const OpCall& call, TensorView self, TensorView result,
                std::vector<Stage>& stages) {
  const DType compute = compute_type(complex_type(self.dtype()));
  double points = 1;
  int64_t largest = 0;  // elements between stages
  for (const auto& [reads, writes, t] : stages) {
    points *= static_cast<double>(t.length);
    largest = std::max(largest, t.outer * t.length * t.inner);
  }
  stages.back().transform.scale = scale_of(call.args().integer(Arg::normalization), points);
  std::vector<Scratch> memory;
  for (size_t need = std::min<size_t>(stages.size() - 1, 2); need > 0; --need)
    memory.push_back(call.scratch(static_cast<uint64_t>(largest * size_of(compute))));
  tb_address in = self.address();
  for (size_t i = 0; i < stages.size(); ++i) {
    auto& [reads, writes, t] = stages[i];
    t.compute = compute;
    const bool last = i + 1 == stages.size();
    const tb_address target = last ? result.address() : memory[i % 2].address();
    run_transform(call, {in, reads, i == 0 ? self.dtype() : compute},
                  {target, writes, last ? result.dtype() : compute}, t);
    in = target;
  }
}

// Makes all checks and accepts the call; returns the dimensions to transform.
Dims accepted_dims(OpCall& call) {
  check_outputs(call);
  Dims dims;
  for (const int64_t d : call.args().ints(Arg::dim))
    dims.push_back(wrap_dim(d, call.args().tensor(Arg::self).ndim()));
  (void)scale_of(call.args().integer(Arg::normalization), 1);
  call.accept();
  return dims;
}

void complex_to_complex(OpCall& call) {
  const Dims dims = accepted_dims(call);
  const TensorView self = call.args().tensor(Arg::self);
  if (self.numel() == 0) return;
  if (dims.empty()) return copy_tensor(call, call.out(0), self);
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const Dims sizes(self.sizes());
  std::vector<Stage> stages;
  for (const int64_t d : dims)
    stages.push_back(stage_of(sizes, d, self.size(d), call.args().boolean(Arg::forward)));
  run_stages(call, in.view(), out.view(), stages);
  out.finish();
}

// Transforms the last dimension first: it alone has real input; the others transform its complex
// results, all of them or the first half.
void real_to_complex(OpCall& call) {
  const Dims dims = accepted_dims(call);
  const TensorView self = call.args().tensor(Arg::self);
  if (call.out(0).numel() == 0) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const Dims sizes(out.view().sizes());
  std::vector<Stage> stages{stage_of(sizes, dims.back(), self.size(dims.back()), true)};
  stages[0].in = Signal::Real;
  if (call.args().boolean(Arg::onesided)) stages[0].out = Signal::Half;
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    stages.push_back(stage_of(sizes, dims[i], self.size(dims[i]), true));
  run_stages(call, in.view(), out.view(), stages);
  out.finish();
}

// Transforms the last dimension last: it alone has real results.
void complex_to_real(OpCall& call) {
  const Dims dims = accepted_dims(call);
  const TensorView self = call.args().tensor(Arg::self);
  if (call.out(0).numel() == 0) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  const Dims sizes(self.sizes());
  std::vector<Stage> stages;
  for (size_t i = 0; i + 1 < dims.size(); ++i)
    stages.push_back(stage_of(sizes, dims[i], self.size(dims[i]), false));
  stages.push_back(stage_of(sizes, dims.back(), call.args().integer(Arg::last_dim_size), false));
  stages.back().in = Signal::Half;
  stages.back().out = Signal::Real;
  run_stages(call, in.view(), out.view(), stages);
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_fft_c2c.out", complex_to_complex, true},
                                  {"_fft_r2c.out", real_to_complex, true},
                                  {"_fft_c2r.out", complex_to_real, true}};

}  // namespace

std::span<const OpEntry> fft_operators() { return kOperators; }

}  // namespace ocltensor::opencl::fft
