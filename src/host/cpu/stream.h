// Streams and events of the CPU backend: everything has happened when a call returns.
#pragma once

#include "tensor_backend/plugin.h"

namespace ocltensor::cpu {

const tb_stream_api* stream_api();
const tb_event_api* event_api();

}  // namespace ocltensor::cpu
