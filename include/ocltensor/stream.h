// Streams (in-order queues), events, and the current stream of a thread. Every function is
// thread-safe.
#pragma once

#include <memory>

#include "ocltensor/device.h"

namespace ocltensor {

class Event;

// Shared handle; the queue is destroyed with the last handle or tensor that uses it.
class OCLTENSOR_API Stream {
 public:
  Stream() = default;  // of no device
  // `priority` is a hint that a backend may ignore.
  static Stream create(Device device, int priority = 0);
  static Stream default_of(Device device);
  Device device() const;                // Error TB_E_INVALID for a stream of no device
  void synchronize() const;             // raises a pending asynchronous failure, once
  bool query() const;                   // true when idle
  void wait(const Event& event) const;  // later work waits; the host does not
  tb_stream handle() const;
  explicit operator bool() const { return impl_ != nullptr; }
  friend bool operator==(const Stream& a, const Stream& b) { return a.impl_ == b.impl_; }

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

// The stream that operators and copies on `device` use in this thread; the device's default stream
// until set_current_stream().
OCLTENSOR_API const Stream& current_stream(Device device);
OCLTENSOR_API void set_current_stream(const Stream& stream);

// Makes a stream current in this thread for a scope.
class OCLTENSOR_API StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Stream previous_;
};

// A point in a stream. One event may be recorded again; handles are shared.
class OCLTENSOR_API Event {
 public:
  explicit Event(Device device = "ocl", bool enable_timing = false);
  void record() const;  // on the device's current stream
  void record(const Stream& stream) const;
  void wait(const Stream& stream) const;  // the stream waits for the event
  bool query() const;                     // never recorded: false
  void synchronize() const;               // never recorded: returns at once
  // Milliseconds from this event to `end`, from device timestamps. Waits for both. Error without
  // timing, or if one was never recorded.
  double elapsed_time(const Event& end) const;
  tb_event handle() const;
  Device device() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace ocltensor
