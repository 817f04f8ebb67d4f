// The profiler: what the host calls and what the streams do between start() and stop(), written as
// a trace.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ocltensor::opencl {

class Stream;

namespace profiler {

// Odd while tracing; one more with each start and stop. A stream looks at it with every command.
inline std::atomic<uint32_t> session_count{0};
inline uint32_t session() { return session_count.load(std::memory_order_relaxed); }
inline bool is_tracing(uint32_t session) { return (session & 1) != 0; }
inline bool tracing() { return is_tracing(session()); }

// `mode`: "interval", "event" or both, separated by a comma; upper case and blanks do not matter.
// With `wait` every operator ends with its stream's synchronisation. An empty path gives
// ocltensor_trace_<process>_<number>.json in the current folder. TB_E_INVALID for another mode, a
// file that cannot be written, and when it is on already.
void start(std::string_view mode, bool wait, std::string path);
// Waits for all streams and writes the file; TB_E_INVALID when it is off.
void stop();

int64_t now();  // ns of the host's steady clock

// What a thread does between two points: an operator's call, a program's build, a user's range.
// `category` is a literal.
class HostCall {
 public:
  HostCall(const char* category, std::string_view name);
  ~HostCall();
  HostCall(const HostCall&) = delete;

 private:
  const char* category_;
  std::string name_;
  uint32_t session_;
  int64_t begin_;
  uint64_t id_, outer_;
};
// Ends an operator's call on a stream: samples the memory in use, and waits if start() was told to.
void finish_operator(Stream& stream);
// The user's ranges; of one thread, nested. pop gives TB_E_INVALID when none is open.
void push_range(std::string_view name);
void pop_range();

// This thread's innermost call; 0: none.
uint64_t current_call();

// A command that ran on a device; times are the host's.
struct DeviceWork {
  int device;
  uint64_t stream;
  const char* category;  // "kernel", "copy", "fill"; a literal
  const char* name;      // lives as long as the process
  uint64_t bytes;        // of copies and fills
  uint64_t call;
  int64_t queued, begin, end;
};
void add(const std::vector<DeviceWork>& works, uint64_t lost);

}  // namespace profiler
}  // namespace ocltensor::opencl
