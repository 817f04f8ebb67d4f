// Memory and transfers of the CPU backend.
#pragma once

#include "tensor_backend/plugin.h"

namespace ocltensor::cpu {

const tb_memory_api* memory_api();
const tb_transfer_api* transfer_api();
uint64_t physical_memory();
uint64_t copies();
uint64_t copied_bytes();
void check_device(int32_t device);

}  // namespace ocltensor::cpu
