// Pointwise calls on alike tensors: floating, contiguous and of one shape, with numbers at most.
// Their result has that shape, and a type that depends on the arguments' types alone, so that it
// need not be inferred in each call. The last such call of each operator is remembered.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "base/call_plan.h"
#include "runtime/plugin.h"

namespace torch_ocl {

class Arguments;

// What a call's arguments are; 0: it is not of this kind. To be called after settle().
uint64_t known_key(const ocltensor::Operator& op, const Arguments& in);
void remember_result(const ocltensor::Operator& op, uint64_t key, at::ScalarType result);
// If the operator's last call had the same key: makes the output, or takes the given one where it
// is what inference would make and may be written to. False: the call is to be inferred.
bool has_known_result(const ocltensor::Operator& op, uint64_t key, const Arguments& in,
                      ocltensor::OutputMode mode, at::Tensor& out, tb_tensor& described);

}  // namespace torch_ocl
