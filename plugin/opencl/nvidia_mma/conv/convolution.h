// Convolutions as products on matrix units by mma.sync: how their kernel is specialised, and its
// proof.
#pragma once

#include <string>

#include "kernels/defines.h"
#include "nvidia_mma/matmul/tiles.h"
#include "ops/conv/conv.h"

namespace ocltensor::opencl::nvidia_mma {

// How a kernel is specialised, and into how many pieces the terms of a sum are cut.
struct ConvMma {
  MmaKind kind;  // not Tf32x3
  size_t tile;   // in kMmaTiles
  bool bias;
  int64_t pieces = 1;

  const MmaTile& form() const { return kMmaTiles[tile]; }
  size_t index() const {
    const size_t end = pieces > 1 ? 2 : bias ? 1 : 0;
    return (static_cast<size_t>(kind) * kMmaTiles.size() + tile) * 3 + end;
  }
  Defines defines(const Capabilities& caps) const;
};
inline constexpr size_t kConvMmas = kMmaKinds * kMmaTiles.size() * 3;

// The tiles that the kernels of convolutions can use on a device.
uint32_t usable_conv_tiles(const Capabilities& caps, MmaKind kind);

extern const AlgorithmFor<conv::Problem> kConvolution;

// Runs a problem with this specialisation; with more than one piece only where the target has no
// gaps between rows. Public for tests.
void run_convolution(const OpCall& call, const conv::Problem& problem, const ConvMma& form);

// convolution_proof.cpp: compares convolutions by the kernel (`what`: const ConvMma*) with exact
// sums; returns what is wrong, or an empty text.
std::string wrong_mma_convolution(const OpCall& call, const void* what);

}  // namespace ocltensor::opencl::nvidia_mma
