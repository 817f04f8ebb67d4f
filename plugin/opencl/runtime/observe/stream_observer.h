// Who watches a stream: rehearsals and recordings of graphs take its commands, a trace asks when
// they ran.
#pragma once

#include <string>

#include "runtime/driver/opencl.h"

namespace ocltensor::opencl {

namespace profiler {
struct DeviceWork;
}
class Kernel;
struct Range;
struct Transfer;

// What the host does with a stream but for giving it commands.
struct HostUse {
  const char* name;  // for errors: "reading results on the host"
  bool takes_results = false;
};

// Each method is called under the stream's lock, but for event(): under the lock of those who
// submit.
class StreamObserver {
 public:
  virtual ~StreamObserver() = default;

  // Whether the command is the observer's from now on, and not enqueued.
  virtual bool take(Kernel& /*kernel*/, const Range& /*range*/) { return false; }
  virtual bool take(const Transfer& /*transfer*/, bool /*source_stays*/) { return false; }
  // A buffer of the command that was taken last, for as long as the command is kept.
  virtual void keep(cl::Buffer& /*buffer*/) {}

  // Throws Error(TB_E_STATE) if the host must not do this now.
  virtual void check(const HostUse& /*use*/) {}
  // Names the operator whose use of the stream has just been refused.
  virtual void name_failure(const std::string& /*operation*/) {}

  // Where the driver is to leave the event of a command that is being submitted; null: nowhere.
  virtual cl_event* event(const profiler::DeviceWork& /*work*/) { return nullptr; }
};

}  // namespace ocltensor::opencl
