// A stream's pace: when its queue is flushed, and when the host has to wait for the device.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/driver/clhpp.h"
#include "runtime/queue/run_ahead.h"

namespace ocltensor::opencl {

// Marks in a queue, set as RunAhead decides. Used under the lock of the queue's commands.
class Pace {
 public:
  // To be called after each command; it uses `bytes` of host memory until it has run. Returns
  // CL_SUCCESS, or the error of `call`.
  cl_int keep(cl_command_queue queue, uint64_t bytes, const char*& call);
  void flushed() { unflushed_ = 0; }  // to be called when others have flushed
  void forget();                      // to be called when nothing is in flight

 private:
  cl_int flush(cl_command_queue queue, const char*& call);
  cl_int mark(cl_command_queue queue, const char*& call);
  cl_int hear_of_reached(const char*& call);
  cl_int wait_while_too_far(const char*& call);

  uint64_t unflushed_ = 0;
  RunAhead run_ahead_;
  std::deque<cl::Event> marks_;  // as many as run_ahead_ knows of
};

}  // namespace ocltensor::opencl
