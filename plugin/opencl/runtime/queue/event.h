// Events: a recorded point of a stream, with timestamps if asked for: the device's, or the host's
// clock when the driver says that the point is reached, where it has none.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "runtime/driver/opencl.h"

namespace ocltensor::opencl {

class Device;
class Stream;

// Thread-safe. Recording again replaces the point. Waiting for an event does not raise wrong values
// that kernels met before it: reading their record would wait for what came after. The next wait
// for the stream or the device does.
class Event {
 public:
  Event(Device& device, bool timing) : device_(device), timing_(timing) {}
  Device& device() const { return device_; }
  void record(Stream& stream);
  bool reached();      // never recorded: false
  void synchronize();  // never recorded: returns at once
  void make_wait(Stream& stream);
  // TB_E_STATE without timing or before record.
  static double elapsed_ms(Event& start, Event& end);

 private:
  Handle<cl_event> retained();
  cl_ulong timestamp();

  Device& device_;
  const bool timing_;
  std::mutex mutex_;
  Handle<cl_event> event_;
  std::shared_ptr<std::atomic<cl_ulong>> arrival_;  // 0 until then; none: the device stamps events
};

}  // namespace ocltensor::opencl
