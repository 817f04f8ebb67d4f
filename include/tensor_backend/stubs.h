/* Defaults for every table and function of the C ABI, so that a backend writes only what it means.
 *
 *   static tb_plugin_api plugin;
 *   tb_stub_fill(&plugin);                // every table, every function
 *   plugin.device.count = my_count;       // ... and what the backend has
 *   *api = &plugin.api;                   // in tb_plugin_get_api
 *
 * Plain C11 and C++20; no allocation, no state. A default answers what the header and the
 * conformance kit demand of a backend that lacks the function:
 *  - most decline: TB_UNSUPPORTED with the function's name as text (rule "tables");
 *  - destroy and free accept "nothing" (NULL, address 0), and decline all else;
 *  - questions have an answer: no devices, no operators, no switches, nothing is pinned, nothing is
 *    recorded;
 *  - a bad value is TB_E_INVALID before anything is declined (ratios of memory limits, an index at
 *    the end of an empty list).
 * What to replace stands at each table. "At least" is what `ocltensor-conformance --minimal` asks
 * for; without --minimal the kit asks for the rest of memory, events with timing, generators and
 * the profiler's counters, too. Defaults know nothing of fork(): what you replace has to.
 */
#ifndef TENSOR_BACKEND_STUBS_H
#define TENSOR_BACKEND_STUBS_H

#include <stdio.h>

#include "tensor_backend/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN(misc-unused-parameters,modernize-use-nullptr): C, whose names tell what is given */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

/* Fills the caller's tb_error, which may be NULL, as the header says, and returns the status. For a
 * backend's own functions, too. */
static inline tb_status tb_stub_answer(tb_error* error, tb_status status, uint32_t reason,
                                       const char* text) {
  if (error == NULL || error->struct_size < TB_ERROR_SIZE_V1) return status;
  error->code = status;
  error->reason = reason;
  error->native = 0;
  if (error->message != NULL && error->capacity != 0)
    snprintf(error->message, (size_t)error->capacity, "%s", text);
  return status;
}

/* "this backend has no NAME" */
static inline tb_status tb_stub_decline(tb_error* error, const char* name) {
  char text[128];
  snprintf(text, sizeof text, "this backend has no %s", name);
  return tb_stub_answer(error, TB_UNSUPPORTED, TB_REASON_NONE, text);
}

#define TB_STUB_DECLINES(function, name, ...)                                \
  static inline tb_status tb_stub_##function(__VA_ARGS__, tb_error* error) { \
    return tb_stub_decline(error, name);                                     \
  }

/* ---- Devices. Replace at least all four. */
static inline tb_status tb_stub_device_count(int32_t* count, tb_error* error) {
  *count = 0;
  return TB_OK;
}
static inline uint64_t tb_stub_device_report(char* text, uint64_t capacity) {
  static const char kReport[] = "this backend has no devices";
  if (capacity != 0) snprintf(text, (size_t)capacity, "%s", kReport);
  return sizeof kReport - 1;
}
TB_STUB_DECLINES(device_properties, "device.properties", int32_t device,
                 tb_device_properties* properties)
TB_STUB_DECLINES(device_synchronize, "device.synchronize", int32_t device)

/* ---- Streams. Replace at least all but the rehearsals, which only compilers have. A backend that
 * runs everything within the call still has streams: objects that remember their device. */
TB_STUB_DECLINES(stream_default_stream, "stream.default_stream", int32_t device, tb_stream* stream)
TB_STUB_DECLINES(stream_create, "stream.create", int32_t device, int32_t priority,
                 tb_stream* stream)
static inline tb_status tb_stub_stream_destroy(tb_stream stream, tb_error* error) {
  return stream == NULL ? TB_OK : tb_stub_decline(error, "stream.destroy");
}
TB_STUB_DECLINES(stream_device, "stream.device", tb_stream stream, int32_t* device)
TB_STUB_DECLINES(stream_synchronize, "stream.synchronize", tb_stream stream)
TB_STUB_DECLINES(stream_query, "stream.query", tb_stream stream)
TB_STUB_DECLINES(stream_wait_event, "stream.wait_event", tb_stream stream, tb_event event)
TB_STUB_DECLINES(stream_begin_rehearsal, "stream.begin_rehearsal", tb_stream stream)
TB_STUB_DECLINES(stream_end_rehearsal, "stream.end_rehearsal", tb_stream stream, uint32_t* missing)
TB_STUB_DECLINES(stream_build_missing, "stream.build_missing", tb_stream stream, uint32_t* left)

/* ---- Events. Replace at least all but elapsed_ms; without that, `create` declines
 * TB_EVENT_TIMING. */
TB_STUB_DECLINES(event_create, "event.create", int32_t device, uint32_t flags, tb_event* event)
static inline tb_status tb_stub_event_destroy(tb_event event, tb_error* error) {
  return event == NULL ? TB_OK : tb_stub_decline(error, "event.destroy");
}
TB_STUB_DECLINES(event_record, "event.record", tb_event event, tb_stream stream)
TB_STUB_DECLINES(event_query, "event.query", tb_event event)
TB_STUB_DECLINES(event_synchronize, "event.synchronize", tb_event event)
TB_STUB_DECLINES(event_elapsed_ms, "event.elapsed_ms", tb_event start, tb_event end,
                 double* milliseconds)

/* ---- Memory. Replace at least allocate, free, record_use and info. record_use has no harmless
 * default: where work is asynchronous, memory that another stream uses must outlive it. `stats`
 * goes with both resets; the limits with stats. map and unmap only fit unified memory. */
TB_STUB_DECLINES(memory_allocate, "memory.allocate", int32_t device, uint64_t bytes,
                 tb_stream stream, tb_address* address)
static inline tb_status tb_stub_memory_free(tb_address address, tb_stream stream, tb_error* error) {
  return address == 0 ? TB_OK : tb_stub_decline(error, "memory.free");
}
TB_STUB_DECLINES(memory_record_use, "memory.record_use", tb_address address, tb_stream stream)
TB_STUB_DECLINES(memory_info, "memory.info", tb_address address, tb_memory_info* info)
TB_STUB_DECLINES(memory_stats, "memory.stats", int32_t device, tb_memory_stats* stats)
TB_STUB_DECLINES(memory_reset_peak_stats, "memory.reset_peak_stats", int32_t device)
TB_STUB_DECLINES(memory_reset_accumulated_stats, "memory.reset_accumulated_stats", int32_t device)
static inline tb_status tb_stub_memory_empty_cache(int32_t device, tb_error* error) {
  return TB_OK; /* no cache: nothing is unoccupied */
}
static inline tb_status tb_stub_memory_set_fraction(int32_t device, double fraction,
                                                    tb_error* error) {
  if (!(fraction >= 0 && fraction <= 2))
    return tb_stub_answer(error, TB_E_INVALID, TB_REASON_NONE, "the fraction is not in 0..2");
  return tb_stub_decline(error, "memory limits");
}
static inline tb_status tb_stub_memory_set_watermarks(int32_t device, double high, double low,
                                                      tb_error* error) {
  if (!(high >= 0 && low >= 0))
    return tb_stub_answer(error, TB_E_INVALID, TB_REASON_NONE, "a watermark is below 0");
  return tb_stub_decline(error, "memory limits");
}
TB_STUB_DECLINES(memory_allocate_host, "pinned memory", int32_t device, uint64_t bytes,
                 void** memory)
static inline tb_status tb_stub_memory_free_host(void* memory, tb_error* error) {
  return memory == NULL ? TB_OK : tb_stub_decline(error, "pinned memory");
}
static inline tb_status tb_stub_memory_is_host(const void* memory, int32_t* is_pinned,
                                               tb_error* error) {
  *is_pinned = 0;
  return TB_OK;
}
TB_STUB_DECLINES(memory_map, "memory.map", tb_address address, uint64_t bytes, tb_stream stream,
                 void** memory)
TB_STUB_DECLINES(memory_unmap, "memory.unmap", tb_address address, void* memory, tb_stream stream)

/* ---- Transfers. Replace at least all four: hosts build everything else on them. */
TB_STUB_DECLINES(transfer_to_device, "transfer.to_device", tb_stream stream, tb_address target,
                 const void* source, uint64_t bytes, uint32_t flags)
TB_STUB_DECLINES(transfer_to_host, "transfer.to_host", tb_stream stream, void* target,
                 tb_address source, uint64_t bytes, uint32_t flags)
TB_STUB_DECLINES(transfer_on_device, "transfer.on_device", tb_stream stream, tb_address target,
                 tb_stream source_stream, tb_address source, uint64_t bytes)
TB_STUB_DECLINES(transfer_fill, "transfer.fill", tb_stream stream, tb_address target,
                 const void* pattern, uint32_t pattern_bytes, uint64_t bytes)

/* ---- Operators. None is needed: a host moves data, and computes on its CPU where the user lets it
 * fall back. Replace all five together. */
static inline tb_status tb_stub_operator_count(uint32_t* count, tb_error* error) {
  *count = 0;
  return TB_OK;
}
static inline tb_status tb_stub_operator_at(uint32_t index, tb_op* op, tb_op_info* info,
                                            tb_error* error) {
  return tb_stub_answer(error, TB_E_INVALID, TB_REASON_NONE, "this backend has no operators");
}
static inline tb_status tb_stub_operator_find(const char* name, tb_op* op, tb_error* error) {
  return tb_stub_answer(error, TB_UNSUPPORTED, TB_REASON_OPERATOR, "this backend has no operators");
}
static inline tb_status tb_stub_operator_call(const tb_call* call, tb_error* error) {
  return tb_stub_answer(error, TB_UNSUPPORTED, TB_REASON_OPERATOR, "this backend has no operators");
}

/* ---- Generators. Optional: random operators need all seven. */
TB_STUB_DECLINES(generator_default_generator, "generators", int32_t device, tb_generator* generator)
TB_STUB_DECLINES(generator_create, "generators", int32_t device, uint64_t seed,
                 tb_generator* generator)
static inline tb_status tb_stub_generator_destroy(tb_generator generator, tb_error* error) {
  return generator == NULL ? TB_OK : tb_stub_decline(error, "generators");
}
TB_STUB_DECLINES(generator_set_seed, "generators", tb_generator generator, uint64_t seed)
TB_STUB_DECLINES(generator_get_seed, "generators", tb_generator generator, uint64_t* seed)
TB_STUB_DECLINES(generator_get_state, "generators", tb_generator generator, void* state,
                 uint64_t bytes)
TB_STUB_DECLINES(generator_set_state, "generators", tb_generator generator, const void* state,
                 uint64_t bytes)

/* ---- Custom kernels. Optional: for backends that compile OpenCL C. */
TB_STUB_DECLINES(kernel_compile, "custom kernels", int32_t device, const char* source,
                 const char* options, tb_library* library)
static inline tb_status tb_stub_kernel_destroy(tb_library library, tb_error* error) {
  return library == NULL ? TB_OK : tb_stub_decline(error, "custom kernels");
}
TB_STUB_DECLINES(kernel_count, "custom kernels", tb_library library, uint32_t* count)
TB_STUB_DECLINES(kernel_at, "custom kernels", tb_library library, uint32_t index, tb_kernel* kernel,
                 tb_kernel_info* info)
TB_STUB_DECLINES(kernel_find, "custom kernels", tb_library library, const char* name,
                 tb_kernel* kernel, tb_kernel_info* info)
TB_STUB_DECLINES(kernel_launch, "custom kernels", tb_stream stream, tb_kernel kernel,
                 const tb_value* args, uint32_t arg_count, uint32_t rank, const uint64_t* threads,
                 const uint64_t* group)
static inline tb_status tb_stub_kernel_request(int32_t device, const char* const* sources,
                                               uint32_t count, const char* options, uint32_t* asked,
                                               tb_error* error) {
  if (asked != NULL) *asked = 0;
  return TB_OK;
}

/* ---- Profiler. Optional. is_enabled answers "no", all else declines. */
TB_STUB_DECLINES(profiler_start, "profiler", const char* mode, int32_t wait_until_completed,
                 const char* path)
static inline tb_status tb_stub_profiler_none(tb_error* error) {
  return tb_stub_decline(error, "profiler");
}
static inline tb_status tb_stub_profiler_is_enabled(int32_t* enabled, tb_error* error) {
  *enabled = 0;
  return TB_OK;
}
TB_STUB_DECLINES(profiler_push_range, "profiler", const char* name)
TB_STUB_DECLINES(profiler_counters, "profiler.counters", tb_counters* counters)
TB_STUB_DECLINES(profiler_begin_call, "profiler", const char* category, const char* name)
TB_STUB_DECLINES(profiler_statistics, "profiler", void (*row)(void*, const tb_statistic*),
                 void* context)
TB_STUB_DECLINES(profiler_listen, "profiler", void (*hear)(void*, const tb_record*), void* context)
TB_STUB_DECLINES(profiler_correlate, "profiler", uint64_t number)

/* ---- Captures. Optional. Both questions answer "no". */
static inline tb_status tb_stub_capture_no(int32_t* yes, tb_error* error) {
  *yes = 0;
  return TB_OK;
}
TB_STUB_DECLINES(capture_start, "captures", const char* path)
static inline tb_status tb_stub_capture_stop(tb_error* error) {
  return tb_stub_decline(error, "captures");
}

/* ---- Switches. Optional. A name that a backend does not know is TB_UNSUPPORTED, never an error:
 * a host passes all of its settings to every backend (rule "names"). */
TB_STUB_DECLINES(switch_set, "such switch", const char* name, const char* value)
TB_STUB_DECLINES(switch_get, "such switch", const char* name, char* value, uint64_t capacity)
static inline tb_status tb_stub_switch_count(uint32_t* count, tb_error* error) {
  *count = 0;
  return TB_OK;
}
static inline tb_status tb_stub_switch_at(uint32_t index, const char** name, tb_error* error) {
  return tb_stub_answer(error, TB_E_INVALID, TB_REASON_NONE, "this backend has no switches");
}
TB_STUB_DECLINES(switch_report, "such report", const char* subject, char* text, uint64_t capacity,
                 uint64_t* needed)

/* ---- Interop. Optional: native handles are OpenCL's. */
TB_STUB_DECLINES(interop_buffer, "native handles", tb_address address, void** native,
                 uint64_t* byte_offset)
TB_STUB_DECLINES(interop_queue, "native handles", tb_stream stream, void** native)
TB_STUB_DECLINES(interop_of_device, "native handles", int32_t device, void** native)
TB_STUB_DECLINES(interop_shared_place, "shared memory", tb_address address, tb_shared_memory* place)
TB_STUB_DECLINES(interop_shared_synchronize, "shared memory", int32_t device)
TB_STUB_DECLINES(interop_export_memory, "shared memory", tb_address address, int32_t* descriptor)
TB_STUB_DECLINES(interop_import_memory, "shared memory", tb_stream stream, int32_t descriptor,
                 uint64_t bytes, tb_address* address)
TB_STUB_DECLINES(interop_import_address, "shared memory", tb_stream stream,
                 uint64_t library_address, uint64_t bytes, tb_address* address, int32_t* is_own)
TB_STUB_DECLINES(interop_release_import, "shared memory", tb_address address)
TB_STUB_DECLINES(interop_copy_from_library, "shared memory", tb_stream stream, tb_address target,
                 uint64_t library_address, uint64_t bytes)

/* ---- Graphs. Optional: replace all eight together. is_recording answers "no". */
TB_STUB_DECLINES(graph_create_pool, "graphs", int32_t device, tb_graph_pool* pool)
static inline tb_status tb_stub_graph_destroy_pool(tb_graph_pool pool, tb_error* error) {
  return pool == NULL ? TB_OK : tb_stub_decline(error, "graphs");
}
TB_STUB_DECLINES(graph_begin, "graphs", tb_stream stream, tb_graph_pool pool,
                 const tb_generator* generators, uint32_t generator_count)
TB_STUB_DECLINES(graph_end, "graphs", tb_stream stream, tb_graph* graph)
static inline tb_status tb_stub_graph_is_recording(tb_stream stream, int32_t* recording,
                                                   tb_error* error) {
  *recording = 0;
  return TB_OK;
}
TB_STUB_DECLINES(graph_replay, "graphs", tb_graph graph, tb_stream stream)
TB_STUB_DECLINES(graph_info, "graphs", tb_graph graph, tb_graph_info* info)
static inline tb_status tb_stub_graph_destroy(tb_graph graph, tb_error* error) {
  return graph == NULL ? TB_OK : tb_stub_decline(error, "graphs");
}

#undef TB_STUB_DECLINES
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
/* NOLINTEND(misc-unused-parameters,modernize-use-nullptr) */

/* ---- All tables. A plugin has one, for the life of the process. */
typedef struct tb_plugin_api {
  tb_api api; /* what tb_plugin_get_api gives; it points to the others */
  tb_device_api device;
  tb_stream_api stream;
  tb_event_api event;
  tb_memory_api memory;
  tb_transfer_api transfer;
  tb_operator_api operators;
  tb_generator_api generator;
  tb_kernel_api kernel;
  tb_profiler_api profiler;
  tb_capture_api capture;
  tb_switch_api switches;
  tb_interop_api interop;
  tb_graph_api graph;
} tb_plugin_api;

/* In the order of the tables' fields. `field` is the member of tb_plugin_api, `type` its type. */
#define TB_STUB_FILL(field, type, ...)                    \
  {                                                       \
    const type defaults = {sizeof(type), 0, __VA_ARGS__}; \
    plugin->field = defaults;                             \
    plugin->api.field = &plugin->field;                   \
  }
static inline void tb_stub_fill(tb_plugin_api* plugin) {
  plugin->api.struct_size = sizeof plugin->api;
  plugin->api.abi_major = TB_ABI_MAJOR;
  plugin->api.abi_minor = TB_ABI_MINOR;
  TB_STUB_FILL(device, tb_device_api, tb_stub_device_count, tb_stub_device_report,
               tb_stub_device_properties, tb_stub_device_synchronize)
  TB_STUB_FILL(stream, tb_stream_api, tb_stub_stream_default_stream, tb_stub_stream_create,
               tb_stub_stream_destroy, tb_stub_stream_device, tb_stub_stream_synchronize,
               tb_stub_stream_query, tb_stub_stream_wait_event, tb_stub_stream_begin_rehearsal,
               tb_stub_stream_end_rehearsal, tb_stub_stream_build_missing)
  TB_STUB_FILL(event, tb_event_api, tb_stub_event_create, tb_stub_event_destroy,
               tb_stub_event_record, tb_stub_event_query, tb_stub_event_synchronize,
               tb_stub_event_elapsed_ms)
  TB_STUB_FILL(memory, tb_memory_api, tb_stub_memory_allocate, tb_stub_memory_free,
               tb_stub_memory_record_use, tb_stub_memory_info, tb_stub_memory_stats,
               tb_stub_memory_reset_peak_stats, tb_stub_memory_reset_accumulated_stats,
               tb_stub_memory_empty_cache, tb_stub_memory_set_fraction,
               tb_stub_memory_set_watermarks, tb_stub_memory_allocate_host,
               tb_stub_memory_free_host, tb_stub_memory_is_host, tb_stub_memory_map,
               tb_stub_memory_unmap)
  TB_STUB_FILL(transfer, tb_transfer_api, tb_stub_transfer_to_device, tb_stub_transfer_to_host,
               tb_stub_transfer_on_device, tb_stub_transfer_fill)
  TB_STUB_FILL(operators, tb_operator_api, tb_stub_operator_count, tb_stub_operator_at,
               tb_stub_operator_find, tb_stub_operator_call, tb_stub_operator_call)
  TB_STUB_FILL(generator, tb_generator_api, tb_stub_generator_default_generator,
               tb_stub_generator_create, tb_stub_generator_destroy, tb_stub_generator_set_seed,
               tb_stub_generator_get_seed, tb_stub_generator_get_state, tb_stub_generator_set_state)
  TB_STUB_FILL(kernel, tb_kernel_api, tb_stub_kernel_compile, tb_stub_kernel_destroy,
               tb_stub_kernel_count, tb_stub_kernel_at, tb_stub_kernel_find, tb_stub_kernel_launch,
               tb_stub_kernel_request)
  TB_STUB_FILL(profiler, tb_profiler_api, tb_stub_profiler_start, tb_stub_profiler_none,
               tb_stub_profiler_is_enabled, tb_stub_profiler_push_range, tb_stub_profiler_none,
               tb_stub_profiler_counters, tb_stub_profiler_begin_call, tb_stub_profiler_none,
               tb_stub_profiler_statistics, tb_stub_profiler_none, tb_stub_profiler_none,
               tb_stub_profiler_none, tb_stub_profiler_listen, tb_stub_profiler_correlate)
  TB_STUB_FILL(capture, tb_capture_api, tb_stub_capture_no, tb_stub_capture_no,
               tb_stub_capture_start, tb_stub_capture_stop)
  TB_STUB_FILL(switches, tb_switch_api, tb_stub_switch_set, tb_stub_switch_get,
               tb_stub_switch_count, tb_stub_switch_at, tb_stub_switch_report)
  TB_STUB_FILL(interop, tb_interop_api, tb_stub_interop_buffer, tb_stub_interop_queue,
               tb_stub_interop_of_device, tb_stub_interop_of_device, tb_stub_interop_shared_place,
               tb_stub_interop_shared_synchronize, tb_stub_interop_export_memory,
               tb_stub_interop_import_memory, tb_stub_interop_import_address,
               tb_stub_interop_release_import, tb_stub_interop_copy_from_library)
  TB_STUB_FILL(graph, tb_graph_api, tb_stub_graph_create_pool, tb_stub_graph_destroy_pool,
               tb_stub_graph_begin, tb_stub_graph_end, tb_stub_graph_is_recording,
               tb_stub_graph_replay, tb_stub_graph_info, tb_stub_graph_destroy)
}
#undef TB_STUB_FILL

#ifdef __cplusplus
}
#endif
#endif /* TENSOR_BACKEND_STUBS_H */
