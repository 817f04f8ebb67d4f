// What a stream owns of OpenCL, and exclusive access to it; for stream*.cpp alone.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "runtime/driver/clhpp.h"
#include "runtime/memory/staging.h"
#include "runtime/observe/stream_trace.h"
#include "runtime/queue/pace.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {

struct Stream::Objects {
  cl::CommandQueue queue;
  cl::CommandQueue profiling_queue;
  cl::Buffer stamp;  // that timing events write, in order to be stamped
  Pace pace;
  std::deque<std::pair<uint64_t, cl::Event>> markers;
  Staging staging;
};

inline cl_event* Stream::traced(const char* category, const char* name, uint64_t bytes) {
  return trace_ == nullptr ? nullptr
                           : trace_->next(profiler::describe_command(category, name, bytes));
}

// The stream's lock, with all launches submitted and none of them refused, in the profiler's
// session.
class Stream::Exclusive {
 public:
  explicit Exclusive(Stream& stream) : lock_(stream.mutex_), launches_(stream.hold_launches()) {
    if (stream.has_refusal_) [[unlikely]]
      stream.raise_refusal();
    stream.follow_profiler();
  }

 private:
  const std::lock_guard<std::mutex> lock_;
  const std::unique_lock<std::mutex> launches_;
};

}  // namespace ocltensor::opencl
