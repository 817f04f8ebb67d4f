// Tracing and logging by OCLTENSOR_LOG_PROFILE_INFO and OCLTENSOR_TRACE_SIGNPOSTS, from the first
// use of the plugin to the end of the process.
#pragma once

#include <atomic>
#include <cstdint>

namespace ocltensor::opencl::profiler {

enum : uint32_t {  // OCLTENSOR_LOG_PROFILE_INFO
  kLogOperators = 1,
  kLogCopies = 2,
  kLogFallbacks = 4,
  kLogAllStats = 8,
  kLogOperatorStats = 16,
  kLogCopyStats = 32,
  kLogFallbackStats = 64,
  kLogDeviceTime = 128,
  kLogKernelTime = 256,
  kLogBufferIds = 512,
  kLogBuildStats = 1024
};
inline std::atomic<uint32_t> log_mask_now{0};
inline uint32_t log_mask() { return log_mask_now.load(std::memory_order_relaxed); }

// Applies the two settings; to be called when one may have changed. If a trace cannot be started (a
// file that cannot be written, another trace), throws an Error and resets the setting to 0.
void apply_settings();
// The same at the beginning of the process: a failure is logged.
void apply_environment() noexcept;

// Stops the current trace and writes it (trace::stop), whichever way it was started; sets
// OCLTENSOR_TRACE_SIGNPOSTS to 0.
void stop_trace();

// The work at the end of the process: writes the current trace, prints the statistics that settings
// ask for. Runs once, and not in a child of fork(); later calls do nothing. Called at exit and, if
// the program has no handler of its own, on SIGINT.
void finish() noexcept;
// Makes finish() the first function that exit() runs, before those registered until now; to be
// called again after a driver has registered its own.
void finish_at_exit();

// Prints every table to standard error.
void print_statistics(uint32_t mask);

}  // namespace ocltensor::opencl::profiler
