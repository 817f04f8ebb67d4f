// The CPU backend's function tables: devices, and the parts that this backend declines.
#include "backend.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <tuple>

#include "generator.h"
#include "memory.h"
#include "ocltensor/error.h"
#include "registry.h"
#include "stream.h"

namespace ocltensor::cpu {
namespace {

tb_status count(int32_t* count, tb_error*) {
  *count = 1;
  return TB_OK;
}

uint64_t report_devices(char* text, uint64_t capacity) {
  static const char* line = "cpu: built-in CPU backend, 1 device";
  if (text != nullptr && capacity > 0) std::snprintf(text, capacity, "%s", line);
  return std::strlen(line);
}

tb_status properties(int32_t device, tb_device_properties* p, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    check(p != nullptr && p->struct_size >= TB_DEVICE_PROPERTIES_SIZE_V1,
          "tb_device_properties is missing or too small");
    const uint32_t size = p->struct_size;
    *p = {};
    p->struct_size = size;
    p->kind = TB_DEVICE_CPU;
    p->features = TB_FEATURE_FP64 | TB_FEATURE_FP16_ARITHMETIC | TB_FEATURE_UNIFIED_MEMORY;
    std::snprintf(p->name, sizeof p->name, "CPU");
    std::snprintf(p->vendor, sizeof p->vendor, "ocltensor");
    std::snprintf(p->platform, sizeof p->platform, "host");
    std::snprintf(p->driver_version, sizeof p->driver_version, "built in");
    std::snprintf(p->language_version, sizeof p->language_version, "C++20");
    p->global_memory = p->largest_allocation = p->recommended_memory = physical_memory();
    p->compute_units = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
    p->max_work_group_size = 1;
  });
}

tb_status synchronize(int32_t device, tb_error* error) {
  return guarded(error, [&] { check_device(device); });
}

// Declines any call of a part that this backend lacks.
template <typename... T>
tb_status lacking(T... arguments) {
  tb_error* error = std::get<sizeof...(T) - 1>(std::tuple(arguments...));
  return report(
      error, TB_UNSUPPORTED, TB_REASON_OPERATOR, 0,
      "the CPU backend has no custom kernels, profiler, capture, switches, native handles "
      "or graphs: use an OpenCL device");
}

tb_status no(int32_t* answer, tb_error*) {
  *answer = 0;
  return TB_OK;
}
tb_status none(uint32_t* count, tb_error*) {
  *count = 0;
  return TB_OK;
}

tb_status counters(tb_counters* c, tb_error* error) {
  return guarded(error, [&] {
    check(c != nullptr && c->struct_size >= TB_COUNTERS_SIZE_V1,
          "tb_counters is missing or too small");
    const uint32_t size = c->struct_size;
    *c = {};
    c->struct_size = size;
    c->operators = successful_calls();
    c->copies = copies();
    c->copied_bytes = copied_bytes();
  });
}

const tb_device_api kDevice = {
    .struct_size = sizeof(tb_device_api),
    .count = count,
    .report = report_devices,
    .properties = properties,
    .synchronize = synchronize,
};
const tb_kernel_api kKernel = {
    .struct_size = sizeof(tb_kernel_api),
    .compile = lacking,
    .destroy = lacking,
    .count = lacking,
    .at = lacking,
    .find = lacking,
    .launch = lacking,
    .request = lacking,
};
const tb_profiler_api kProfiler = {
    .struct_size = sizeof(tb_profiler_api),
    .start = lacking,
    .stop = lacking,
    .is_enabled = no,
    .push_range = lacking,
    .pop_range = lacking,
    .counters = counters,
    .begin_call = lacking,
    .end_call = lacking,
    .statistics = lacking,
    .reset_statistics = lacking,
    .print_statistics = lacking,
    .finish = lacking,
    .listen = lacking,
    .correlate = lacking,
};
const tb_capture_api kCapture = {
    .struct_size = sizeof(tb_capture_api),
    .is_enabled = no,
    .is_capturing = no,
    .start = lacking,
    .stop = lacking,
};
const tb_switch_api kSwitches = {
    .struct_size = sizeof(tb_switch_api),
    .set = lacking,
    .get = lacking,
    .count = none,
    .at = lacking,
    .report = lacking,
};
const tb_interop_api kInterop = {
    .struct_size = sizeof(tb_interop_api),
    .buffer = lacking,
    .queue = lacking,
    .context = lacking,
    .device = lacking,
    .shared_place = lacking,
    .shared_synchronize = lacking,
    .export_memory = lacking,
    .import_memory = lacking,
    .import_address = lacking,
    .release_import = lacking,
    .copy_from_library = lacking,
};
// Of graphs and their pools, none of which exists.
template <typename Handle>
tb_status destroy_none(Handle handle, tb_error* error) {
  return handle == nullptr ? TB_OK : lacking(error);
}
tb_status is_recording(tb_stream, int32_t* recording, tb_error* error) {
  return no(recording, error);
}
const tb_graph_api kGraph = {
    .struct_size = sizeof(tb_graph_api),
    .create_pool = lacking,
    .destroy_pool = destroy_none,
    .begin = lacking,
    .end = lacking,
    .is_recording = is_recording,
    .replay = lacking,
    .info = lacking,
    .destroy = destroy_none,
};

}  // namespace
}  // namespace ocltensor::cpu

namespace ocltensor {

const tb_api* cpu_api() {
  using namespace cpu;
  static const tb_api api = {
      .struct_size = sizeof(tb_api),
      .abi_major = TB_ABI_MAJOR,
      .abi_minor = TB_ABI_MINOR,
      .device = &kDevice,
      .stream = stream_api(),
      .event = event_api(),
      .memory = memory_api(),
      .transfer = transfer_api(),
      .operators = operator_api(),
      .generator = generator_api(),
      .kernel = &kKernel,
      .profiler = &kProfiler,
      .capture = &kCapture,
      .switches = &kSwitches,
      .interop = &kInterop,
      .graph = &kGraph,
  };
  return &api;
}

}  // namespace ocltensor
