// The BLAS backend's device, streams, events, generators, and its two exports.
#include <pthread.h>

#include <chrono>
#include <cstring>
#include <optional>

#include "blas.h"

using Clock = std::chrono::steady_clock;

struct tb_event_s {
  bool timing;
  std::mutex mutex;
  std::optional<Clock::time_point> recorded;
};
struct tb_generator_s {
  std::mutex mutex;
  uint64_t state[2];  // seed, offset
};

namespace blas {

std::atomic<bool> forked{false};
Counters counters;

void invalid(const std::string& text) { throw Refusal{TB_E_INVALID, TB_REASON_NONE, text}; }
void decline(uint32_t reason, const std::string& text) {
  throw Refusal{TB_UNSUPPORTED, reason, text};
}
void check_device(int32_t device) {
  if (device != 0) invalid("there is one device, 0, and no " + std::to_string(device));
}
tb_stream_s& check_stream(tb_stream stream) { return check_handle(stream); }

namespace {

tb_stream_s default_stream;
tb_generator_s default_generator{{}, {0, 0}};

tb_status device_count(int32_t* count, tb_error* error) {
  return guarded(error, [&] { *count = 1; });
}
uint64_t device_report(char* text, uint64_t capacity) {
  const std::string report = "blas: one device, CBLAS on the host's processors";
  if (capacity != 0) snprintf(text, capacity, "%s", report.c_str());
  return report.size();
}
tb_status device_properties(int32_t device, tb_device_properties* p, tb_error* error) {
  return guarded(error, [&] {
    check_device(device);
    check_size(p, TB_DEVICE_PROPERTIES_SIZE_V1);
    tb_device_properties mine{};
    mine.struct_size = p->struct_size;
    mine.kind = TB_DEVICE_CPU;
    mine.features = TB_FEATURE_FP64;
    std::strcpy(mine.name, "BLAS");
    std::strcpy(mine.vendor, "test");
    std::strcpy(mine.platform, "CBLAS");
    mine.global_memory = mine.largest_allocation = mine.recommended_memory = UINT64_C(1) << 32;
    mine.compute_units = mine.max_work_group_size = 1;
    std::memcpy(p, &mine, TB_DEVICE_PROPERTIES_SIZE_V1);
  });
}
tb_status device_synchronize(int32_t device, tb_error* error) {
  return guarded(error, [&] { check_device(device); });
}

void fill_events(tb_event_api& e) {
  e.create = [](int32_t device, uint32_t flags, tb_event* event, tb_error* error) {
    return guarded(error, [&] {
      check_device(device);
      *event = new tb_event_s{(flags & TB_EVENT_TIMING) != 0, {}, {}};
    });
  };
  e.destroy = [](tb_event event, tb_error* error) { return guarded(error, [&] { delete event; }); };
  e.record = [](tb_event event, tb_stream stream, tb_error* error) {
    return guarded(error, [&] {
      const std::lock_guard order(check_stream(stream).order);
      const std::lock_guard lock(check_handle(event).mutex);
      event->recorded = Clock::now();
    });
  };
  e.query = [](tb_event event, tb_error* error) {
    bool reached = false;
    const tb_status status = guarded(error, [&] {
      const std::lock_guard lock(check_handle(event).mutex);
      reached = event->recorded.has_value();
    });
    return status != TB_OK || reached ? status : tb_status{TB_NOT_READY};
  };
  e.synchronize = [](tb_event event, tb_error* error) {
    return guarded(error, [&] { check_handle(event); });
  };
  e.elapsed_ms = [](tb_event start, tb_event end, double* milliseconds, tb_error* error) {
    return guarded(error, [&] {
      if (!check_handle(start).timing || !check_handle(end).timing)
        invalid("an event was made without TB_EVENT_TIMING");
      const auto time = [](tb_event event) {
        const std::lock_guard lock(event->mutex);
        if (!event->recorded) throw Refusal{TB_E_STATE, 0, "an event was never recorded"};
        return *event->recorded;
      };
      *milliseconds = std::chrono::duration<double, std::milli>(time(end) - time(start)).count();
    });
  };
}

void fill_generators(tb_generator_api& g) {
  g.default_generator = [](int32_t device, tb_generator* generator, tb_error* error) {
    return guarded(error, [&] {
      check_device(device);
      *generator = &default_generator;
    });
  };
  g.create = [](int32_t device, uint64_t seed, tb_generator* generator, tb_error* error) {
    return guarded(error, [&] {
      check_device(device);
      *generator = new tb_generator_s{{}, {seed, 0}};
    });
  };
  g.destroy = [](tb_generator generator, tb_error* error) {
    return guarded(error, [&] {
      if (generator == &default_generator) invalid("the default generator is never destroyed");
      delete generator;
    });
  };
  g.set_seed = [](tb_generator generator, uint64_t seed, tb_error* error) {
    return guarded(error, [&] {
      const std::lock_guard lock(check_handle(generator).mutex);
      generator->state[0] = seed;
      generator->state[1] = 0;
    });
  };
  g.get_seed = [](tb_generator generator, uint64_t* seed, tb_error* error) {
    return guarded(error, [&] {
      const std::lock_guard lock(check_handle(generator).mutex);
      *seed = generator->state[0];
    });
  };
  g.get_state = [](tb_generator generator, void* state, uint64_t bytes, tb_error* error) {
    return guarded(error, [&] {
      const std::lock_guard lock(check_handle(generator).mutex);
      if (bytes != TB_GENERATOR_STATE_BYTES) invalid("a state has 16 bytes");
      std::memcpy(state, generator->state, bytes);
    });
  };
  g.set_state = [](tb_generator generator, const void* state, uint64_t bytes, tb_error* error) {
    return guarded(error, [&] {
      const std::lock_guard lock(check_handle(generator).mutex);
      if (bytes != TB_GENERATOR_STATE_BYTES) invalid("a state has 16 bytes");
      std::memcpy(generator->state, state, bytes);
    });
  };
}

tb_status read_counters(tb_counters* c, tb_error* error) {
  return guarded(error, [&] {
    check_size(c, TB_COUNTERS_SIZE_V1);
    c->operators = counters.operators;
    c->copies = counters.copies;
    c->copied_bytes = counters.copied_bytes;
    c->launches = c->program_builds = c->program_loads = 0;
  });
}

const tb_plugin_api& plugin() {
  static tb_plugin_api& made = *[] {
    auto* p = new tb_plugin_api{};
    tb_stub_fill(p);
    p->device.count = device_count;
    p->device.report = device_report;
    p->device.properties = device_properties;
    p->device.synchronize = device_synchronize;
    p->profiler.counters = read_counters;
    fill_streams(*p);
    fill_events(p->event);
    fill_generators(p->generator);
    fill_memory(*p);
    fill_operators(p->operators);
    pthread_atfork(nullptr, nullptr, [] { forked = true; });
    return p;
  }();
  return made;
}

}  // namespace

void fill_streams(tb_plugin_api& plugin) {
  tb_stream_api& s = plugin.stream;
  s.default_stream = [](int32_t device, tb_stream* stream, tb_error* error) {
    return guarded(error, [&] {
      check_device(device);
      *stream = &default_stream;
    });
  };
  s.create = [](int32_t device, int32_t, tb_stream* stream, tb_error* error) {
    return guarded(error, [&] {
      check_device(device);
      *stream = new tb_stream_s;
    });
  };
  s.destroy = [](tb_stream stream, tb_error* error) {
    return guarded(error, [&] {
      if (stream == &default_stream) invalid("the default stream is never destroyed");
      delete stream;
    });
  };
  s.device = [](tb_stream stream, int32_t* device, tb_error* error) {
    return guarded(error, [&] {
      check_stream(stream);
      *device = 0;
    });
  };
  s.synchronize = [](tb_stream stream, tb_error* error) {
    return guarded(error, [&] { const std::lock_guard lock(check_stream(stream).order); });
  };
  s.query = s.synchronize;  // work is done when its call returns
  s.wait_event = [](tb_stream stream, tb_event event, tb_error* error) {
    return guarded(error, [&] {
      check_stream(stream);
      check_handle(event);
    });
  };
}

}  // namespace blas

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const tb_plugin_descriptor_t tb_plugin_descriptor = {TB_PLUGIN_MAGIC,
                                                            sizeof(tb_plugin_descriptor_t),
                                                            TB_ABI_MAJOR,
                                                            TB_ABI_MINOR,
                                                            "blas",
                                                            "BLAS backend",
                                                            "1.0"};

EXPORT tb_status tb_plugin_get_api(uint32_t abi_major, const tb_host_api* host, tb_error* error,
                                   const tb_api** api) {
  return blas::guarded(error, [&] {
    if (abi_major != TB_ABI_MAJOR || (host != nullptr && host->struct_size < TB_HOST_API_SIZE_V1))
      throw blas::Refusal{TB_E_ABI, 0, "another version of the ABI"};
    *api = &blas::plugin().api;
  });
}
