// Events: a recorded point of a stream, with a timestamp if asked for: the device's, or, if the
// driver stamps nothing, the host's time when the driver reports that the point is reached.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/driver/clhpp.h"

namespace ocltensor::opencl {

class Device;
class Stream;

// Waits on the host: CL_SUCCESS, or the failure of what the event is of. NVIDIA's driver (580) ends
// a wait for a failed event with success, and tells the failure to who asks for the status.
cl_int await(const cl::Event& event);

// Thread-safe. Recording again replaces the point. Waiting for an event does not raise invalid
// values that kernels met before it, because reading their record would wait for later work, too.
// The next wait for the stream or the device raises them.
class Event {
 public:
  Event(Device& device, bool timing) : device_(device), timing_(timing) {}
  Device& device() const { return device_; }
  void record(Stream& stream);
  bool reached();      // never recorded: false
  void synchronize();  // never recorded: returns at once
  void make_wait(Stream& stream);
  // TB_E_STATE if an event was created without timing, or has not been recorded.
  static double elapsed_ms(Event& start, Event& end);

 private:
  cl::Event retained();
  cl_ulong timestamp();

  Device& device_;
  const bool timing_;
  std::mutex mutex_;
  cl::Event event_;
  std::shared_ptr<std::atomic<cl_ulong>> arrival_;  // 0 until reached; none: the device stamps
};

}  // namespace ocltensor::opencl
