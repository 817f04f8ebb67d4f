// Convolutions: the problem, and the ordered list of algorithms for its three directions.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>

#include "call/algorithms.h"
#include "call/op_call.h"
#include "conv_params.h"
#include "ops/matmul/guard.h"

namespace ocltensor::opencl::conv {

// Forward: small = big * weight. Data: big = the transpose applied to small; also the forward of a
// transposed convolution. Weight: weight = the gradient from big and small. See conv_params.h for
// `big` and `small`.
enum class Direction : uint8_t { Forward, Data, Weight };
constexpr const char* kDirectionNames[] = {"forward", "data", "weight"};

// What the problems of one call (the two gradients) may share: the algorithm that runs first keeps
// here what it prepared of an operand that the second one reads, too.
struct Shared {
  const void* owner = nullptr;  // whose type it is: the provider's address
  std::shared_ptr<void> kept;

  // What this owner keeps, made at first; nullptr: another keeps something, or the call's commands
  // are dropped now (a dry run, a rehearsal that has stopped), which would leave it unwritten.
  template <typename Kept>
  Kept* of(const OpCall& call, const void* who) {
    if (call.stream().rehearsal().has_stopped()) return nullptr;
    if (owner == nullptr) *this = {who, std::make_shared<Kept>()};
    return owner == who ? static_cast<Kept*>(kept.get()) : nullptr;
  }
};

struct Problem {
  Direction direction;
  DType dtype;
  tb_address big, small, weight;
  std::optional<tb_address> bias;  // added to the output; Forward and Data only
  ConvParams params;               // geometry, strides
  Shared* shared = nullptr;        // or null: nothing is shared
};

// Runs one of the algorithms: see call/algorithms.h. To be called after call.accept().
void run_convolution(const OpCall& call, const Problem& problem);
const AlgorithmFamily& conv_algorithms();

extern const AlgorithmFor<Problem> kPointwise;        // pointwise.cpp: windows of one element
extern const AlgorithmFor<Problem> kPointwiseWeight;  // pointwise.cpp: GPUs
extern const AlgorithmFor<Problem> kGroupedChannels;  // grouped_channels.cpp: of channels_last maps
extern const AlgorithmFor<Problem> kGrouped;    // grouped.cpp: CPU drivers, few channels in a group
extern const AlgorithmFor<Problem> kDepthwise;  // depthwise.cpp: GPUs, few channels in a group
extern const AlgorithmFor<Problem> kWinograd;   // winograd.cpp: CPU drivers, windows of 3 x 3
extern const AlgorithmFor<Problem> kWinogradGpu;     // winograd_gpu.cpp
extern const AlgorithmFor<Problem> kDirect;          // direct.cpp: CPU drivers, forward and data
extern const AlgorithmFor<Problem> kWeightTiles;     // weight_rows.cpp: CPU drivers
extern const AlgorithmFor<Problem> kImplicit;        // implicit.cpp: GPUs, forward and data
extern const AlgorithmFor<Problem> kImplicitWeight;  // implicit_weight.cpp: GPUs
extern const AlgorithmFor<Problem> kColumns;  // columns.cpp: products of matrices over columns
extern const AlgorithmFor<Problem> kGeneral;  // general.cpp: anything

// For the algorithms: the operands' memory ranges; that of `bias` is empty where there is no bias.
MemoryRange memory_of_big(const Problem& problem);
MemoryRange memory_of_small(const Problem& problem);
MemoryRange memory_of_weight(const Problem& problem);
MemoryRange memory_of_bias(const Problem& problem);

// Whether lines that begin at `address` plus multiples of `strides` may be moved by vectors of four
// elements.
bool whole_vectors(tb_address address, DType type, std::initializer_list<int64_t> strides);

// general.cpp: the plain kernel, which runs only if the guard's word has its value.
void run_guarded_convolution(const OpCall& call, const Problem& p, const matmul::Guard& guard);

std::span<const OpEntry> conv_operators();

}  // namespace ocltensor::opencl::conv
