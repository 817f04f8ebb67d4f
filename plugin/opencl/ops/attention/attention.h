// Scaled dot product attention.
#pragma once

#include "ops/op_call.h"

namespace ocltensor::opencl {

// fused.cpp
void fused_attention(OpCall& call);
void fused_attention_backward(OpCall& call);

std::span<const OpEntry> attention_operators();

}  // namespace ocltensor::opencl
