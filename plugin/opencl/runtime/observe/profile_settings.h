// What OCLTENSOR_LOG_PROFILE_INFO and OCLTENSOR_TRACE_SIGNPOSTS ask for, from the first use of the
// plugin to the end of the process.
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

// Follows the two settings; call it when one may have changed. What the trace cannot do (a file
// that cannot be written, another trace) is an Error, and the setting is 0 again then.
void apply_settings();
// The same for the process's begin: a failure is logged.
void apply_environment() noexcept;

// Stops the trace that is being taken and writes it (trace::stop), whoever began it;
// OCLTENSOR_TRACE_SIGNPOSTS is 0 then.
void stop_trace();

// What is due at the end of the process: writes a trace that is still being taken, prints the
// statistics asked for. Does it once, and not in a child of fork(); later calls do nothing. Called
// at exit and, where the program has no handler of its own, on SIGINT.
void finish() noexcept;
// Makes finish() the first thing that the end of the process runs, before what has been registered
// until now; call it again once a driver has registered its own.
void finish_at_exit();

// Every table to standard error.
void print_statistics(uint32_t mask);

}  // namespace ocltensor::opencl::profiler
