// Products on Hopper's matrix units: how their kernel is specialised, and the test of each
// specialisation.
#pragma once

#include <string>

#include "hopper_tiles.h"
#include "matmul.h"

namespace ocltensor::opencl {

enum class HopperKind : uint8_t { Half, BFloat, Tf32, Split };  // Split: float32 by planes
inline constexpr int64_t kHopperKinds = 4;

// How a kernel is specialised.
struct HopperProduct {
  HopperKind kind;
  int64_t columns;  // BN: 64, 128 or 256
  bool a_along_k, b_along_k, self;
  int64_t pieces = 1;  // of k

  bool planes() const { return kind == HopperKind::Split; }
  int64_t item() const { return kind == HopperKind::Tf32 ? 4 : 2; }  // bytes of what is multiplied
  int64_t stages() const {
    if (planes()) return columns == 64 ? 3 : 2;
    return columns == 256 ? 3 : 6;
  }
  Defines defines() const {
    constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float32};
    Defines d;
    d.type("TYPE", kTypes[static_cast<int>(kind)]).set("PLANES", planes() ? 3 : 1);
    d.set("TF32", kind == HopperKind::Tf32).set("BN", columns).set("STAGES", stages());
    d.set("A_ALONG_K", a_along_k).set("B_ALONG_K", b_along_k);
    return d.set("HAS_S", self && pieces == 1).set("PARTIAL", pieces > 1);
  }
  size_t index() const {
    const int64_t size = columns == 64 ? 0 : columns == 128 ? 1 : 2;
    const int64_t end = pieces > 1 ? 2 : self ? 1 : 0;
    return static_cast<size_t>(
        (((static_cast<int64_t>(kind) * 3 + size) * 2 + a_along_k) * 2 + b_along_k) * 3 + end);
  }
  int64_t steps(int64_t k) const { return divide_up(k, 128 / item()); }
  int64_t piece_steps(int64_t k) const { return divide_up(steps(k), pieces); }
};
inline constexpr int64_t kHopperProducts = kHopperKinds * 3 * 4 * 3;

// hopper.cpp: that kernel, for tests too.
void run_hopper_product(const OpCall& call, const MatmulProblem& problem,
                        const HopperProduct& product);

// hopper_proof.cpp: a product by the kernel (`what`: const HopperProduct*) against exact sums; says
// what is wrong, or nothing.
std::string wrong_hopper_product(const OpCall& call, const void* what);

}  // namespace ocltensor::opencl
