// The tables behind tb_plugin_get_api, one per part of the ABI.
#pragma once

#include "ocltensor/error.h"
#include "tensor_backend/plugin.h"

namespace ocltensor::opencl {

extern const tb_device_api kDeviceApi;
extern const tb_stream_api kStreamApi;
extern const tb_event_api kEventApi;
extern const tb_memory_api kMemoryApi;
extern const tb_transfer_api kTransferApi;
extern const tb_operator_api kOperatorApi;
extern const tb_generator_api kGeneratorApi;
extern const tb_kernel_api kKernelApi;
extern const tb_profiler_api kProfilerApi;
extern const tb_capture_api kCaptureApi;
extern const tb_switch_api kSwitchApi;
extern const tb_interop_api kInteropApi;
extern const tb_graph_api kGraphApi;

// Refuses a null pointer argument by name.
template <typename T>
T& required(T* pointer, const char* name) {
  check(pointer != nullptr, "'{}' must not be NULL", name);
  return *pointer;
}

// Copies a result structure into the caller's, as far as the caller's struct_size permits.
template <typename T>
void fill_struct(T* target, T value, uint32_t smallest) {
  required(target, "result");
  check(target->struct_size >= smallest, "struct_size is {}, the smallest known version has {}",
        target->struct_size, smallest);
  value.struct_size = target->struct_size;
  __builtin_memcpy(target, &value,
                   target->struct_size < sizeof value ? target->struct_size : sizeof value);
}

}  // namespace ocltensor::opencl
