// Layer normalisation and its gradient: the rows, and how work-items of a device share them.
#pragma once

#include <optional>

#include "call/divide_up.h"
#include "call/op_call.h"

namespace ocltensor::opencl::norm {

struct LayerShape {
  int64_t rows = 1, n = 1;
};
// How a GPU's work-items share rows: see layer_gpu.cl.
struct LayerLayout {
  int64_t lanes, vector;
};
inline constexpr int64_t kHeld = 16;  // elements that a lane keeps in registers
inline bool is_held(const LayerLayout& l, const LayerShape& s) { return s.n <= kHeld * l.lanes; }

// An optional weight or bias, made contiguous.
struct LayerWeights {
  std::optional<Contiguous> tensor;
  LayerWeights() = default;
  LayerWeights(const OpCall& call, Arg argument) {
    if (const auto t = call.args().optional_tensor(argument)) tensor.emplace(call, *t);
  }
  operator MemoryRange() const { return tensor; }  // NOLINT: implicit on purpose
  std::optional<TensorView> view() const {
    return tensor ? std::optional(tensor->view()) : std::nullopt;
  }
};

LayerShape layer_shape(TensorView input, std::span<const int64_t> normalized);
// How many elements a work-item of a GPU loads at a time: 16 bytes of them, where all operands have
// type `type` and lie at multiples of 16 bytes; else 1.
int64_t vector_for(DType type, const LayerShape& s,
                   std::initializer_list<std::optional<TensorView>> operands);
LayerLayout layer_layout(const Capabilities& caps, const LayerShape& s, int64_t vector);
int64_t rows_per_item(const LayerShape& s);  // for CPU drivers
// The type that weight and bias share in the kernels; a mixture is declined.
DType layer_weight_type(const OpCall& call, DType fallback);
// What the kernels of both directions are told of the operands.
struct LayerTypes {
  DType compute, weights, x, statistics, out;
};
Defines layer_defines(const LayerTypes& types, bool has_weight, bool centred);
void add_gpu_defines(Defines& d, const OpCall& call, const LayerLayout& layout,
                     const LayerShape& s);
void run_gpu_rows(const OpCall& call, Launch launch, const LayerShape& s,
                  const LayerLayout& layout);
void run_cpu_rows(Launch launch, const LayerShape& s);
std::string layer_text(const OpCall& call, DType type, const LayerShape& s);

void layer_norm_backward(OpCall& call);  // layer_backward.cpp
void rms_norm_backward(OpCall& call);

}  // namespace ocltensor::opencl::norm
