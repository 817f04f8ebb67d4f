// A trace in the JSON format of Chrome's tracing, which Perfetto reads (Trace Event Format, Google,
// 2016).
#pragma once

#include <string>
#include <vector>

#include "profiler.h"

namespace ocltensor::opencl::profiler {

struct HostSlice {
  const char* category;
  std::string name;
  int thread;  // the system's number
  uint64_t id;
  int64_t begin, end;
};
struct MemorySample {
  int device;
  int64_t at;
  uint64_t allocated, reserved;
};

struct Trace {
  std::string path;
  bool intervals = false;
  bool events = false;
  bool wait = false;
  int64_t begin = 0;
  bool full = false;  // and the user was told
  uint64_t lost = 0;  // records beyond the limit, and commands without times
  std::vector<HostSlice> calls;
  std::vector<DeviceWork> works;
  std::vector<MemorySample> memory;
};

// TB_E_INVALID with the system's reason if the file cannot be written.
void check_writable(const std::string& path);
void write(const Trace& trace);

}  // namespace ocltensor::opencl::profiler
