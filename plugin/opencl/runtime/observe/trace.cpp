// Starts and stops a trace, and keeps its records.
#include "trace.h"

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/config.h"
#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/driver/process.h"
#include "runtime/observe/trace_file.h"

namespace ocltensor::opencl::profiler::trace {
namespace {

// Leaked: streams may end after static objects.
struct State {
  std::mutex switching;  // one start or stop at a time
  std::mutex mutex;      // guards the trace
  Trace trace;
  std::atomic<bool> on{false};
  std::atomic<bool> of_settings{false};
  std::atomic<bool> wait{false};
  uint32_t files = 0;
};
State& state() {
  static State& s = *new State;
  return s;
}

template <typename T>
void keep(std::vector<T>& list, const T& record) {
  Trace& trace = state().trace;
  if (list.size() < trace.limit) {
    list.push_back(record);
    return;
  }
  ++trace.lost;
  if (!std::exchange(trace.full, true))
    logging::warning("profiler",
                     "the trace is full at {} records of a kind: later ones are dropped, and "
                     "counted in it ({} changes the limit)",
                     trace.limit, config::name(config::Knob::TraceLimit));
}

bool wanted(std::string_view category) {
  const uint32_t kinds = state().trace.options.kinds;
  if (category == "range") return true;
  if (category == "copy") return (kinds & kCopies) != 0;
  if (category == "fallback") return (kinds & kFallbacks) != 0;
  return (kinds & kOperators) != 0;
}

bool wanted(const DeviceWork& work) {
  const bool copies = work.operation == nullptr && work.category != std::string_view("kernel");
  return (state().trace.options.kinds & (copies ? kCopies : kOperators)) != 0;
}

}  // namespace

TraceOptions options_of(std::string_view mode) {
  TraceOptions options;
  std::string word;
  const auto take = [&] {
    if (word == "interval")
      options.intervals = true;
    else if (word == "event")
      options.events = true;
    else
      fail(TB_E_INVALID, "invalid trace mode '{}': use interval, event, or interval,event", mode);
    word.clear();
  };
  for (const char c : mode) {
    if (c == ',')
      take();
    else if (std::isspace(static_cast<unsigned char>(c)) == 0)
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  take();
  return options;
}

void start(TraceOptions options) {
  check_process();
  State& s = state();
  const std::lock_guard switching(s.switching);
  check(!s.on, "the profiler is on already{}: stop it first",
        s.of_settings ? ", because OCLTENSOR_TRACE_SIGNPOSTS is set" : "");
  Trace trace;
  if (options.path.empty())
    options.path = fmt::format("ocltensor_trace_{}_{}.json", ::getpid(), ++s.files);
  // Made absolute now, because the program may change its working folder meanwhile.
  std::error_code no_folder;
  if (const auto path = std::filesystem::absolute(options.path, no_folder); !no_folder)
    options.path = path.string();
  check_writable(options.path);
  s.wait = options.wait;
  s.of_settings = options.of_settings;
  trace.options = std::move(options);
  trace.limit = static_cast<size_t>(config::get_int(config::Knob::TraceLimit));
  trace.begin = now();
  {
    const std::lock_guard lock(s.mutex);
    s.trace = std::move(trace);
  }
  s.on = true;
  join(kTrace);
}

bool is_on() { return state().on; }
bool is_of_settings() { return state().on && state().of_settings; }
bool waits() { return state().wait; }

Written stop() {
  check_process();
  State& s = state();
  const std::lock_guard switching(s.switching);
  check(s.on, "the profiler is off: start it first");
  const std::exception_ptr failure = leave(kTrace);
  s.on = false;
  s.wait = false;
  s.of_settings = false;
  Trace trace;
  {
    const std::lock_guard lock(s.mutex);
    trace = std::exchange(s.trace, {});
  }
  try {
    write(trace);
  } catch (const Error& error) {
    if (!failure) throw;
    logging::error("profiler", "{}", error.what());
  }
  if (failure) std::rethrow_exception(failure);
  return {trace.options.path, trace.size()};
}

void add(const Call& call) {
  State& s = state();
  if (!s.on) return;
  const std::lock_guard lock(s.mutex);
  if (call.begin >= s.trace.begin && wanted(call.category)) keep(s.trace.calls, call);
}

void add(const DeviceWork& work) {
  State& s = state();
  if (!s.on) return;
  const std::lock_guard lock(s.mutex);
  if (work.queued >= s.trace.begin && wanted(work)) keep(s.trace.works, work);
}

void add(const MemorySample& sample) {
  State& s = state();
  if (!s.on) return;
  const std::lock_guard lock(s.mutex);
  auto& samples = s.trace.memory;
  const bool same = !samples.empty() && samples.back().device == sample.device &&
                    samples.back().allocated == sample.allocated &&
                    samples.back().reserved == sample.reserved;
  if (!same && (s.trace.options.kinds & kOperators) != 0) keep(samples, sample);
}

void lose(size_t records) {
  State& s = state();
  if (records == 0 || !s.on) return;
  const std::lock_guard lock(s.mutex);
  s.trace.lost += records;
}

}  // namespace ocltensor::opencl::profiler::trace
