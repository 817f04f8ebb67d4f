// Attention on Hopper's matrix units: one kernel's operands, and the test of each kernel.
#pragma once

#include <string>

#include "attention_hopper_params.h"
#include "fused.h"

namespace ocltensor::opencl {

// How kernels/attention/hopper.cl is specialised.
struct HopperVariant {
  DType type;          // Float16 or BFloat16
  int64_t depth;       // padded: 64 or 128
  int64_t warpgroups;  // that multiply: 2, or 3 of depth 64
  bool causal;

  int64_t tile_rows() const { return 64 * warpgroups; }
  Defines defines() const {
    Defines d;
    d.type("TYPE", type).set("DEPTH", depth).set("WARPGROUPS", warpgroups).set("CAUSAL", causal);
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

void enqueue_hopper_forward(const OpCall& call, const HopperForward& f);

// hopper_test.cpp: a small problem's results against the host's; empty if they are right.
std::string wrong_hopper_forward(const OpCall& call, const void* variant);

}  // namespace ocltensor::opencl
