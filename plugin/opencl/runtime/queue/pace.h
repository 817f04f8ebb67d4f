// A stream's pace: when its queue is flushed, and when the host has to wait for the device.
#pragma once

#include <cstdint>
#include <deque>

#include "runtime/driver/opencl.h"
#include "runtime/queue/run_ahead.h"

namespace ocltensor::opencl {

// RunAhead's marks in a queue. Used under the lock of the queue's commands.
class Pace {
 public:
  // After each command; `bytes` of host memory are the command's until it has run. CL_SUCCESS, or
  // what `call` failed with.
  cl_int keep(cl_command_queue queue, uint64_t bytes, const char*& call);
  void flushed() { unflushed_ = 0; }  // by others
  void forget();                      // nothing is in flight

 private:
  cl_int flush(cl_command_queue queue, const char*& call);
  cl_int mark(cl_command_queue queue, const char*& call);
  cl_int hear_of_reached(const char*& call);
  cl_int wait_while_too_far(const char*& call);

  uint64_t unflushed_ = 0;
  RunAhead run_ahead_;
  std::deque<Handle<cl_event>> marks_;  // as many as run_ahead_ knows of
};

}  // namespace ocltensor::opencl
