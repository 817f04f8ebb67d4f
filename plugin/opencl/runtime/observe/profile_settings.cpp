// Starts and stops traces, logs and tables as the two settings say.
#include "profile_settings.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "base/config.h"
#include "base/log.h"
#include "ocltensor/error.h"
#include "runtime/driver/interrupt.h"
#include "runtime/driver/process.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/statistics.h"
#include "runtime/observe/trace.h"

namespace ocltensor::opencl::profiler {
namespace {

enum : int64_t {  // OCLTENSOR_TRACE_SIGNPOSTS
  kAllEvents = 1,
  kAllIntervals = 2,
  kWait = 4,
  kSchedule = 8,
  kIntervals = 16,
  kEvents = 32,
  kFirstKind = 65536  // and Kinds from there
};

struct State {
  std::mutex mutex;
  int64_t signposts = 0;  // in force
  std::once_flag finished;
  const pid_t process = ::getpid();
};
State& state() {
  static State& s = *new State;
  return s;
}

// A mask without a mode means intervals; one without a kind, or with "all" of a mode, means every
// kind.
TraceOptions options_of_mask(int64_t mask) {
  TraceOptions options;
  options.events = (mask & (kAllEvents | kEvents)) != 0;
  options.intervals = (mask & (kAllIntervals | kIntervals)) != 0 || !options.events;
  options.wait = (mask & kWait) != 0;
  options.schedule = (mask & kSchedule) != 0;
  const auto kinds = static_cast<uint32_t>(mask / kFirstKind);
  options.kinds = (mask & (kAllEvents | kAllIntervals)) != 0 || kinds == 0 ? kAllKinds : kinds;
  options.of_settings = true;
  return options;
}

void say(const std::string& line) { (void)std::fwrite(line.data(), 1, line.size(), stderr); }

void write_trace() {
  const trace::Written written = trace::stop();
  say(fmt::format("ocltensor: wrote a trace of {} records to {}\n", written.records, written.path));
}

void follow_log(uint32_t mask) {
  const uint32_t before = log_mask_now.exchange(mask);
  if (before == 0 && mask != 0) join(kLog);
  if (before != 0 && mask == 0)
    if (const std::exception_ptr failure = leave(kLog)) std::rethrow_exception(failure);
}

void follow_signposts(int64_t mask) {
  State& s = state();
  if (!trace::is_of_settings()) s.signposts = 0;  // stopped by stop()
  if (mask == s.signposts) return;
  s.signposts = 0;
  if (trace::is_of_settings()) write_trace();
  if (mask == 0) return;
  try {
    trace::start(options_of_mask(mask));
  } catch (const Error&) {
    config::set(config::Knob::TraceSignposts, "0");
    throw;
  }
  s.signposts = mask;
}

void report(const char* what, const std::exception& error) {
  logging::error("profiler", "{}: {}", what, error.what());
}

}  // namespace

void apply_settings() {
  const std::lock_guard lock(state().mutex);
  const auto log = static_cast<uint32_t>(config::get_int(config::Knob::LogProfileInfo));
  const int64_t signposts = config::get_int(config::Knob::TraceSignposts);
  if (log != 0 || signposts != 0) {
    finish_at_exit();
    finish_on_interrupt([] { finish(); });
  }
  follow_log(log);
  follow_signposts(signposts);
}

void apply_environment() noexcept {
  try {
    apply_settings();
  } catch (const std::exception& error) {
    report("this process is not traced", error);
  }
}

void stop_trace() {
  if (!trace::is_of_settings()) {
    (void)trace::stop();
    return;
  }
  config::set(config::Knob::TraceSignposts, "0");
  apply_settings();
}

void finish_at_exit() {
  (void)std::atexit([] { finish(); });
}

void finish() noexcept {
  State& s = state();
  if (s.process != ::getpid() || is_forked()) return;
  std::call_once(s.finished, [&] {
    const uint32_t mask = log_mask();
    try {
      if (trace::is_on()) write_trace();
    } catch (const std::exception& error) {
      report("the trace that was being taken when the process ended is not complete", error);
    }
    try {
      follow_log(0);
    } catch (const std::exception& error) {
      report("at the end of the process", error);
    }
    try {
      print_statistics(mask);
    } catch (const std::exception& error) {
      report("no statistics", error);
    }
  });
}

void print_statistics(uint32_t mask) {
  using statistics::Kind;
  constexpr struct {
    uint32_t bits;
    Kind kind;
  } kTables[] = {{kLogAllStats | kLogOperatorStats, Kind::Operator},
                 {kLogAllStats | kLogFallbackStats, Kind::Fallback},
                 {kLogAllStats | kLogCopyStats, Kind::Copy},
                 {kLogAllStats | kLogBuildStats, Kind::Build},
                 {kLogAllStats | kLogBuildStats, Kind::Load}};
  std::string text;
  for (const auto& table : kTables) {
    if ((mask & table.bits) == 0) continue;
    text += statistics::table(table.kind);
    if (table.kind == Kind::Operator && (mask & kLogKernelTime) != 0)
      text += statistics::table(Kind::Kernel);
  }
  say(text);
}

}  // namespace ocltensor::opencl::profiler
