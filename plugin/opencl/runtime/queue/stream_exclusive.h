// Exclusive access to a stream; for stream*.cpp alone.
#pragma once

#include <mutex>

#include "runtime/queue/stream.h"

namespace ocltensor::opencl {

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
