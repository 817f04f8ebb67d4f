// The recorder of captures: what the runtime and the C boundary tell it. It exists only where
// OCLTENSOR_CAPTURE_ENABLED is set when OpenCL is loaded: functions that record take the places of
// a few entries of cl() then. Lock order: a stream's, then the recorder's.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ocltensor/dtype.h"
#include "runtime/driver/opencl.h"

namespace ocltensor::opencl::recorder {

inline std::atomic<bool> recording_now{false};
// Is a capture being taken? One relaxed load.
inline bool recording() { return recording_now.load(std::memory_order_relaxed); }

// Waits for all work, then records everything enqueued until stop(). TB_E_STATE where capture is
// not enabled; TB_E_INVALID when one is on already, or where the file cannot be written.
void start(const std::string& path);
// Waits for all work, adds the results and ends the file. TB_E_INVALID when no capture is on, and
// with the reason where recording failed on the way: the file is removed then.
void stop();
bool capturing();  // between start() and stop()

// The text behind a program, which may have been loaded as a binary. `name`: for readers.
void describe(cl_program program, const std::string& source, const std::string& options,
              const char* name);
// Memory at an address was given to a new owner: what was known of its bytes is void.
void allocated(uint64_t address, uint64_t bytes);

// What this thread enqueues belongs to an operator's call, while this lives.
class OperatorCall {
 public:
  explicit OperatorCall(const char* name);
  ~OperatorCall();
  OperatorCall(const OperatorCall&) = delete;
  // What the call wrote, once it is enqueued. Tensors that this cannot describe are left out.
  void output(uint64_t index, const tb_tensor& tensor);

 private:
  const char* outer_name_;
  uint64_t outer_call_, outer_written_in_;
};

}  // namespace ocltensor::opencl::recorder
