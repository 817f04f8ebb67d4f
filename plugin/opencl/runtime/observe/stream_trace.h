// The commands of one stream while the profiler is on.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/driver/opencl.h"
#include "runtime/observe/profiler.h"

namespace ocltensor::opencl {

class Device;

class StreamTrace {
 public:
  // `queue` stamps its commands; nothing is on it. Measures how its clock lies to the host's.
  StreamTrace(Device& device, uint64_t stream, cl_command_queue queue);

  // Where the enqueuing call puts the next command's event. `work` describes it, as
  // profiler::describe_command() gave it.
  cl_event* next(const profiler::DeviceWork& work);
  // Delivers everything to the profiler; all of it has finished.
  void finish() { collect(true, commands_.size()); }
  // Delivers what has finished so far.
  void collect() { collect(false, commands_.size()); }

 private:
  struct Command {
    profiler::DeviceWork work;
    Handle<cl_event> event;
  };
  // The first `most` of them at most; `finished`: without asking the driver whether they have.
  void collect(bool finished, size_t most);

  Device& device_;
  const uint64_t stream_;
  int64_t to_host_ = 0;  // ns to add to a stamp
  std::deque<Command> commands_;
};

}  // namespace ocltensor::opencl
