// A backend for host tests: two devices that have memory, streams and generators, and decline every
// operator. Its addresses are no host addresses, so that a host that reads one crashes. Macros make
// the broken variants that the loader must refuse:
//   FAKE_MAGIC, FAKE_MAJOR, FAKE_DESCRIPTOR_BYTES, FAKE_API_BYTES, FAKE_TABLE_BYTES,
//   FAKE_STREAM_BYTES (descriptor and table fields), FAKE_NO_DESCRIPTOR, FAKE_NO_GET_API (missing
//   exports), FAKE_NULL_FUNCTION, FAKE_GET_API_FAILS, FAKE_TYPE (device type); and a good one that
//   has no switch at all and calls every name invalid: FAKE_NO_SWITCHES; and one that reads tensors
//   unseen: FAKE_UNCHECKED.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "tensor_backend/plugin.h"
#include "tensor_backend/stubs.h"

#ifndef FAKE_MAGIC
#define FAKE_MAGIC TB_PLUGIN_MAGIC
#endif
#ifndef FAKE_MAJOR
#define FAKE_MAJOR TB_ABI_MAJOR
#endif
#ifndef FAKE_DESCRIPTOR_BYTES
#define FAKE_DESCRIPTOR_BYTES sizeof(tb_plugin_descriptor_t)
#endif
#ifndef FAKE_API_BYTES
#define FAKE_API_BYTES sizeof(tb_api)
#endif
#ifndef FAKE_TABLE_BYTES
#define FAKE_TABLE_BYTES sizeof(tb_device_api)
#endif
#ifndef FAKE_STREAM_BYTES
#define FAKE_STREAM_BYTES TB_STREAM_API_SIZE_V1  // as ABI 1.0 began
#endif
#ifndef FAKE_TYPE
#define FAKE_TYPE "fake"
#endif

struct tb_stream_s {
  int32_t device;
};
struct tb_event_s {
  int32_t device;
  bool recorded;
};
struct tb_generator_s {
  uint64_t state[2];
};

namespace {

constexpr tb_address kTag = UINT64_C(0x5) << 60;  // makes an address useless to the host
constexpr int32_t kDevices = 2;

// What tests ask for, by switch name.
std::mutex mutex;
std::map<std::string, int64_t> counters;
std::map<tb_address, uint64_t> blocks;
tb_stream_s defaults[kDevices] = {{0}, {1}};
tb_generator_s generators[kDevices] = {};

void count(const char* name, int64_t by = 1) {
  const std::lock_guard lock(mutex);
  counters[name] += by;
}

tb_status answer(tb_error* error, tb_status status, const char* text,
                 uint32_t reason = TB_REASON_NONE) {
  if (error != nullptr) {
    error->code = status;
    error->reason = reason;
    if (error->message != nullptr && error->capacity != 0) {
      std::strncpy(error->message, text, error->capacity - 1);
      error->message[error->capacity - 1] = 0;
    }
  }
  return status;
}
tb_status no(tb_error* error) { return answer(error, TB_UNSUPPORTED, "the fake device has none"); }

template <typename T>
T* memory(tb_address address) {
  return reinterpret_cast<T*>(address ^ kTag);
}

// Is [address, address + bytes) inside one live block?
bool inside(tb_address address, uint64_t bytes) {
  const std::lock_guard lock(mutex);
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) return false;
  --it;
  return address + bytes <= it->first + it->second;
}
#define REQUIRE_INSIDE(address, bytes) \
  if (!inside(address, bytes)) return answer(error, TB_E_INVALID, "outside every allocation")

const tb_device_api device_api = {
    FAKE_TABLE_BYTES,
    0,
#ifdef FAKE_NULL_FUNCTION
    nullptr,
#else
    [](int32_t* n, tb_error*) -> tb_status { return *n = kDevices, TB_OK; },
#endif
    [](char* text, uint64_t capacity) -> uint64_t {
      if (capacity != 0) std::strncpy(text, "fake", capacity);
      return 4;
    },
    [](int32_t device, tb_device_properties* p, tb_error*) -> tb_status {
      p->index = device;
      std::strcpy(p->name, "fake device");
      return TB_OK;
    },
    [](int32_t, tb_error*) -> tb_status { return TB_OK; },
};

const tb_stream_api stream_api = {
    FAKE_STREAM_BYTES,
    0,
    [](int32_t device, tb_stream* s, tb_error*) -> tb_status {
      return *s = &defaults[device], TB_OK;
    },
    [](int32_t device, int32_t, tb_stream* s, tb_error*) -> tb_status {
      count("fake.streams");
      return *s = new tb_stream_s{device}, TB_OK;
    },
    [](tb_stream s, tb_error*) -> tb_status {
      count("fake.streams", -1);
      delete s;
      return TB_OK;
    },
    [](tb_stream s, int32_t* device, tb_error*) -> tb_status { return *device = s->device, TB_OK; },
    [](tb_stream, tb_error*) -> tb_status { return TB_OK; },
    [](tb_stream, tb_error*) -> tb_status { return TB_OK; },
    [](tb_stream, tb_event, tb_error*) -> tb_status { return TB_OK; },
};

const tb_event_api event_api = {
    sizeof(tb_event_api),
    0,
    [](int32_t device, uint32_t, tb_event* e, tb_error*) -> tb_status {
      return *e = new tb_event_s{device, false}, TB_OK;
    },
    [](tb_event e, tb_error*) -> tb_status {
      delete e;
      return TB_OK;
    },
    [](tb_event e, tb_stream, tb_error*) -> tb_status { return e->recorded = true, TB_OK; },
    [](tb_event e, tb_error*) -> tb_status { return e->recorded ? TB_OK : TB_NOT_READY; },
    [](tb_event, tb_error*) -> tb_status { return TB_OK; },
    [](tb_event a, tb_event b, double* ms, tb_error* error) -> tb_status {
      *ms = 1;
      return a->recorded && b->recorded ? TB_OK : answer(error, TB_E_STATE, "not recorded");
    },
};

const tb_memory_api memory_api = {
    sizeof(tb_memory_api),
    0,
    [](int32_t, uint64_t bytes, tb_stream, tb_address* address, tb_error* error) -> tb_status {
      *address = 0;
      if (bytes == 0) return TB_OK;
      if (bytes > (UINT64_C(1) << 30)) return answer(error, TB_E_OUT_OF_MEMORY, "too much");
      void* p = std::aligned_alloc(512, (bytes + 511) / 512 * 512);
      std::memset(p, 0xa5, bytes);  // fresh memory is not zero
      *address = reinterpret_cast<uintptr_t>(p) ^ kTag;
      count("fake.bytes", static_cast<int64_t>(bytes));
      const std::lock_guard lock(mutex);
      blocks[*address] = bytes;
      return TB_OK;
    },
    [](tb_address address, tb_stream stream, tb_error* error) -> tb_status {
      if (address == 0) return TB_OK;
      const std::lock_guard lock(mutex);
      const auto it = blocks.find(address);
      if (it == blocks.end()) return answer(error, TB_E_INVALID, "no such allocation");
      counters["fake.bytes"] -= static_cast<int64_t>(it->second);
      counters["fake.freed_on_default"] += stream == &defaults[0] || stream == &defaults[1];
      std::free(memory<void>(address));
      blocks.erase(it);
      return TB_OK;
    },
    [](tb_address, tb_stream, tb_error*) -> tb_status { return count("fake.record_use"), TB_OK; },
    [](tb_address, tb_memory_info*, tb_error* error) -> tb_status { return no(error); },
    [](int32_t, tb_memory_stats* s, tb_error*) -> tb_status {
      const std::lock_guard lock(mutex);
      s->allocated_bytes.current = counters["fake.bytes"];
      s->driver_bytes = 4096;
      s->recommended_bytes = 8192;
      return TB_OK;
    },
    [](int32_t, tb_error*) -> tb_status { return TB_OK; },
    [](int32_t, tb_error*) -> tb_status { return TB_OK; },
    [](int32_t, tb_error*) -> tb_status { return count("fake.empty_cache"), TB_OK; },
    [](int32_t, double, tb_error*) -> tb_status { return count("fake.fraction"), TB_OK; },
    [](int32_t, double, double, tb_error*) -> tb_status { return TB_OK; },
    [](int32_t, uint64_t bytes, void** p, tb_error*) -> tb_status {
      count("fake.pinned");
      return *p = std::malloc(bytes), TB_OK;
    },
    [](void* p, tb_error*) -> tb_status {
      count("fake.pinned", -1);
      std::free(p);
      return TB_OK;
    },
    [](const void*, int32_t* yes, tb_error*) -> tb_status { return *yes = 0, TB_OK; },
    [](tb_address, uint64_t, tb_stream, void**, tb_error* error) -> tb_status { return no(error); },
    [](tb_address, void*, tb_stream, tb_error* error) -> tb_status { return no(error); },
};

const tb_transfer_api transfer_api = {
    sizeof(tb_transfer_api),
    0,
    [](tb_stream, tb_address target, const void* source, uint64_t bytes, uint32_t flags,
       tb_error* error) -> tb_status {
      REQUIRE_INSIDE(target, bytes);
      std::memcpy(memory<void>(target), source, bytes);
      count(flags == TB_COPY_ASYNC ? "fake.async" : "fake.blocking");
      return TB_OK;
    },
    [](tb_stream, void* target, tb_address source, uint64_t bytes, uint32_t,
       tb_error* error) -> tb_status {
      REQUIRE_INSIDE(source, bytes);
      std::memcpy(target, memory<void>(source), bytes);
      return TB_OK;
    },
    [](tb_stream, tb_address target, tb_stream, tb_address source, uint64_t bytes,
       tb_error* error) -> tb_status {
      REQUIRE_INSIDE(target, bytes);
      REQUIRE_INSIDE(source, bytes);
      if (target < source + bytes && source < target + bytes)
        return answer(error, TB_E_INVALID, "ranges overlap");
      std::memcpy(memory<void>(target), memory<void>(source), bytes);
      return TB_OK;
    },
    [](tb_stream, tb_address target, const void* pattern, uint32_t pattern_bytes, uint64_t bytes,
       tb_error* error) -> tb_status {
      REQUIRE_INSIDE(target, bytes);
      for (uint64_t i = 0; i < bytes; i += pattern_bytes)
        std::memcpy(memory<char>(target) + i, pattern, pattern_bytes);
      return TB_OK;
    },
};

tb_status decline(tb_error* error) {
  return answer(error, TB_UNSUPPORTED, "the fake device computes nothing", TB_REASON_DTYPE);
}
const tb_operator_api operator_api = {
    sizeof(tb_operator_api),
    0,
    [](uint32_t* n, tb_error*) -> tb_status { return *n = 0, TB_OK; },
    [](uint32_t, tb_op*, tb_op_info*, tb_error* error) -> tb_status { return no(error); },
    [](const char* name, tb_op* op, tb_error* error) -> tb_status {
      count("fake.finds");
      if (std::strcmp(name, "exp.out") == 0)  // one is not even known
        return answer(error, TB_UNSUPPORTED, "the fake device has no exp", TB_REASON_OPERATOR);
      *op = reinterpret_cast<tb_op>(&counters);
      return TB_OK;
    },
    [](const tb_call*, tb_error* error) -> tb_status { return decline(error); },
    [](const tb_call* call, tb_error* error) -> tb_status {
      (void)call;
#ifdef FAKE_UNCHECKED
      for (uint32_t i = 0; i < call->arg_count; ++i)
        if (call->args[i].tag == TB_TENSOR) {
          const auto* tensor = static_cast<const tb_tensor*>(call->args[i].as.p);
          (void)*memory<const volatile char>(tensor->address);
        }
#endif
      return decline(error);
    },
};

const tb_generator_api generator_api = {
    sizeof(tb_generator_api),
    0,
    [](int32_t device, tb_generator* g, tb_error*) -> tb_status {
      return *g = &generators[device], TB_OK;
    },
    [](int32_t, uint64_t seed, tb_generator* g, tb_error*) -> tb_status {
      return *g = new tb_generator_s{{seed, 0}}, TB_OK;
    },
    [](tb_generator g, tb_error*) -> tb_status {
      delete g;
      return TB_OK;
    },
    [](tb_generator g, uint64_t seed, tb_error*) -> tb_status {
      g->state[0] = seed;
      g->state[1] = 0;
      return TB_OK;
    },
    [](tb_generator g, uint64_t* seed, tb_error*) -> tb_status {
      return *seed = g->state[0], TB_OK;
    },
    [](tb_generator g, void* state, uint64_t, tb_error*) -> tb_status {
      std::memcpy(state, g->state, 16);
      return TB_OK;
    },
    [](tb_generator g, const void* state, uint64_t, tb_error*) -> tb_status {
      std::memcpy(g->state, state, 16);
      return TB_OK;
    },
};

const tb_kernel_api kernel_api = {
    sizeof(tb_kernel_api),
    0,
    [](int32_t, const char*, const char*, tb_library*, tb_error* e) -> tb_status { return no(e); },
    [](tb_library, tb_error* e) -> tb_status { return no(e); },
    [](tb_library, uint32_t*, tb_error* e) -> tb_status { return no(e); },
    [](tb_library, uint32_t, tb_kernel*, tb_kernel_info*, tb_error* e) -> tb_status {
      return no(e);
    },
    [](tb_library, const char*, tb_kernel*, tb_kernel_info*, tb_error* e) -> tb_status {
      return no(e);
    },
    [](tb_stream, tb_kernel, const tb_value*, uint32_t, uint32_t, const uint64_t*, const uint64_t*,
       tb_error* e) -> tb_status { return no(e); },
    [](int32_t, const char* const*, uint32_t, const char*, uint32_t* asked,
       tb_error*) -> tb_status {
      if (asked != nullptr) *asked = 0;
      return TB_OK;
    },
};

const tb_profiler_api profiler_api = {
    sizeof(tb_profiler_api),
    0,
    [](const char*, int32_t, const char*, tb_error* e) -> tb_status { return no(e); },
    [](tb_error* e) -> tb_status { return no(e); },
    [](int32_t* on, tb_error*) -> tb_status { return *on = 0, TB_OK; },
    [](const char*, tb_error* e) -> tb_status { return no(e); },
    [](tb_error* e) -> tb_status { return no(e); },
    [](tb_counters*, tb_error* e) -> tb_status { return no(e); },
    [](const char*, const char*, tb_error* e) -> tb_status { return no(e); },
    [](tb_error* e) -> tb_status { return no(e); },
    [](void (*)(void*, const tb_statistic*), void*, tb_error* e) -> tb_status { return no(e); },
    [](tb_error* e) -> tb_status { return no(e); },
    [](tb_error* e) -> tb_status { return no(e); },
    [](tb_error* e) -> tb_status { return no(e); },
    [](void (*)(void*, const tb_record*), void*, tb_error* e) -> tb_status { return no(e); },
    [](uint64_t, tb_error* e) -> tb_status { return no(e); },
};
const tb_capture_api capture_api = {
    sizeof(tb_capture_api),
    0,
    [](int32_t* on, tb_error*) -> tb_status { return *on = 0, TB_OK; },
    [](int32_t* on, tb_error*) -> tb_status { return *on = 0, TB_OK; },
    [](const char*, tb_error* e) -> tb_status { return no(e); },
    [](tb_error* e) -> tb_status { return no(e); },
};

// Counters read as switches; any OCLTENSOR_ setting is accepted and remembered by its first digit.
const tb_switch_api switch_api = {
    sizeof(tb_switch_api),
    0,
    [](const char* name, const char* value, tb_error* error) -> tb_status {
#ifdef FAKE_NO_SWITCHES
      (void)value;
      return answer(error, TB_E_INVALID, (std::string("no setting ") + name).c_str());
#endif
      if (std::strncmp(name, "OCLTENSOR_", 10) != 0 && std::strncmp(name, "fake.", 5) != 0)
        return answer(error, TB_UNSUPPORTED, "no such switch");
      const std::lock_guard lock(mutex);
      counters[name] = std::strtoll(value, nullptr, 10);
      return TB_OK;
    },
    [](const char* name, char* value, uint64_t capacity, tb_error*) -> tb_status {
      const std::lock_guard lock(mutex);
      std::strncpy(value, std::to_string(counters[name]).c_str(), capacity);
      return TB_OK;
    },
    [](uint32_t* n, tb_error*) -> tb_status { return *n = 0, TB_OK; },
    [](uint32_t, const char**, tb_error* e) -> tb_status { return no(e); },
    [](const char*, char*, uint64_t, uint64_t*, tb_error* e) -> tb_status { return no(e); },
};
const tb_interop_api interop_api = {
    sizeof(tb_interop_api),
    0,
    [](tb_address, void**, uint64_t*, tb_error* e) -> tb_status { return no(e); },
    [](tb_stream, void**, tb_error* e) -> tb_status { return no(e); },
    [](int32_t, void**, tb_error* e) -> tb_status { return no(e); },
    [](int32_t, void**, tb_error* e) -> tb_status { return no(e); },
    tb_stub_interop_shared_place,
    tb_stub_interop_shared_synchronize,
    tb_stub_interop_export_memory,
    tb_stub_interop_import_memory,
    tb_stub_interop_import_address,
    tb_stub_interop_release_import,
    tb_stub_interop_copy_from_library,
};

const tb_graph_api graph_api = {
    sizeof(tb_graph_api),       0,
    tb_stub_graph_create_pool,  tb_stub_graph_destroy_pool,
    tb_stub_graph_begin,        tb_stub_graph_end,
    tb_stub_graph_is_recording, tb_stub_graph_replay,
    tb_stub_graph_info,         tb_stub_graph_destroy,
};

[[maybe_unused]] const tb_api api = {
    .struct_size = FAKE_API_BYTES,
    .abi_major = FAKE_MAJOR,
    .abi_minor = TB_ABI_MINOR,
    .device = &device_api,
    .stream = &stream_api,
    .event = &event_api,
    .memory = &memory_api,
    .transfer = &transfer_api,
    .operators = &operator_api,
    .generator = &generator_api,
    .kernel = &kernel_api,
    .profiler = &profiler_api,
    .capture = &capture_api,
    .switches = &switch_api,
    .interop = &interop_api,
    .graph = &graph_api,
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifndef FAKE_NO_DESCRIPTOR
EXPORT const tb_plugin_descriptor_t tb_plugin_descriptor = {
    FAKE_MAGIC, FAKE_DESCRIPTOR_BYTES, FAKE_MAJOR, TB_ABI_MINOR, FAKE_TYPE, "fake", "1.0"};
#endif

#ifndef FAKE_NO_GET_API
EXPORT tb_status tb_plugin_get_api(uint32_t, const tb_host_api* host, tb_error* error,
                                   const tb_api** result) {
#ifdef FAKE_GET_API_FAILS
  (void)host;
  *result = nullptr;
  return answer(error, TB_E_ABI, "no such ABI here");
#else
  (void)error;
  if (host != nullptr && host->log != nullptr)
    host->log(host->context, TB_LOG_DEBUG, "fake", "loaded");
  *result = &api;
  return TB_OK;
#endif
}
#endif
