// The commands of one stream while the profiler is on.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/driver/clhpp.h"
#include "runtime/observe/profiler.h"
#include "runtime/observe/stream_observer.h"

namespace ocltensor::opencl {

class Device;

class StreamTrace final : public StreamObserver {
 public:
  // `queue` stamps its commands, and is empty. Measures the offset of its clock to the host's.
  StreamTrace(Device& device, uint64_t stream, cl_command_queue queue);

  // `work` describes the command, as made by profiler::describe_command(). A command that is not
  // submitted after all counts as lost.
  cl_event* event(const profiler::DeviceWork& work) override;
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
