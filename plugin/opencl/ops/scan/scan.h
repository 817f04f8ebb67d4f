// Cumulative operators.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::scan {

const AlgorithmFamily& scan_algorithms();
const AlgorithmFamily& scan_products_algorithms();
const AlgorithmFamily& scan_extremes_algorithms();

std::span<const OpEntry> scan_operators();

}  // namespace ocltensor::opencl::scan
