// Scaled dot product attention: the operators and their lists of algorithms.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::attention {

// fused.cpp
void fused_attention(OpCall& call);
void fused_attention_backward(OpCall& call);
const AlgorithmFamily& attention_forward_algorithms();
const AlgorithmFamily& attention_backward_algorithms();

const AlgorithmFamily& attention_weights_algorithms();  // attention.cpp

std::span<const OpEntry> attention_operators();

}  // namespace ocltensor::opencl::attention
