// The current trace: between start() and stop(), or for the whole process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/observe/profiler.h"

namespace ocltensor::opencl::profiler {

struct MemorySample {
  int device;
  int64_t at;
  uint64_t allocated, reserved;
};

// Kinds of records; ranges belong to all of them.
enum Kinds : uint32_t { kOperators = 1, kCopies = 2, kFallbacks = 4, kAllKinds = 7 };

struct TraceOptions {
  bool intervals = false;  // slices with a duration
  bool events = false;     // points in time
  bool wait = false;       // synchronise after each operator
  bool schedule = false;   // record the time that a command waited before it ran, too
  uint32_t kinds = kAllKinds;
  std::string path;          // empty: ocltensor_trace_<process>_<number>.json in the current folder
  bool of_settings = false;  // OCLTENSOR_TRACE_SIGNPOSTS began it
};

struct Trace {
  TraceOptions options;
  int64_t begin = 0;
  size_t limit = 0;   // records of a kind
  bool full = false;  // whether the user has been warned
  uint64_t lost = 0;  // records beyond the limit, and commands without times
  std::vector<Call> calls;
  std::vector<DeviceWork> works;
  std::vector<MemorySample> memory;
  size_t size() const { return calls.size() + works.size() + memory.size(); }
};

namespace trace {

// "interval", "event" or both, separated by a comma; upper case and blanks do not matter.
// TB_E_INVALID for anything else.
TraceOptions options_of(std::string_view mode);

// TB_E_INVALID if the file cannot be written, or if a trace is on already.
void start(TraceOptions options);
bool is_on();
bool is_of_settings();  // and OCLTENSOR_TRACE_SIGNPOSTS began it
bool waits();
// Waits for all streams and writes the file; only then raises a failure of a stream. TB_E_INVALID
// if no trace is on.
struct Written {
  std::string path;
  size_t records;
};
Written stop();

// Records calls and commands of the selected kinds while the trace is on; ignores others.
void add(const Call& call);
void add(const DeviceWork& work);
void add(const MemorySample& sample);
void lose(size_t records);

}  // namespace trace
}  // namespace ocltensor::opencl::profiler
