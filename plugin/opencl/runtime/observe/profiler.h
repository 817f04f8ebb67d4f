// Records what threads call and what devices do, while there is a user: a trace, the statistics and
// lines that settings ask for, a host's own profiler.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace ocltensor::opencl {

namespace profiler {

// Odd while recording; incremented at each begin and end. A stream reads it at every command.
inline std::atomic<uint32_t> session_count{0};
inline uint32_t session() { return session_count.load(std::memory_order_relaxed); }
inline bool is_recording(uint32_t session) { return (session & 1) != 0; }
inline bool recording() { return is_recording(session()); }

// The users of the profiler. join() begins recording if there was no user. leave() waits for all
// streams, so that everything enqueued before has been delivered; it returns a failure of a stream
// instead of throwing it, and ends the recording if no other user is left.
enum User : uint32_t { kTrace = 1, kLog = 2, kListener = 4 };
void join(User user);
std::exception_ptr leave(User user);
bool listens(User user);

int64_t now();  // ns of the host's steady clock
int thread_number();

// A finished call of a thread: an operator, a copy, a CPU fallback, a program's build, a range.
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

// Records a call of a thread from construction to destruction. `name` lives as long as the process.
// Does nothing if there is no user at the begin; a call that an exception ended before its first
// command is dropped.
class HostCall {
 public:
  HostCall(const char* category, const char* name);
  ~HostCall();
  HostCall(const HostCall&) = delete;
  // Sets the line of the log for this call; it is written at once, or with times when its commands
  // have finished.
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
  int exceptions_ = 0;  // exceptions in flight at the begin
  int64_t begin_ = 0;
  std::string text_;
};
// The user's ranges, nested per thread. pop_range() throws TB_E_INVALID if none is open.
void push_range(std::string_view name);
void pop_range();
// A CPU fallback of the host. end_call() throws TB_E_INVALID if none is open on this thread.
void begin_fallback(std::string_view name);
void end_call();
// Records an event without duration on this thread.
void note(const char* category, std::string_view name);

// Sets the number that this thread's calls and commands carry from now on, by which a host's own
// profiler finds its operators.
void correlate(uint64_t number);

// Describes a command that this thread is about to enqueue.
DeviceWork describe_command(const char* category, const char* name, uint64_t bytes);
void add(const std::vector<DeviceWork>& works, const std::vector<DeviceWork>& lost);

// Waits for all streams, so that every command so far has been delivered.
void collect();

// A copy of the name that lives as long as the process.
const char* lasting(std::string_view name);

// Receives every call and command while it is set, with the profiler's lock held.
struct Listener {
  void (*call)(void* context, const Call& call) = nullptr;
  void (*work)(void* context, const DeviceWork& work) = nullptr;
  void* context = nullptr;
};
void listen(const Listener& listener);  // TB_E_INVALID if there is one already
void stop_listening();

}  // namespace profiler
}  // namespace ocltensor::opencl
