// The CPU backend's operators, and how a call to one is checked and run.
#pragma once

#include "call.h"

namespace ocltensor::cpu {

const tb_operator_api* operator_api();
uint64_t successful_calls();

}  // namespace ocltensor::cpu
