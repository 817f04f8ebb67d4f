// Products on matrix units by mma.sync: how their kernel is specialised, and the proof of each
// specialisation.
#pragma once

#include <string>

#include "kernels/defines.h"
#include "nvidia_mma/generation.h"
#include "ops/matmul/guard.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/operand.h"
#include "tiles.h"

namespace ocltensor::opencl::nvidia_mma {

// The defines of mma_tile.h and mma.h.
Defines tile_defines(const Capabilities& caps, MmaKind kind, size_t tile, bool a_along_k,
                     bool b_along_k);
// The kind in which numbers of a type are multiplied as they are, if the device and the settings
// allow it.
Planned<MmaKind> kind_of(const OpCall& call, DType type);
constexpr DType type_of(MmaKind kind) {
  constexpr DType kTypes[] = {DType::Float16, DType::BFloat16, DType::Float32, DType::Float32,
                              DType::Int8};
  return kTypes[static_cast<int>(kind)];
}

// How a kernel is specialised.
struct MmaProduct {
  MmaKind kind;
  size_t tile;  // in kMmaTiles
  bool a_along_k, b_along_k, self;
  int64_t pieces = 1;                        // of k: a sum is cut into so many
  matmul::Parts parts = matmul::Parts::Of1;  // of groups
  bool float_result = false;                 // of 16-bit factors; self then may be float, too
  bool float_self = false;

  const MmaTile& form() const { return kMmaTiles[tile]; }
  DType type() const { return type_of(kind); }
  bool guarded() const { return kind == MmaKind::Tf32x3; }
  size_t index() const {
    const size_t end = pieces > 1 ? 2 : self ? 1 : 0;
    const size_t form_index = static_cast<size_t>(kind) * kMmaTiles.size() + tile;
    const size_t lines = (form_index * 2 + (a_along_k ? 1 : 0)) * 2 + (b_along_k ? 1 : 0);
    const size_t types = float_self ? 2 : float_result ? 1 : 0;
    return ((lines * 3 + end) * 4 + static_cast<size_t>(parts)) * 3 + types;
  }
  Defines defines(const Capabilities& caps) const;
};
inline constexpr size_t kMmaProducts = kMmaKinds * kMmaTiles.size() * 4 * 3 * 4 * 3;

// Enqueues the kernel, on operands with lines of 16-byte vectors. With a guard it returns at once
// if the word has its value.
void enqueue_product(const OpCall& call, const matmul::Problem& problem, const MmaProduct& product,
                     const matmul::Operand& a, const matmul::Operand& b,
                     const matmul::Guard& guard);

extern const AlgorithmFor<matmul::Problem> kProduct;        // product.cpp: 16-bit types and TF32
extern const AlgorithmFor<matmul::Problem> kTf32x3Product;  // tf32_parts.cpp: float32
extern const AlgorithmFor<matmul::Problem> kInt8Product;    // int8.cpp
extern const AlgorithmFor<matmul::GroupedProblem> kGroupedProduct, kGroupedTf32x3;  // grouped.cpp

// What both algorithms need: why the kernel is not for a problem, whatever its type, or nullptr;
// the cheapest specialisation that has passed its proof; why the rule takes another provider.
const char* refuse_product(const OpCall& call, const matmul::Problem& problem);
Planned<MmaProduct> proven_product(const OpCall& call, const matmul::Problem& problem, MmaKind kind,
                                   matmul::Parts parts = matmul::Parts::Of1);
const char* pass_over_provider(const OpCall& call);

// tf32_parts.cpp: why a product of this type is not made as three of TF32 numbers, why that would
// be no faster, or nullptr; sets the guard's word if a number of the operands, all of whose batch
// is looked at, is beyond what two TF32 numbers can hold.
const char* refuse_tf32_parts(const OpCall& call, DType type);
const char* pass_over_tf32_parts(const OpCall& call, const matmul::Problem& problem);
void find_numbers_beyond(const OpCall& call, const matmul::Problem& problem,
                         const matmul::Operand& a, const matmul::Operand& b,
                         const matmul::Guard& guard);

// Run a problem with this specialisation, copies of operands included; public for tests. The first
// is for 16-bit types, TF32 and int8, the second for float32.
void run_product(const OpCall& call, const matmul::Problem& problem, const MmaProduct& product);
void run_tf32x3_product(const OpCall& call, const matmul::Problem& problem,
                        const MmaProduct& product);
void run_grouped_product(const OpCall& call, const matmul::GroupedProblem& problem,
                         const MmaProduct& product);

// product_proof.cpp: compares a product by the kernel (`what`: const MmaProduct*) with exact sums;
// returns what is wrong, or an empty text.
std::string wrong_mma_product(const OpCall& call, const void* what);

}  // namespace ocltensor::opencl::nvidia_mma
