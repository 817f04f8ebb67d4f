// The recorder of captures: the functions by which the runtime and the C boundary report to it. It
// is installed only if OCLTENSOR_CAPTURE_ENABLED is set when OpenCL is loaded: functions that
// record then replace some entries of cl(). Lock order: a stream's, then the recorder's.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "ocltensor/dtype.h"
#include "runtime/driver/opencl.h"

namespace ocltensor::opencl::recorder {

inline std::atomic<bool> recording_now{false};
// Whether a capture is being recorded. One relaxed load.
inline bool recording() { return recording_now.load(std::memory_order_relaxed); }

// Waits for all work, then records everything enqueued until stop(). TB_E_STATE if captures are not
// enabled; TB_E_INVALID if one is on already, or if the file cannot be written.
void start(const std::string& path);
// Waits for all work, adds the results and ends the file. TB_E_INVALID if no capture is on, and,
// with the reason, if recording failed in between: then the file is removed.
void stop();
bool capturing();  // between start() and stop()

// The source of a program, which may have been loaded as a binary. `name`: a readable name.
void describe(cl_program program, const std::string& source, const std::string& options,
              const char* name);
// Memory at an address was given to a new owner: tensors noted there are no longer valid.
void allocated(uint64_t address, uint64_t bytes);

// While an object lives, this thread's commands belong to an operator's call.
class OperatorCall {
 public:
  explicit OperatorCall(const char* name);
  ~OperatorCall();
  OperatorCall(const OperatorCall&) = delete;
  // Notes what the call wrote; to be called after it was enqueued. Tensors that a capture cannot
  // describe are left out.
  void output(uint64_t index, const tb_tensor& tensor);

 private:
  const char* outer_name_;
  uint64_t outer_call_, outer_written_in_;
};

}  // namespace ocltensor::opencl::recorder
