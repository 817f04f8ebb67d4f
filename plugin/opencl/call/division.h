// What operators with kernels of their own share: checks of outputs, and the division of work for
// the device's style.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

// Which types outputs may have: the inferred ones, those that they can be cast to, or any.
enum class OutputTypes : uint8_t { Inferred, Castable, Any };
// Checks the arguments (by inference), and the shapes and types of the outputs against the inferred
// ones, which it returns.
std::vector<TensorSpec> check_outputs(const OpCall& call,
                                      OutputTypes types = OutputTypes::Inferred);
// The same for a call whose outputs are like the tensors of `list`: it makes no specification for
// each of hundreds of outputs.
void check_outputs_like(const OpCall& call, TensorViews list);

// How `count` pieces of work are divided. CPU style: about 64 work-items of at least `smallest`
// pieces each. GPU style: one work-item per piece. Kernels read it with FOR_EACH of
// kernels/include/range.h.
struct Division {
  Grid global{1, 1, 1};
  Grid local{1, 1, 1};
  int64_t per_item = 1;
};
Division divide(const Capabilities& caps, int64_t count, int64_t smallest = 1);
inline bool is_cpu_style(const OpCall& call) { return call.caps().style == KernelStyle::Cpu; }

// A size that one kernel takes differently on CPU drivers and on GPUs. Which kernel runs is decided
// elsewhere, by the styles of algorithms.
template <typename T>
T by_style(const OpCall& call, T cpu, T gpu) {
  return call.caps().style == KernelStyle::Cpu ? cpu : gpu;
}

}  // namespace ocltensor::opencl
