// Sorts keys stably by digits, for CPU drivers.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl::index {

// `keys`: int64, contiguous; keys outside of [0, limit) come last, as `limit`. Number of keys and
// limit must be below 2^32. The result is one uint64 for each key: key << 32 | its position in
// `keys`.
Scratch keys_in_order(const OpCall& call, TensorView keys, int64_t limit);

}  // namespace ocltensor::opencl::index
