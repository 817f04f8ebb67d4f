// Traces of what the host calls and what devices do, for Perfetto or Chrome's about:tracing, and
// captures of it, to be run again. Every function is thread-safe.
#pragma once

#include <string>

#include "ocltensor/device.h"

namespace ocltensor::profiler {

// Begins a trace of all threads and devices of a backend. `mode`: "interval" (slices with a
// duration), "event" (points in time) or "interval,event". With `wait_until_completed` each
// operator ends with its stream's synchronisation. `path`: the file to write; empty:
// ocltensor_trace_<process>_<number>.json in the current folder. Error TB_E_INVALID for another
// mode, a file that cannot be written, and when the profiler is on; TB_UNSUPPORTED for the CPU.
OCLTENSOR_API void start(std::string_view mode = "interval", bool wait_until_completed = false,
                         const std::string& path = {}, Device device = "ocl");
// Waits for all streams and writes the file. Error TB_E_INVALID when the profiler is off.
OCLTENSOR_API void stop(Device device = "ocl");
OCLTENSOR_API bool is_enabled(Device device = "ocl");

// A range of this thread's track from here to the end of the block. Costs next to nothing while the
// profiler is off.
class OCLTENSOR_API Range {
 public:
  explicit Range(const std::string& name, Device device = "ocl");
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Device device_;
};

// Captures, to be run again by ocltensor-replay. They need OCLTENSOR_CAPTURE_ENABLED=1 in the
// environment when the process begins to use the backend.
OCLTENSOR_API bool is_capture_enabled(Device device = "ocl");
OCLTENSOR_API bool is_capturing(Device device = "ocl");

// What all threads enqueue from here to stop(), or to the end of the block, goes to one file:
// programs, launches with their arguments, buffers before their first use, and results. Begins and
// ends with the synchronisation of all streams; no result changes.
class OCLTENSOR_API Capture {
 public:
  // Error TB_E_STATE where capture is not enabled; TB_E_INVALID where one is on already or the file
  // cannot be written; TB_UNSUPPORTED for the CPU.
  explicit Capture(const std::string& path, Device device = "ocl");
  // Stops, if stop() was not called; a failure is then lost.
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  // Error TB_E_INVALID, with the reason, where recording failed on the way: the file is removed.
  void stop();

 private:
  Device device_;
  bool on_ = true;
};

}  // namespace ocltensor::profiler
