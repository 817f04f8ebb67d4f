// What the kit holds a plugin to: the rules that tensor_backend/plugin.h states at its beginning,
// and the declarations whose comments say what a function does. A failure names one of them.
#pragma once

#include <span>

namespace ocltensor::conformance::rule {

inline constexpr const char *kSizes = "Rule \"sizes\"", *kTables = "Rule \"tables\"",
                            *kStatus = "Rule \"status\"", *kNames = "Rule \"names\"",
                            *kBounds = "Rule \"bounds\"", *kThreads = "Rule \"threads\"",
                            *kProcess = "Rule \"process\"", *kExports = "The two exports",
                            *kDescriptor = "tb_plugin_descriptor_t", *kDevice = "tb_device_api",
                            *kProperties = "tb_device_properties", *kStream = "tb_stream_api",
                            *kEvent = "tb_event_api", *kMemory = "tb_memory_api",
                            *kStatistics = "tb_memory_stats", *kTransfer = "tb_transfer_api",
                            *kOperators = "tb_operator_api", *kCall = "tb_call",
                            *kGenerator = "tb_generator_api", *kKernel = "tb_kernel_api",
                            *kProfiler = "tb_profiler_api", *kSwitches = "tb_switch_api",
                            *kGraph = "tb_graph_api", *kError = "tb_error";

// All of them: each is found in the header's text (see --rules).
inline constexpr const char* kAll[] = {
    kSizes,  kTables,     kStatus, kNames,    kBounds,   kThreads,    kProcess,  kExports,
    kDevice, kProperties, kStream, kEvent,    kMemory,   kStatistics, kTransfer, kOperators,
    kCall,   kGenerator,  kKernel, kProfiler, kSwitches, kGraph,      kError,    kDescriptor};

}  // namespace ocltensor::conformance::rule
