// Distances between rows.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl {

std::span<const OpEntry> distance_operators();

}  // namespace ocltensor::opencl
