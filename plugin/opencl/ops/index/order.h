// Keys in their order, stably, by digits: for CPU drivers.
#pragma once

#include "call/op_call.h"

namespace ocltensor::opencl::index {

// `keys`: int64, contiguous; those that are not in [0, limit) come last, as `limit`. Both below
// 2^32. The result is one uint64 for each key: key << 32 | its position in `keys`.
Scratch keys_in_order(const OpCall& call, TensorView keys, int64_t limit);

}  // namespace ocltensor::opencl::index
