// Losses with their backward operators.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> loss_operators();
extern const std::span<const OpEntry> kCtcOperators;         // ctc.cpp
extern const std::span<const OpEntry> kNllOperators;         // nll.cpp
extern const std::span<const OpEntry> kMultilabelOperators;  // multilabel_margin.cpp

}  // namespace ocltensor::opencl
