// Cumulative operators.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

class AlgorithmFamily;
const AlgorithmFamily& scan_algorithms();
const AlgorithmFamily& scan_products_algorithms();
const AlgorithmFamily& scan_extremes_algorithms();

std::span<const OpEntry> scan_operators();

}  // namespace ocltensor::opencl
