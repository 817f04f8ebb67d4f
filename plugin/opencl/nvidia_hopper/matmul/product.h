// Products on Hopper's matrix units: how their kernel is specialised, and the proof of each
// specialisation.
#pragma once

#include <algorithm>
#include <string>

#include "kernels/defines.h"
#include "ops/matmul/guard.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/operand.h"
#include "tiles.h"

namespace ocltensor::opencl::nvidia_hopper {

enum class HopperKind : uint8_t {
  Half,
  BFloat,
  Tf32,
  Bf16x3
};  // Bf16x3: float32 by its bf16 parts
inline constexpr int64_t kHopperKinds = 4;

// How a kernel is specialised.
struct HopperProduct {
  HopperKind kind;
  int64_t columns;  // BN: one of kHopperColumns
  bool a_along_k, b_along_k, self;
  int64_t pieces = 1;    // of k: a sum is cut into so many
  bool aligned = false;  // see product.cl; false is right for all results

  bool bf16_parts() const { return kind == HopperKind::Bf16x3; }
  int64_t item() const { return kind == HopperKind::Tf32 ? 4 : 2; }  // bytes of a factor
  int64_t stages() const {
    if (bf16_parts()) return columns == 64 ? 3 : 2;
    return columns == 256 ? 3 : columns == 192 ? 4 : 6;
  }
  Defines defines() const {
    constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float32};
    Defines d;
    d.type(define::TYPE, kTypes[static_cast<int>(kind)])
        .set(define::BF16_PARTS, bf16_parts() ? 3 : 1);
    d.set(define::TF32, kind == HopperKind::Tf32)
        .set(define::BN, columns)
        .set(define::STAGES, stages());
    d.set(define::A_ALONG_K, a_along_k).set(define::B_ALONG_K, b_along_k);
    d.type(define::SELF_TYPE, kTypes[static_cast<int>(kind)]);
    d.set(define::ADD_SELF, self && pieces == 1).set(define::PARTIAL, pieces > 1);
    return d.set(define::ALIGNED, aligned);
  }
  size_t index() const {
    const auto size =
        static_cast<int64_t>(std::ranges::find(kHopperColumns, columns) - kHopperColumns.begin());
    const int64_t end = pieces > 1 ? 2 : self ? 1 : 0;
    const int64_t form =
        ((static_cast<int64_t>(kind) * kHopperColumnChoices + size) * 2 + a_along_k) * 2 +
        b_along_k;
    return static_cast<size_t>((form * 3 + end) * 2 + aligned);
  }
  int64_t steps(int64_t k) const { return divide_up(k, 128 / item()); }
  int64_t piece_steps(int64_t k) const { return divide_up(steps(k), pieces); }
};
inline constexpr int64_t kHopperProducts = kHopperKinds * kHopperColumnChoices * 4 * 3 * 2;

// Operands with lines along k or across it; bf16 parts of one are `matrices` apart.
using HopperOperand = matmul::Operand;
using matmul::operand_a, matmul::operand_b;

// Why the kernel is not for a problem, whatever its type; or nullptr.
const char* refuse_product(const matmul::Problem& problem);
// The cheapest tiles for the problem, and whether its result and self are aligned.
void choose_tiles(const OpCall& call, const matmul::Problem& problem, HopperProduct& product);
// Whether this specialisation has passed its proof on this driver; runs the proof if that is not
// known.
bool is_product_proven(const OpCall& call, const HopperProduct& product);
inline constexpr const char* kNotProven = "the kernel failed its test on this driver";
// Enqueues the kernel, on operands that the copy engine can read. With a guard it returns at once
// if the word has its value.
void enqueue_product(const OpCall& call, const matmul::Problem& problem,
                     const HopperProduct& product, const HopperOperand& a, const HopperOperand& b,
                     const matmul::Guard& guard);

extern const AlgorithmFor<matmul::Problem> kProduct;        // product.cpp: 16-bit types and TF32
extern const AlgorithmFor<matmul::Problem> kBf16x6Product;  // bf16_parts.cpp: float32

// Run a problem with this specialisation, copies of operands included; public for tests. The first
// is for 16-bit types and TF32, the second for float32.
void run_product(const OpCall& call, const matmul::Problem& problem, const HopperProduct& product);
void run_bf16x6_product(const OpCall& call, const matmul::Problem& problem,
                        const HopperProduct& product);

// product_proof.cpp: compares a product by the kernel (`what`: const HopperProduct*) with exact
// sums; returns what is wrong, or an empty text.
std::string wrong_hopper_product(const OpCall& call, const void* what);

}  // namespace ocltensor::opencl::nvidia_hopper
