// Recording what threads call and what devices do, while somebody listens: a trace, the statistics
// and lines that the environment asks for, a host's own profiler.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace ocltensor::opencl {

namespace profiler {

// Odd while recording; one more with each begin and end. A stream looks at it with every command.
inline std::atomic<uint32_t> session_count{0};
inline uint32_t session() { return session_count.load(std::memory_order_relaxed); }
inline bool is_recording(uint32_t session) { return (session & 1) != 0; }
inline bool recording() { return is_recording(session()); }

// Who listens. join() begins recording if nobody did. leave() waits for all streams, so that
// everything enqueued before has been heard; it returns a failure of theirs instead of throwing it,
// and ends the recording if nobody else listens.
enum User : uint32_t { kTrace = 1, kLog = 2, kListener = 4 };
void join(User user);
std::exception_ptr leave(User user);
bool listens(User user);

int64_t now();  // ns of the host's steady clock
int thread_number();

// A call of a thread that has ended: an operator, a copy, a CPU fallback, a program's build, a
// range.
struct Call {
  const char* category;  // "operator", "copy", "fallback", "build", "load", "hit", "range"
  std::string name;
  int thread;  // the system's number
  uint64_t id, correlation;
  uint64_t bytes;  // of its copies, and of those of calls inside
  int64_t begin, end;
};
// A command that ran on a device; times are the host's.
struct DeviceWork {
  int device;
  uint64_t stream;
  const char* category;   // "kernel", "copy", "fill"; a literal
  const char* name;       // lives as long as the process
  const char* operation;  // the operator that it is a part of; nullptr: none
  uint64_t bytes;         // of copies and fills
  uint64_t call, correlation;
  int64_t queued, begin, end;
};

// What a thread does between two points. `name` lives as long as the process. Does nothing where
// nobody listens at its begin; a call that an exception ended before its first command is
// forgotten.
class HostCall {
 public:
  HostCall(const char* category, const char* name);
  ~HostCall();
  HostCall(const HostCall&) = delete;
  // The line of the log for this call; written at once, or with times when its commands are done.
  void say(std::string text);

 private:
  friend DeviceWork describe_command(const char*, const char*, uint64_t);
  const char* const category_;
  const char* const name_;
  const bool recorded_;
  HostCall* outer_ = nullptr;
  uint64_t id_ = 0;
  uint64_t bytes_ = 0;
  uint32_t commands_ = 0;
  int exceptions_ = 0;  // under way at the begin
  int64_t begin_ = 0;
  std::string text_;
};
// The user's ranges; of one thread, nested. pop gives TB_E_INVALID when none is open.
void push_range(std::string_view name);
void pop_range();
// A fallback of the host; end_call gives TB_E_INVALID when none is open on this thread.
void begin_fallback(std::string_view name);
void end_call();
// An event without duration of this thread.
void note(const char* category, std::string_view name);

// The number that this thread's calls and commands carry from now on; a host's own profiler finds
// its operators by it.
void correlate(uint64_t number);

// The command that this thread enqueues now, not yet run.
DeviceWork describe_command(const char* category, const char* name, uint64_t bytes);
void add(const std::vector<DeviceWork>& works, const std::vector<DeviceWork>& lost);

// Waits for all streams, so that every command so far has been heard.
void collect();

// A name that lives as long as the process.
const char* lasting(std::string_view name);

// Hears every call and command while it is set, with the profiler's lock held.
struct Listener {
  void (*call)(void* context, const Call& call) = nullptr;
  void (*work)(void* context, const DeviceWork& work) = nullptr;
  void* context = nullptr;
};
void listen(const Listener& listener);  // TB_E_INVALID when there is one
void stop_listening();

}  // namespace profiler
}  // namespace ocltensor::opencl
