// The commands of one stream while the profiler is on.
#pragma once

#include <cstdint>
#include <deque>

#include "opencl.h"
#include "profiler.h"

namespace ocltensor::opencl {

class Device;

class StreamTrace {
 public:
  // `queue` stamps its commands; nothing is on it. Measures how its clock lies to the host's.
  StreamTrace(Device& device, uint64_t stream, cl_command_queue queue);

  // Where the enqueuing call puts the next command's event. `work` describes it, as
  // profiler::describe_command() gave it.
  cl_event* next(const profiler::DeviceWork& work);
  // Hands everything to the profiler; all of it has finished.
  void finish() { collect(true); }
  // Hands over what has finished; `finished`: all of it has.
  void collect(bool finished);

 private:
  struct Command {
    profiler::DeviceWork work;
    Handle<cl_event> event;
  };
  Device& device_;
  const uint64_t stream_;
  int64_t to_host_ = 0;  // ns to add to a stamp
  std::deque<Command> commands_;
};

}  // namespace ocltensor::opencl
