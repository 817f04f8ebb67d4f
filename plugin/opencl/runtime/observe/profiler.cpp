// Keeps the users of the profiler, and passes each call and command to them.
#include "profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/thread_owned.h"
#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/observe/call_ledger.h"
#include "runtime/observe/profile_settings.h"
#include "runtime/observe/statistics.h"
#include "runtime/observe/trace.h"

namespace ocltensor::opencl::profiler {
namespace {

// Leaked: streams may end after static objects.
struct State {
  std::mutex switching;  // one join or leave at a time
  std::atomic<uint32_t> users{0};
  std::atomic<uint64_t> calls{0};
  std::mutex mutex;  // guards the listener and the ledger; delivers calls and commands singly
  Listener listener;
  CallLedger ledger;
  std::mutex names_mutex;
  std::unordered_set<std::string> names;
};
State& state() {
  static State& s = *new State;
  return s;
}

struct OpenRange {
  std::string name;
  bool recorded;
  int64_t begin;
};
thread_local HostCall* innermost = nullptr;
// What the thread has begun and not ended.
struct Open {
  std::vector<OpenRange> ranges;
  std::vector<std::unique_ptr<HostCall>> calls;
};
Open& open() {
  thread_local Open* own = nullptr;
  return thread_owned(own);
}
thread_local uint64_t correlation = 0;

void hear(const Call& call) {
  trace::add(call);
  statistics::add(call);
  const Listener& listener = state().listener;
  if (listener.call != nullptr) listener.call(listener.context, call);
}

// Every stream delivers its finished commands; returns the first failure of a stream.
std::exception_ptr flush_streams() {
  std::exception_ptr failure;
  for (const auto& device : device_list().devices) {
    if (!device->is_open()) continue;
    try {
      device->end_traces();
    } catch (const std::exception&) {
      if (!failure) failure = std::current_exception();
    }
  }
  return failure;
}

}  // namespace

void join(User user) {
  State& s = state();
  const std::lock_guard switching(s.switching);
  if (s.users.fetch_or(user) == 0) ++session_count;
}

std::exception_ptr leave(User user) {
  State& s = state();
  const std::lock_guard switching(s.switching);
  if ((s.users & user) == 0) return nullptr;
  ++session_count;
  std::exception_ptr failure = flush_streams();
  s.users &= ~static_cast<uint32_t>(user);
  if (s.users != 0) ++session_count;
  return failure;
}

bool listens(User user) { return (state().users & user) != 0; }

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int thread_number() {
  thread_local const int number = static_cast<int>(::syscall(SYS_gettid));
  return number;
}

HostCall::HostCall(const char* category, const char* name)
    : category_(category), name_(name), recorded_(recording()) {
  if (!recorded_) return;
  outer_ = std::exchange(innermost, this);
  id_ = ++state().calls;
  exceptions_ = std::uncaught_exceptions();
  begin_ = now();
}

HostCall::~HostCall() {
  if (!recorded_) return;
  innermost = outer_;
  if (outer_ != nullptr) outer_->bytes_ += bytes_;
  if (commands_ == 0 && std::uncaught_exceptions() > exceptions_) return;  // declined or refused
  const Call call{category_, name_, thread_number(), id_, correlation, bytes_, begin_, now()};
  const std::lock_guard lock(state().mutex);
  hear(call);
  state().ledger.end(call, commands_, std::move(text_));
}

void HostCall::say(std::string text) {
  if (!recorded_) return;
  if (CallLedger::waits_for_times())
    text_ = std::move(text);
  else
    CallLedger::write(text);
}

void push_range(std::string_view name) {
  open().ranges.push_back({std::string(name), recording(), now()});
}

void pop_range() {
  std::vector<OpenRange>& ranges = open().ranges;
  check(!ranges.empty(), "no range is open on this thread");
  OpenRange range = std::move(ranges.back());
  ranges.pop_back();
  if (!range.recorded) return;
  const std::lock_guard lock(state().mutex);
  hear({"range", std::move(range.name), thread_number(), ++state().calls, correlation, 0,
        range.begin, now()});
}

void begin_fallback(std::string_view name) {
  auto& call = *open().calls.emplace_back(std::make_unique<HostCall>("fallback", lasting(name)));
  if ((log_mask() & kLogFallbacks) != 0) call.say(fmt::format("fallback {}", name));
}

void end_call() {
  std::vector<std::unique_ptr<HostCall>>& calls = open().calls;
  check(!calls.empty(), "no call is open on this thread");
  calls.pop_back();
}

void note(const char* category, std::string_view name) {
  if (!recording()) return;
  const int64_t at = now();
  const std::lock_guard lock(state().mutex);
  hear({category, std::string(name), thread_number(), ++state().calls, correlation, 0, at, at});
}

void correlate(uint64_t number) { correlation = number; }

DeviceWork describe_command(const char* category, const char* name, uint64_t bytes) {
  DeviceWork work{0, 0, category, name, nullptr, bytes, 0, correlation, now(), 0, 0};
  if (innermost == nullptr) return work;
  HostCall& call = *innermost;
  ++call.commands_;
  call.bytes_ += bytes;
  work.call = call.id_;
  if (call.category_ == std::string_view("operator")) work.operation = call.name_;
  return work;
}

void add(const std::vector<DeviceWork>& works, const std::vector<DeviceWork>& lost) {
  const std::lock_guard lock(state().mutex);
  trace::lose(lost.size());
  for (const DeviceWork& work : lost) state().ledger.add(work);
  const Listener& listener = state().listener;
  for (const DeviceWork& work : works) {
    trace::add(work);
    statistics::add(work);
    state().ledger.add(work);
    if (listener.work != nullptr) listener.work(listener.context, work);
  }
}

void collect() {
  for (const auto& device : device_list().devices) {
    if (!recording() || !device->is_open()) continue;
    device->synchronize();
    device->collect_traces();
  }
}

const char* lasting(std::string_view name) {
  State& s = state();
  const std::lock_guard lock(s.names_mutex);
  return s.names.emplace(name).first->c_str();
}

void listen(const Listener& listener) {
  check_process();
  check(!listens(kListener), "the profiler has a listener already: remove it first");
  {
    const std::lock_guard lock(state().mutex);
    state().listener = listener;
  }
  join(kListener);
}

void stop_listening() {
  check_process();
  check(listens(kListener), "the profiler has no listener to remove");
  const std::exception_ptr failure = leave(kListener);
  {
    const std::lock_guard lock(state().mutex);
    state().listener = {};
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ocltensor::opencl::profiler
