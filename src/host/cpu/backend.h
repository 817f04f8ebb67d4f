// The CPU backend: the same tables as a plugin's, linked into the host library.
#pragma once

#include "tensor_backend/plugin.h"

namespace ocltensor {

// Lives as long as the process. Addresses are host addresses.
const tb_api* cpu_api();

}  // namespace ocltensor
