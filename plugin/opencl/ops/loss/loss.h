// Losses with their backward operators.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::loss {

std::span<const OpEntry> loss_operators();
extern const std::span<const OpEntry> kCtcOperators;         // ctc.cpp
extern const std::span<const OpEntry> kNllOperators;         // nll.cpp
extern const std::span<const OpEntry> kMultilabelOperators;  // multilabel_margin.cpp

const AlgorithmFamily& loss_algorithms();
const AlgorithmFamily& ctc_loss_algorithms();
const AlgorithmFamily& nll_loss_algorithms();
const AlgorithmFamily& multilabel_margin_loss_algorithms();

}  // namespace ocltensor::opencl::loss
