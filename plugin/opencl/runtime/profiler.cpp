// Starting and stopping the profiler, and what it collects meanwhile.
#include "profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "device.h"
#include "memory.h"
#include "process.h"
#include "stream.h"
#include "trace_file.h"

namespace ocltensor::opencl::profiler {
namespace {

constexpr size_t kMost = size_t{1} << 21;  // records of a kind that a trace keeps: some 200 MiB

// Leaked: streams may end after static objects.
struct State {
  std::mutex switching;  // one start or stop at a time
  std::mutex mutex;      // guards the trace
  Trace trace;
  std::atomic<bool> wait{false};
  std::atomic<uint64_t> calls{0};
  uint32_t files = 0;
};
State& state() {
  static State& s = *new State;
  return s;
}

struct OpenRange {
  std::string name;
  uint32_t session;
  int64_t begin;
};
thread_local uint64_t innermost = 0;
thread_local std::vector<OpenRange> ranges;

int thread_number() {
  thread_local const int number = static_cast<int>(::syscall(SYS_gettid));
  return number;
}

template <typename T>
void keep(std::vector<T>& list, T record) {
  Trace& trace = state().trace;
  if (list.size() < kMost) {
    list.push_back(std::move(record));
    return;
  }
  ++trace.lost;
  if (!std::exchange(trace.full, true))
    logging::warning("profiler",
                     "the trace is full at {} records: later ones are dropped, and counted in it",
                     kMost);
}

void add_call(HostSlice slice, uint32_t of_session) {
  std::lock_guard lock(state().mutex);
  if (is_tracing(of_session) && session() == of_session)
    keep(state().trace.calls, std::move(slice));
}

void set_mode(Trace& trace, std::string_view mode) {
  std::string word;
  const auto take = [&] {
    if (word == "interval")
      trace.intervals = true;
    else if (word == "event")
      trace.events = true;
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
}

}  // namespace

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void start(std::string_view mode, bool wait, std::string path) {
  check_process();
  State& s = state();
  std::lock_guard switching(s.switching);
  check(!tracing(), "the profiler is on already: stop it first");
  Trace trace;
  set_mode(trace, mode);
  trace.wait = wait;
  trace.path = path.empty() ? fmt::format("ocltensor_trace_{}_{}.json", ::getpid(), ++s.files)
                            : std::move(path);
  check_writable(trace.path);
  trace.begin = now();
  {
    std::lock_guard lock(s.mutex);
    s.trace = std::move(trace);
    s.wait = wait;
  }
  ++session_count;
}

void stop() {
  check_process();
  State& s = state();
  std::lock_guard switching(s.switching);
  check(tracing(), "the profiler is off: start it first");
  ++session_count;
  s.wait = false;
  for (const auto& device : device_list().devices)
    if (device->is_open())
      for (const auto& stream : device->streams()) stream->end_trace();
  Trace trace;
  {
    std::lock_guard lock(s.mutex);
    trace = std::exchange(s.trace, {});
  }
  write(trace);
}

HostCall::HostCall(const char* category, std::string_view name)
    : category_(category),
      name_(name),
      session_(session()),
      begin_(now()),
      id_(++state().calls),
      outer_(std::exchange(innermost, id_)) {}

HostCall::~HostCall() {
  innermost = outer_;
  add_call({category_, std::move(name_), thread_number(), id_, begin_, now()}, session_);
}

void finish_operator(Stream& stream) {
  State& s = state();
  tb_memory_stats stats{};
  stream.device().memory().pool().fill_stats(stats);
  {
    std::lock_guard lock(s.mutex);
    auto& samples = s.trace.memory;
    const MemorySample sample{stream.device().index(), now(),
                              static_cast<uint64_t>(stats.allocated_bytes.current),
                              static_cast<uint64_t>(stats.reserved_bytes.current)};
    const bool same = !samples.empty() && samples.back().device == sample.device &&
                      samples.back().allocated == sample.allocated &&
                      samples.back().reserved == sample.reserved;
    if (tracing() && !same) keep(samples, sample);
  }
  if (s.wait) stream.synchronize();
}

void push_range(std::string_view name) { ranges.push_back({std::string(name), session(), now()}); }

void pop_range() {
  check(!ranges.empty(), "no range is open on this thread");
  OpenRange range = std::move(ranges.back());
  ranges.pop_back();
  if (tracing())
    add_call({"range", std::move(range.name), thread_number(), ++state().calls, range.begin, now()},
             range.session);
}

uint64_t current_call() { return innermost; }

void add(const std::vector<DeviceWork>& works, uint64_t lost) {
  std::lock_guard lock(state().mutex);
  state().trace.lost += lost;
  for (const DeviceWork& work : works) keep(state().trace.works, work);
}

}  // namespace ocltensor::opencl::profiler
