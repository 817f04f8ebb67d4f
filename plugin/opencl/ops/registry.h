// The plugin's operator table: every family's entries, joined with the schemas of src/base.
#pragma once

#include <span>

#include "call/op_call.h"

// What a tb_op handle points to.
struct tb_op_s : ocltensor::opencl::OpEntry {
  const ocltensor::Operator* op;
};

namespace ocltensor::opencl {

std::span<const tb_op_s> registry();
const tb_op_s* find_in_registry(std::string_view name);  // nullptr: not implemented here

// Declines an operator that the settings disable; prints the operator if OCLTENSOR_VERBOSE asks for
// it.
void steer_operator(const Policy& policy, const tb_op_s& op, const Stream& stream);
// Throws Error(TB_E_INVALID) if a pattern of `list` (OCLTENSOR_DISABLED_OPERATIONS) fits no
// operator.
void check_operations(std::string_view list);

}  // namespace ocltensor::opencl
