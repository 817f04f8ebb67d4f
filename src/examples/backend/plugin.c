/* A backend in host memory: its device, streams, memory, copies, and the two exports. */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"

/* ---- Errors and the process */

static tb_status answer(tb_error* error, tb_status status, uint32_t reason, const char* format,
                        va_list values) {
  char text[256];
  vsnprintf(text, sizeof text, format, values);
  return tb_stub_answer(error, status, reason, text);
}
tb_status refuse(tb_error* error, tb_status status, const char* format, ...) {
  va_list values;
  va_start(values, format);
  answer(error, status, TB_REASON_NONE, format, values);
  va_end(values);
  return status;
}
tb_status decline(tb_error* error, uint32_t reason, const char* format, ...) {
  va_list values;
  va_start(values, format);
  answer(error, TB_UNSUPPORTED, reason, format, values);
  va_end(values);
  return TB_UNSUPPORTED;
}

static volatile int forked;
static void after_fork(void) { forked = 1; }

tb_status check_process(tb_error* error) {
  if (forked) return refuse(error, TB_E_STATE, "a forked process cannot use this backend");
  return TB_OK;
}
static tb_status check_device(int32_t device, tb_error* error) {
  if (device != 0) return refuse(error, TB_E_INVALID, "there is one device, 0, and no %d", device);
  return check_process(error);
}
tb_status check_stream(tb_stream stream, tb_error* error) {
  if (stream == NULL) return refuse(error, TB_E_INVALID, "the stream is NULL");
  return check_process(error);
}

/* ---- The device */

static tb_status device_count(int32_t* count, tb_error* error) {
  REQUIRE(check_process(error));
  *count = 1;
  return TB_OK;
}
static uint64_t device_report(char* text, uint64_t capacity) {
  static const char report[] = "host: one device, the host's own memory";
  if (capacity != 0) snprintf(text, capacity, "%s", report);
  return sizeof report - 1;
}
static uint64_t device_bytes(void) {
  return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}
static tb_status device_properties(int32_t device, tb_device_properties* p, tb_error* error) {
  REQUIRE(check_device(device, error));
  if (p->struct_size < TB_DEVICE_PROPERTIES_SIZE_V1)
    return refuse(error, TB_E_INVALID, "tb_device_properties has only %u bytes", p->struct_size);
  /* All fields are of the first version: a later caller's further ones stay as they are. */
  p->index = 0;
  p->kind = TB_DEVICE_CPU;
  p->features = TB_FEATURE_FP64 | TB_FEATURE_UNIFIED_MEMORY;
  strcpy(p->name, "host memory");
  strcpy(p->vendor, "template");
  strcpy(p->platform, "template");
  strcpy(p->driver_version, "1");
  strcpy(p->language_version, "C11");
  p->global_memory = p->largest_allocation = p->recommended_memory = device_bytes();
  p->local_memory = 0;
  p->compute_units = p->max_work_group_size = 1;
  p->clock_mhz = 0;
  return TB_OK;
}
static tb_status device_synchronize(int32_t device, tb_error* error) {
  return check_device(device, error); /* nothing is ever pending */
}

/* ---- Streams and events: work is done when a call returns */

struct tb_event_s {
  _Atomic int recorded;
};
static struct tb_stream_s default_stream = {PTHREAD_MUTEX_INITIALIZER};

static tb_status stream_default(int32_t device, tb_stream* stream, tb_error* error) {
  REQUIRE(check_device(device, error));
  *stream = &default_stream;
  return TB_OK;
}
static tb_status stream_create(int32_t device, int32_t priority, tb_stream* stream,
                               tb_error* error) {
  (void)priority; /* a hint */
  REQUIRE(check_device(device, error));
  tb_stream made = malloc(sizeof *made);
  if (made == NULL) return refuse(error, TB_E_OUT_OF_MEMORY, "no memory for a stream");
  pthread_mutex_init(&made->mutex, NULL);
  *stream = made;
  return TB_OK;
}
static tb_status stream_destroy(tb_stream stream, tb_error* error) {
  REQUIRE(check_process(error));
  if (stream == &default_stream)
    return refuse(error, TB_E_INVALID, "the default stream is never destroyed");
  if (stream != NULL) pthread_mutex_destroy(&stream->mutex);
  free(stream);
  return TB_OK;
}
static tb_status stream_device(tb_stream stream, int32_t* device, tb_error* error) {
  REQUIRE(check_stream(stream, error));
  *device = 0;
  return TB_OK;
}
static tb_status stream_wait_event(tb_stream stream, tb_event event, tb_error* error) {
  if (event == NULL) return refuse(error, TB_E_INVALID, "the event is NULL");
  return check_stream(stream, error);
}

static tb_status event_create(int32_t device, uint32_t flags, tb_event* event, tb_error* error) {
  REQUIRE(check_device(device, error));
  if (flags & TB_EVENT_TIMING) return decline(error, TB_REASON_ARGUMENT, "events have no timing");
  *event = calloc(1, sizeof **event);
  return *event != NULL ? TB_OK : refuse(error, TB_E_OUT_OF_MEMORY, "no memory for an event");
}
static tb_status event_destroy(tb_event event, tb_error* error) {
  REQUIRE(check_process(error));
  free(event);
  return TB_OK;
}
static tb_status event_record(tb_event event, tb_stream stream, tb_error* error) {
  REQUIRE(stream_wait_event(stream, event, error));
  event->recorded = 1;
  return TB_OK;
}
static tb_status event_query(tb_event event, tb_error* error) {
  if (event == NULL) return refuse(error, TB_E_INVALID, "the event is NULL");
  REQUIRE(check_process(error));
  return event->recorded ? TB_OK : TB_NOT_READY;
}
static tb_status event_synchronize(tb_event event, tb_error* error) {
  const tb_status status = event_query(event, error);
  return status == TB_NOT_READY ? TB_OK : status;
}

/* ---- Memory: a list of what is live, so that every address can be checked */

typedef struct block {
  struct block* next;
  char* memory;
  uint64_t bytes;
} block;
static block* blocks;
static pthread_mutex_t blocks_mutex = PTHREAD_MUTEX_INITIALIZER;

void* pointer_of(tb_address address) { return (void*)(uintptr_t)address; }

/* The block that holds all bytes of a range, or NULL. The caller holds the mutex. */
static block* block_of(tb_address address, uint64_t bytes) {
  for (block* b = blocks; b != NULL; b = b->next) {
    const tb_address begin = (uintptr_t)b->memory;
    if (address >= begin && address - begin < b->bytes && bytes <= b->bytes - (address - begin))
      return b;
  }
  return NULL;
}
tb_status check_range(tb_address address, uint64_t bytes, tb_error* error) {
  if (bytes == 0) return TB_OK;
  pthread_mutex_lock(&blocks_mutex);
  const int inside = block_of(address, bytes) != NULL;
  pthread_mutex_unlock(&blocks_mutex);
  if (inside) return TB_OK;
  return refuse(error, TB_E_INVALID, "%llu bytes at address %#llx are outside every allocation",
                (unsigned long long)bytes, (unsigned long long)address);
}

static tb_status memory_allocate(int32_t device, uint64_t bytes, tb_stream stream,
                                 tb_address* address, tb_error* error) {
  REQUIRE(check_device(device, error));
  REQUIRE(check_stream(stream, error));
  *address = 0;
  if (bytes == 0) return TB_OK;
  /* One byte more: an address at the end of a block must not be the beginning of another. */
  char* memory = bytes <= device_bytes() ? aligned_alloc(512, (bytes / 512 + 1) * 512) : NULL;
  block* b = malloc(sizeof *b);
  if (memory == NULL || b == NULL) {
    free(memory);
    free(b);
    return refuse(error, TB_E_OUT_OF_MEMORY, "the host has no %llu bytes: free some memory",
                  (unsigned long long)bytes);
  }
  pthread_mutex_lock(&blocks_mutex);
  *b = (block){blocks, memory, bytes};
  blocks = b;
  pthread_mutex_unlock(&blocks_mutex);
  *address = (uintptr_t)memory;
  return TB_OK;
}
static tb_status memory_free(tb_address address, tb_stream stream, tb_error* error) {
  REQUIRE(check_stream(stream, error));
  if (address == 0) return TB_OK;
  pthread_mutex_lock(&blocks_mutex);
  block** at = &blocks;
  while (*at != NULL && (uintptr_t)(*at)->memory != address) at = &(*at)->next;
  block* found = *at;
  if (found != NULL) *at = found->next;
  pthread_mutex_unlock(&blocks_mutex);
  if (found == NULL)
    return refuse(error, TB_E_INVALID, "no allocation begins at address %#llx",
                  (unsigned long long)address);
  free(found->memory);
  free(found);
  return TB_OK;
}
static tb_status memory_record_use(tb_address address, tb_stream stream, tb_error* error) {
  REQUIRE(check_stream(stream, error));
  return check_range(address, 1, error); /* no work outlives its call: nothing to remember */
}
static tb_status memory_info(tb_address address, tb_memory_info* info, tb_error* error) {
  REQUIRE(check_process(error));
  if (info->struct_size < TB_MEMORY_INFO_SIZE_V1)
    return refuse(error, TB_E_INVALID, "tb_memory_info has only %u bytes", info->struct_size);
  REQUIRE(check_range(address, 1, error));
  pthread_mutex_lock(&blocks_mutex);
  const block* b = block_of(address, 1);
  info->device = 0;
  info->base = b != NULL ? (uintptr_t)b->memory : 0;
  info->size = b != NULL ? b->bytes : 0;
  pthread_mutex_unlock(&blocks_mutex);
  return TB_OK;
}

/* ---- Copies */

/* Copies to where `bytes` bytes at an address were checked. */
static tb_status copy(tb_stream stream, void* target, const void* source, uint64_t bytes) {
  pthread_mutex_lock(&stream->mutex);
  if (bytes != 0) memcpy(target, source, bytes);
  pthread_mutex_unlock(&stream->mutex);
  return TB_OK;
}
static tb_status to_device(tb_stream stream, tb_address target, const void* source, uint64_t bytes,
                           uint32_t flags, tb_error* error) {
  (void)flags; /* TB_COPY_ASYNC allows to be late, which this backend never is */
  REQUIRE(check_stream(stream, error));
  REQUIRE(check_range(target, bytes, error));
  return copy(stream, pointer_of(target), source, bytes);
}
static tb_status to_host(tb_stream stream, void* target, tb_address source, uint64_t bytes,
                         uint32_t flags, tb_error* error) {
  (void)flags;
  REQUIRE(check_stream(stream, error));
  REQUIRE(check_range(source, bytes, error));
  return copy(stream, target, pointer_of(source), bytes);
}
static tb_status on_device(tb_stream stream, tb_address target, tb_stream source_stream,
                           tb_address source, uint64_t bytes, tb_error* error) {
  REQUIRE(check_stream(stream, error));
  REQUIRE(check_stream(source_stream, error));
  REQUIRE(check_range(target, bytes, error));
  REQUIRE(check_range(source, bytes, error));
  if (target < source + bytes && source < target + bytes)
    return refuse(error, TB_E_INVALID, "the ranges of the copy overlap");
  return copy(stream, pointer_of(target), pointer_of(source), bytes);
}
static tb_status fill(tb_stream stream, tb_address target, const void* pattern,
                      uint32_t pattern_bytes, uint64_t bytes, tb_error* error) {
  REQUIRE(check_stream(stream, error));
  const uint32_t n = pattern_bytes;
  if (n == 0 || n > 16 || (n & (n - 1)) != 0 || bytes % n != 0 || target % n != 0)
    return refuse(error, TB_E_INVALID, "a pattern of %u bytes does not fit %llu bytes", n,
                  (unsigned long long)bytes);
  REQUIRE(check_range(target, bytes, error));
  pthread_mutex_lock(&stream->mutex);
  for (uint64_t i = 0; i < bytes; i += n) memcpy(pointer_of(target + i), pattern, n);
  pthread_mutex_unlock(&stream->mutex);
  return TB_OK;
}

/* ---- The plugin */

static tb_plugin_api plugin;

static void fill_plugin(void) {
  tb_stub_fill(&plugin); /* whatever is not assigned below declines */
  plugin.device.count = device_count;
  plugin.device.report = device_report;
  plugin.device.properties = device_properties;
  plugin.device.synchronize = device_synchronize;
  plugin.stream.default_stream = stream_default;
  plugin.stream.create = stream_create;
  plugin.stream.destroy = stream_destroy;
  plugin.stream.device = stream_device;
  plugin.stream.synchronize = check_stream;
  plugin.stream.query = check_stream;
  plugin.stream.wait_event = stream_wait_event;
  plugin.event.create = event_create;
  plugin.event.destroy = event_destroy;
  plugin.event.record = event_record;
  plugin.event.query = event_query;
  plugin.event.synchronize = event_synchronize;
  plugin.memory.allocate = memory_allocate;
  plugin.memory.free = memory_free;
  plugin.memory.record_use = memory_record_use;
  plugin.memory.info = memory_info;
  plugin.transfer.to_device = to_device;
  plugin.transfer.to_host = to_host;
  plugin.transfer.on_device = on_device;
  plugin.transfer.fill = fill;
  fill_operators(&plugin.operators);
  pthread_atfork(NULL, NULL, after_fork);
}

#define EXPORT __attribute__((visibility("default")))

EXPORT const tb_plugin_descriptor_t tb_plugin_descriptor = {
    .magic = TB_PLUGIN_MAGIC,
    .struct_size = sizeof(tb_plugin_descriptor_t),
    .abi_major = TB_ABI_MAJOR,
    .abi_minor = TB_ABI_MINOR,
    .device_type = "host", /* what users write: "host:0" */
    .name = "template backend",
    .version = "1.0"};

EXPORT tb_status tb_plugin_get_api(uint32_t abi_major, const tb_host_api* host, tb_error* error,
                                   const tb_api** api) {
  if (abi_major != TB_ABI_MAJOR)
    return refuse(error, TB_E_ABI, "this backend speaks ABI %d, not %u", TB_ABI_MAJOR, abi_major);
  if (host != NULL && host->struct_size < TB_HOST_API_SIZE_V1)
    return refuse(error, TB_E_ABI, "the host's table has only %u bytes", host->struct_size);
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill_plugin);
  *api = &plugin.api;
  return TB_OK;
}
