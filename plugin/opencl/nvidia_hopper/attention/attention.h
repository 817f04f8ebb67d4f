// Attention on Hopper's matrix units: the operands of its kernels, and the proofs of these kernels.
#pragma once

#include <string>

#include "attention_hopper_params.h"
#include "kernels/defines.h"
#include "ops/attention/fused.h"

namespace ocltensor::opencl::nvidia_hopper {

// How kernels/nvidia_hopper/attention/forward.cl is specialised.
struct HopperVariant {
  DType type;          // Float16 or BFloat16
  int64_t depth;       // padded: 64 or 128
  int64_t warpgroups;  // warpgroups that multiply: 2, or 3 for depth 64
  bool causal;

  int64_t tile_rows() const { return 64 * warpgroups; }
  Defines defines() const {
    Defines d;
    d.type(define::TYPE, type)
        .set(define::DEPTH, depth)
        .set(define::WARPGROUPS, warpgroups)
        .set(define::CAUSAL, causal);
    return d;
  }
};

struct HopperForward {
  HopperVariant variant;
  int64_t batch, heads, key_heads, queries, keys, depth;
  double scale;
  tb_address query, key, value, out, sums;  // sums: 0 where they are not wanted
  HopperTensor query_layout, key_layout, value_layout;
  FlashTensor out_layout;
  int64_t most_groups;
};

// A call of backward. An address is 0 if that gradient is not wanted.
struct HopperBackward {
  DType type;     // Float16 or BFloat16
  int64_t panel;  // the padded depth, 64 or 128
  bool causal;
  int64_t batch, heads, key_heads, queries, keys, depth;
  double scale;
  tb_address query, key, value, grad, out, sums, grad_query, grad_key, grad_value;
  HopperTensor query_layout, key_layout, value_layout, grad_layout;
  FlashTensor grad_strides, out_strides, grad_query_strides, grad_key_strides, grad_value_strides;
  int64_t most_groups;
};

constexpr double kLog2E = 1.4426950408889634;

// Why both directions decline a problem, or nullptr.
const char* refuse_hopper(const OpCall& call, const attention::FusedProblem& p);
// Whether the copy engine can read the tensor, and every line begins at a full vector. An output
// must not be broadcast.
bool is_hopper_readable(TensorView t, bool output);
HopperTensor hopper_layout(TensorView t);
// How many heads are worked on together, in equal bundles whose keys and values fit the cache;
// those of a head take `bytes`.
int64_t hopper_bundle(int64_t heads, int64_t bytes, int64_t sharing);

extern const attention::FusedAlgorithm kForward, kBackward;  // forward.cpp, backward.cpp
extern const attention::FusedAlgorithm kBf16x6Forward, kBf16x6Backward;  // bf16x6.cpp

void enqueue_hopper_forward(const OpCall& call, const HopperForward& f);

void enqueue_hopper_backward(const OpCall& call, const HopperBackward& b);

// forward_proof.cpp, backward_proof.cpp: compare a small problem's results with the host's; empty
// if they are right, else what is wrong.
std::string wrong_hopper_forward(const OpCall& call, const void* variant);
std::string wrong_hopper_backward(const OpCall& call, const void* sample);  // type, panel, causal

}  // namespace ocltensor::opencl::nvidia_hopper
