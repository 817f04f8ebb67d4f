// Convolutions on Hopper's matrix units: operands in the form that the copy engine reads, the
// launches, and the proof of each specialisation.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/matmul/guard.h"
#include "plan.h"

namespace ocltensor::opencl::nvidia_hopper {

// What both gradients of a call share (Shared): staged maps and the guard of the products that
// use them. If a number of either map cannot be split, the plain kernel computes both gradients.
struct ConvHopperShared {
  struct Staged {
    tb_address address;
    std::array<int64_t, 8> layout;  // sizes and strides
    ConvHopperKind kind;
    ConvHopperMap map;
  };
  std::vector<Scratch> memory{};
  std::vector<Staged> maps{};
  matmul::Guard guard{};
};

// operands.cpp: the two operands of a problem, themselves or staged copies that live as long as
// this object. Numbers that cannot be split set the guard's word.
class ConvHopperOperands {
 public:
  ConvHopperOperands(const OpCall& call, const ConvHopperProblem& p, ConvHopperKind kind,
                     const matmul::Guard& guard);
  const ConvHopperMap& map() const { return map_; }
  const ConvHopperLines& lines() const { return lines_; }

 private:
  std::vector<Scratch> memory_;
  ConvHopperMap map_;
  ConvHopperLines lines_;
};
// The guard of a problem in bf16 parts, or none; its word is in `memory`, or in ConvHopperShared if
// the gradients share operands.
matmul::Guard hopper_guard(const OpCall& call, const ConvHopperProblem& p, ConvHopperKind kind,
                           std::vector<Scratch>& memory);
// The most bytes that the operands' bf16 parts can take.
int64_t hopper_bf16_parts_bytes(const ConvHopperProblem& p, ConvHopperKind kind);

// sum.cpp: the memory to which a product writes its sums, and the launch that adds them. Sums in
// pieces are float32; a gradient of weights always has such.
class ConvHopperResult {
 public:
  ConvHopperResult(const OpCall& call, const ConvHopperProblem& p, ConvHopperKind kind,
                   const ConvHopperProduct& product);
  bool in_pieces() const { return !memory_.empty(); }
  // The memory that the product writes: the sums, or the output from the product's first result on.
  MemoryRange memory() const { return in_pieces() ? memory_[0] : first(); }
  void describe(ConvHopperParams& params) const;
  void finish(const OpCall& call, const matmul::Guard& guard) const;

 private:
  MemoryRange first() const;  // the output, from the product's first result on
  const ConvHopperProblem& problem_;
  const ConvHopperProduct& product_;
  bool channels_last_;           // whether the sums are channels last
  std::vector<Scratch> memory_;  // of the sums in pieces; empty without pieces
};

extern const AlgorithmFor<conv::Problem> kConvolution;        // 16-bit types and TF32
extern const AlgorithmFor<conv::Problem> kBf16x6Convolution;  // float32 by its bf16 parts

// For tests: runs a convolution with these tiles; it is cut into pieces only if there are enough
// steps.
void run_hopper_convolution(const OpCall& call, const conv::Problem& p, ConvHopperKind kind,
                            const HopperTiles& tiles);

// convolution_proof.cpp: compares convolutions by a kernel (`what`: const ConvHopperVariant*) with
// exact sums; returns what is wrong, or an empty text.
std::string wrong_hopper_convolution(const OpCall& call, const void* what);
// The same comparison for any function `run`, which is given each problem and the number of its
// sample.
std::string wrong_convolution(const OpCall& call, const ConvHopperVariant& variant,
                              const std::function<void(const conv::Problem&, int sample)>& run);

}  // namespace ocltensor::opencl::nvidia_hopper
