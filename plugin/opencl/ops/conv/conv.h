// Convolutions: the problem, and the ordered list of implementations of its three directions.
#pragma once

#include <optional>

#include "call/algorithms.h"
#include "call/op_call.h"
#include "conv_params.h"

namespace ocltensor::opencl {

// Forward: small = big * weight. Data: big = the transpose applied to small; also the forward of a
// transposed convolution. Weight: weight = the gradient from big and small. See conv_params.h for
// `big` and `small`.
enum class ConvDirection : uint8_t { Forward, Data, Weight };
constexpr const char* kConvDirectionNames[] = {"forward", "data", "weight"};

struct ConvHopperShared;  // hopper.h

struct ConvProblem {
  ConvDirection direction;
  DType dtype;
  tb_address big, small, weight;
  std::optional<tb_address> bias;      // added to the output; Forward and Data only
  ConvParams params;                   // geometry, strides
  ConvHopperShared* shared = nullptr;  // what the problems of one call may share; none: nothing
};

using ConvImplementation = AlgorithmFor<ConvProblem>;

// Runs one of the implementations: see tune/algorithms.h. To be called after call.accept().
void run_convolution(const OpCall& call, const ConvProblem& problem);
const AlgorithmFamily& conv_algorithms();

extern const ConvImplementation kConvHopper,
    kConvHopperSplit;                            // hopper.cpp: matrix units
extern const ConvImplementation kConvPointwise;  // pointwise.cpp: windows of one element
extern const ConvImplementation kConvGrouped;  // grouped.cpp: CPU drivers, few channels in a group
extern const ConvImplementation kConvDepthwise;    // depthwise.cpp: GPUs, few channels in a group
extern const ConvImplementation kConvDirect;       // direct.cpp: CPU drivers, forward and data
extern const ConvImplementation kConvWeightTiles;  // weight_rows.cpp: CPU drivers
extern const ConvImplementation kConvColumns;      // columns.cpp: products of matrices over columns
extern const ConvImplementation kConvGeneral;      // general.cpp: anything

// For the implementations: operands as (address, byte range) arguments of a launch.
void bind_big(Launch& launch, const ConvProblem& problem);
void bind_small(Launch& launch, const ConvProblem& problem);
void bind_weight(Launch& launch, const ConvProblem& problem);
void bind_bias(Launch& launch, const ConvProblem& problem);

std::span<const OpEntry> conv_operators();

}  // namespace ocltensor::opencl
