// Traces of the host's calls and the devices' work, for Perfetto or Chrome's about:tracing, their
// statistics, and captures, which ocltensor-replay runs again. Every function is thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ocltensor/device.h"

namespace ocltensor::profiler {

// Begins a trace of all threads and devices of a backend. `mode`: "interval" (slices with a
// duration), "event" (points in time) or "interval,event". With `wait_until_completed` each
// operator ends with its stream's synchronisation. `path`: the file to write; empty:
// ocltensor_trace_<process>_<number>.json in the current folder. Error TB_E_INVALID for another
// mode, a file that cannot be written, and when the profiler is on; TB_UNSUPPORTED for the CPU.
OCLTENSOR_API void start(std::string_view mode = "interval", bool wait_until_completed = false,
                         const std::string& path = {}, Device device = "ocl");
// Waits for all streams and writes the file. Error TB_E_INVALID when the profiler is off. A failure
// on a stream meanwhile is raised after the file is written.
OCLTENSOR_API void stop(Device device = "ocl");
OCLTENSOR_API bool is_enabled(Device device = "ocl");

enum class StatisticKind { Operator = 1, Kernel, Copy, Fallback, Build, Load, Hit };
struct Statistic {
  StatisticKind kind;
  std::string name;
  uint64_t count;
  // Milliseconds on the device for operators, kernels and copies; on the host for CPU fallbacks,
  // program builds, and programs loaded from the disk cache or found in memory.
  double total_ms, max_ms;
  double host_ms;  // of the calls themselves
  uint64_t bytes;  // of copies, and of the copies of fallbacks
  double mean_ms() const { return count == 0 ? 0 : total_ms / static_cast<double>(count); }
};
// Sums over everything recorded since the process began or reset_statistics(), longest total of a
// kind first; waits for the devices. Work is recorded while a trace is taken or
// OCLTENSOR_LOG_PROFILE_INFO is not 0. TB_UNSUPPORTED for the CPU.
OCLTENSOR_API std::vector<Statistic> statistics(Device device = "ocl");
OCLTENSOR_API void reset_statistics(Device device = "ocl");
OCLTENSOR_API void print_statistics(Device device = "ocl");  // as tables, to standard error

// A named range in this thread's track of the trace, from here to the end of the block. Costs next
// to nothing while the profiler is off.
class OCLTENSOR_API Range {
 public:
  explicit Range(const std::string& name, Device device = "ocl");
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Device device_;
};

// Captures need OCLTENSOR_CAPTURE_ENABLED=1 in the environment when the process begins to use the
// backend.
OCLTENSOR_API bool is_capture_enabled(Device device = "ocl");
OCLTENSOR_API bool is_capturing(Device device = "ocl");

// Writes what all threads enqueue from here to stop(), or to the end of the block, to one file:
// programs, launches with their arguments, buffers before their first use, and results. Begins and
// ends with the synchronisation of all streams; does not change results.
class OCLTENSOR_API Capture {
 public:
  // Error TB_E_STATE if captures are not enabled; TB_E_INVALID if one is being taken or the file
  // cannot be written; TB_UNSUPPORTED for the CPU.
  explicit Capture(const std::string& path, Device device = "ocl");
  // Stops, if stop() was not called; a failure is then lost.
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // Error TB_E_INVALID, with the reason, if recording failed on the way; the file is then removed.
  void stop();

 private:
  Device device_;
  bool on_ = true;
};

}  // namespace ocltensor::profiler
