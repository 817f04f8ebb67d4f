// Convolutions on Hopper's matrix units: operands as the copy engine reads them, the launches, and
// the test of each specialisation.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ops/matmul/guard.h"
#include "plan.h"

namespace ocltensor::opencl::nvidia_hopper {

// What both gradients of a call read (Shared): staged maps, and the one guard of whoever uses
// them: numbers of either that do not split leave both to the plain kernel.
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

// operands.cpp: the two operands of a problem, themselves or staged copies that live as long
// as this. Numbers that do not split set the guard's word.
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
// The guard of a problem in bf16 parts, else none; its word lives in `memory`, or with what is
// shared.
matmul::Guard hopper_guard(const OpCall& call, const ConvHopperProblem& p, ConvHopperKind kind,
                           std::vector<Scratch>& memory);
// Bytes of bf16 parts that the operands take at most.
int64_t hopper_bf16_parts_bytes(const ConvHopperProblem& p, ConvHopperKind kind);

// sum.cpp: where a product leaves its sums, and the launch that adds them. Sums in pieces
// are float; a gradient of weights always leaves such.
class ConvHopperResult {
 public:
  ConvHopperResult(const OpCall& call, const ConvHopperProblem& p, ConvHopperKind kind,
                   const ConvHopperProduct& product);
  bool in_pieces() const { return !memory_.empty(); }
  // What the product writes to: the sums, or its first result in the output.
  MemoryRange memory() const { return in_pieces() ? memory_[0] : first(); }
  void describe(ConvHopperParams& params) const;
  void finish(const OpCall& call, const matmul::Guard& guard) const;

 private:
  MemoryRange first() const;  // the product's first result in the output
  const ConvHopperProblem& problem_;
  const ConvHopperProduct& product_;
  bool channels_last_;           // the sums
  std::vector<Scratch> memory_;  // of sums, or none
};

extern const AlgorithmFor<conv::Problem> kConvolution;        // 16-bit types and TF32
extern const AlgorithmFor<conv::Problem> kBf16x6Convolution;  // float32 by its bf16 parts

// For tests: a convolution by the kernel with these columns, and pieces if there are as many steps.
void run_hopper_convolution(const OpCall& call, const conv::Problem& p, ConvHopperKind kind,
                            const HopperTiles& tiles);

// convolution_proof.cpp: convolutions by a kernel (`what`: const ConvHopperVariant*) against exact
// sums; says what is wrong, or nothing.
std::string wrong_hopper_convolution(const OpCall& call, const void* what);
// The same comparison for any function `run` that is given the problems; `sample` tells which.
std::string wrong_convolution(const OpCall& call, const ConvHopperVariant& variant,
                              const std::function<void(const conv::Problem&, int sample)>& run);

}  // namespace ocltensor::opencl::nvidia_hopper
