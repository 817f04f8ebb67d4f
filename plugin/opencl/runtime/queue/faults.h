// Wrong values that only kernels see: an index outside of its dimension, a probability above 1. A
// kernel writes the first one into its stream's record (kernels/include/faults.h) and goes on
// without the value; the stream's next synchronisation raises it. No launch waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/operators.h"
#include "runtime/driver/opencl.h"

namespace ocltensor::opencl {

class Device;

// Who reports a wrong value: what fault_site() gives, or 0, which reports nothing.
struct FaultSite {
  int32_t number;
};

enum class FaultKind : int32_t { Index, Class, Probability, Weight, NoWeight, ZeroDivisor };

// Names an operator, what is wrong, and a dimension, as a number that is never 0.
int32_t fault_site(const Operator& op, FaultKind kind, int64_t dim);

// A stream's record. What is not marked as the stream's may be called by any thread.
class Faults {
 public:
  explicit Faults(Device& device) : device_(device) {}
  cl_mem record();  // made when it is first asked for
  // After a launch that may report.
  void expect() { expected_.store(true, std::memory_order_release); }
  // The stream's, under its lock and with its work finished: raises what was reported since the
  // last time as TB_E_INDEX or TB_E_INVALID. Costs nothing where no launch could report anything.
  void raise_reported(cl_command_queue queue, uint64_t stream);

 private:
  Device& device_;
  std::once_flag once_;
  Handle<cl_mem> record_;
  std::atomic<bool> expected_{false};
};

}  // namespace ocltensor::opencl
