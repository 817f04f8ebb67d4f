// The profiler at the C boundary.
#include "entry.h"
#include "operator_count.h"
#include "runtime/driver/process.h"
#include "runtime/observe/profile_settings.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/statistics.h"
#include "runtime/observe/trace.h"
#include "runtime/program/program.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {
namespace {

tb_status start(const char* mode, int32_t wait_until_completed, const char* path, tb_error* error) {
  return guarded(error, [&] {
    profiler::TraceOptions options = profiler::trace::options_of(&required(mode, "mode"));
    options.wait = wait_until_completed != 0;
    if (path != nullptr) options.path = path;
    profiler::trace::start(std::move(options));
    profiler::finish_at_exit();
  });
}
tb_status stop(tb_error* error) {
  return guarded(error, [] { profiler::stop_trace(); });
}
tb_status is_enabled(int32_t* enabled, tb_error* error) {
  return guarded(error, [&] { required(enabled, "enabled") = profiler::trace::is_on() ? 1 : 0; });
}
tb_status push_range(const char* name, tb_error* error) {
  return guarded(error, [&] { profiler::push_range(&required(name, "name")); });
}
tb_status pop_range(tb_error* error) {
  return guarded(error, [] { profiler::pop_range(); });
}
tb_status counters(tb_counters* out, tb_error* error) {
  return guarded(error, [&] {
    const WorkCounters& w = work_counters();
    const BuildCounters& b = build_counters();
    fill_struct(out,
                {0, 0, operators_run(), w.launches, w.copies, w.copied_bytes, b.builds, b.loads},
                TB_COUNTERS_SIZE_V1);
  });
}

tb_status begin_call(const char* category, const char* name, tb_error* error) {
  return guarded(error, [&] {
    check(std::string_view(&required(category, "category")) == "fallback",
          "a host's calls have the category 'fallback', not '{}'", category);
    profiler::begin_fallback(&required(name, "name"));
  });
}
tb_status end_call(tb_error* error) {
  return guarded(error, [] { profiler::end_call(); });
}

tb_status statistics(void (*row)(void*, const tb_statistic*), void* context, tb_error* error) {
  return guarded(error, [&] {
    check(row != nullptr, "'row' must not be NULL");
    profiler::collect();
    for (uint32_t kind = 1; kind <= profiler::statistics::kKindCount; ++kind)
      for (const auto& r :
           profiler::statistics::rows(static_cast<profiler::statistics::Kind>(kind))) {
        const tb_statistic one{sizeof one,
                               kind,
                               r.name.c_str(),
                               r.count,
                               static_cast<uint64_t>(r.total_ns),
                               static_cast<uint64_t>(r.longest_ns),
                               static_cast<uint64_t>(r.host_ns),
                               r.bytes};
        row(context, &one);
      }
  });
}
tb_status reset_statistics(tb_error* error) {
  return guarded(error, [] {
    profiler::collect();  // so that what ran before counts in the sums that end here
    profiler::statistics::reset();
  });
}
tb_status print_statistics(tb_error* error) {
  return guarded(error, [] {
    profiler::collect();
    profiler::print_statistics(profiler::kLogAllStats | profiler::kLogKernelTime);
  });
}
tb_status finish(tb_error* error) {
  return guarded(error, [] {
    check_process();
    profiler::finish();
  });
}

// The host's listener. Leaked, once per listener, because a late record may still use it.
struct Ear {
  void (*hear)(void*, const tb_record*);
  void* context;
};

void hear_call(void* ear, const profiler::Call& c) {
  const tb_record record{
      sizeof record, TB_RECORD_CALL, c.category, c.name.c_str(), nullptr, c.id, c.correlation,
      c.begin,       c.begin,        c.end,      c.bytes,        0,       0,    c.thread};
  const Ear& to = *static_cast<Ear*>(ear);
  to.hear(to.context, &record);
}
void hear_work(void* ear, const profiler::DeviceWork& w) {
  const tb_record record{sizeof record, TB_RECORD_COMMAND, w.category, w.name,  w.operation,
                         w.call,        w.correlation,     w.queued,   w.begin, w.end,
                         w.bytes,       w.stream,          w.device,   0};
  const Ear& to = *static_cast<Ear*>(ear);
  to.hear(to.context, &record);
}

tb_status listen(void (*hear)(void*, const tb_record*), void* context, tb_error* error) {
  return guarded(error, [&] {
    if (hear == nullptr) return profiler::stop_listening();
    profiler::listen({hear_call, hear_work, new Ear{hear, context}});
  });
}
tb_status correlate(uint64_t number, tb_error* error) {
  return guarded(error, [&] { profiler::correlate(number); });
}

}  // namespace

const tb_profiler_api kProfilerApi{
    .struct_size = sizeof(tb_profiler_api),
    .start = start,
    .stop = stop,
    .is_enabled = is_enabled,
    .push_range = push_range,
    .pop_range = pop_range,
    .counters = counters,
    .begin_call = begin_call,
    .end_call = end_call,
    .statistics = statistics,
    .reset_statistics = reset_statistics,
    .print_statistics = print_statistics,
    .finish = finish,
    .listen = listen,
    .correlate = correlate,
};

}  // namespace ocltensor::opencl
