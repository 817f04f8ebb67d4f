// Gradients of convolutions' weights on matrix units by mma.sync: how their kernel is specialised,
// and its proof.
#pragma once

#include <string>

#include "kernels/defines.h"
#include "nvidia_mma/matmul/tiles.h"
#include "ops/conv/conv.h"

namespace ocltensor::opencl::nvidia_mma {

// How a kernel is specialised, and into how many pieces the pixels are cut.
struct WeightMma {
  MmaKind kind;  // not Tf32x3
  size_t tile;   // in kMmaTiles
  int64_t pieces = 1;

  const MmaTile& form() const { return kMmaTiles[tile]; }
  size_t index() const {
    return (static_cast<size_t>(kind) * kMmaTiles.size() + tile) * 2 + (pieces > 1);
  }
  Defines defines(const Capabilities& caps) const;
};
inline constexpr size_t kWeightMmas = kMmaKinds * kMmaTiles.size() * 2;

extern const AlgorithmFor<conv::Problem> kWeight;

// Runs a problem with this specialisation; public for tests.
void run_weight(const OpCall& call, const conv::Problem& problem, const WeightMma& form);

// convolution_proof.cpp: compares gradients by the kernel (`what`: const WeightMma*) with exact
// sums; returns what is wrong, or an empty text.
std::string wrong_mma_weight(const OpCall& call, const void* what);

}  // namespace ocltensor::opencl::nvidia_mma
