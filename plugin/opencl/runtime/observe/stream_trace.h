// The commands of one stream while the profiler is on.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/driver/clhpp.h"
#include "runtime/observe/profiler.h"

namespace ocltensor::opencl {

class Device;

class StreamTrace {
 public:
  // `queue` stamps its commands, and is empty. Measures the offset of its clock to the host's.
  StreamTrace(Device& device, uint64_t stream, cl_command_queue queue);

  // Where the enqueuing call must store the next command's event. `work` describes the command, as
  // made by profiler::describe_command().
  cl_event* next(const profiler::DeviceWork& work);
  // Delivers everything to the profiler; all commands have finished.
  void finish() { collect(true, commands_.size()); }
  // Delivers the commands that have finished so far.
  void collect() { collect(false, commands_.size()); }

 private:
  struct Command {
    profiler::DeviceWork work;
    cl::Event event;
  };
  // Delivers at most the first `most` commands; `finished`: without querying whether they have
  // finished.
  void collect(bool finished, size_t most);

  Device& device_;
  const uint64_t stream_;
  int64_t to_host_ = 0;  // ns to add to a stamp
  std::deque<Command> commands_;
};

}  // namespace ocltensor::opencl
