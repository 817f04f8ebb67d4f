// Convolutions: the problem, and the ordered list of algorithms for its three directions.
#pragma once

#include <memory>
#include <optional>

#include "call/algorithms.h"
#include "call/op_call.h"
#include "conv_params.h"
#include "ops/matmul/guard.h"

namespace ocltensor::opencl {

// Forward: small = big * weight. Data: big = the transpose applied to small; also the forward of a
// transposed convolution. Weight: weight = the gradient from big and small. See conv_params.h for
// `big` and `small`.
enum class ConvDirection : uint8_t { Forward, Data, Weight };
constexpr const char* kConvDirectionNames[] = {"forward", "data", "weight"};

// What the problems of one call, its two gradients, may share: the algorithm that runs first keeps
// here what it made of an operand that the other reads, too.
struct ConvShared {
  const void* owner = nullptr;  // whose type it is: the provider's address
  std::shared_ptr<void> kept;
};

struct ConvProblem {
  ConvDirection direction;
  DType dtype;
  tb_address big, small, weight;
  std::optional<tb_address> bias;  // added to the output; Forward and Data only
  ConvParams params;               // geometry, strides
  ConvShared* shared = nullptr;    // or nothing
};

using ConvAlgorithm = AlgorithmFor<ConvProblem>;

// Runs one of the algorithms: see call/algorithms.h. To be called after call.accept().
void run_convolution(const OpCall& call, const ConvProblem& problem);
const AlgorithmFamily& conv_algorithms();

extern const ConvAlgorithm kConvPointwise;    // pointwise.cpp: windows of one element
extern const ConvAlgorithm kConvGrouped;      // grouped.cpp: CPU drivers, few channels in a group
extern const ConvAlgorithm kConvDepthwise;    // depthwise.cpp: GPUs, few channels in a group
extern const ConvAlgorithm kConvDirect;       // direct.cpp: CPU drivers, forward and data
extern const ConvAlgorithm kConvWeightTiles;  // weight_rows.cpp: CPU drivers
extern const ConvAlgorithm kConvColumns;      // columns.cpp: products of matrices over columns
extern const ConvAlgorithm kConvGeneral;      // general.cpp: anything

// For the algorithms: the operands' memory, that of `bias` none where there is no bias.
MemoryRange memory_of_big(const ConvProblem& problem);
MemoryRange memory_of_small(const ConvProblem& problem);
MemoryRange memory_of_weight(const ConvProblem& problem);
MemoryRange memory_of_bias(const ConvProblem& problem);

// general.cpp: in plain arithmetic, if the guard's word has its value.
void run_guarded_convolution(const OpCall& call, const ConvProblem& p, const Guard& guard);

std::span<const OpEntry> conv_operators();

}  // namespace ocltensor::opencl
