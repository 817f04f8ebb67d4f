// Invalid values that only kernels see: an index outside of its dimension, a probability above 1. A
// kernel writes the first one into its stream's record (kernels/include/faults.h) and continues
// without the value; the stream's next synchronisation raises it. No launch waits for this.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/operators.h"
#include "runtime/driver/opencl.h"

namespace ocltensor::opencl {

class Device;

// What a kernel reports with an invalid value: a number made by fault_site(), or 0, which reports
// nothing.
struct FaultSite {
  int32_t number;
};

enum class FaultKind : int32_t {
  Index,
  Class,
  Probability,
  Weight,
  NoWeight,
  ZeroDivisor,
  Rate,
  Offset,
  Descent,
  End,
  Input,
  Target,
  PartEnd
};

// A number, never 0, that encodes an operator, what is wrong, and a dimension.
int32_t fault_site(const Operator& op, FaultKind kind, int64_t dim);
// A number below 0 that stands for a custom kernel, whose faults are indices out of range. `kernel`
// must live as long as the process.
int32_t fault_site(const char* kernel);

// One record. Functions may be called by any thread unless they are marked as the stream's.
class Faults {
 public:
  explicit Faults(Device& device) : device_(device) {}
  cl_mem record();  // created at the first call
  // To be called after a launch that may report.
  void expect() { expected_.store(true, std::memory_order_release); }
  bool are_expected() const { return expected_.load(std::memory_order_acquire); }
  // For the stream, under its lock and with its work finished: raises the first value reported
  // since the last call as TB_E_INDEX or TB_E_INVALID. Costs nothing if no launch could report.
  void raise_reported(cl_command_queue queue, uint64_t stream);

 private:
  Device& device_;
  std::once_flag once_;
  std::shared_ptr<cl::Buffer> record_;
  std::atomic<bool> expected_{false};
};

// The records of a stream: its own, and those of graphs.
class StreamFaults {
 public:
  explicit StreamFaults(Device& device) : own_(device) {}
  // That of launches from now on.
  Faults& current() { return *current_.load(std::memory_order_relaxed); }

  // For the stream, under its lock. Has launches report to a graph that is being recorded; null: no
  // longer.
  void use(Faults* of_graph) { current_ = of_graph == nullptr ? &own_ : of_graph; }
  // A replay of a graph may report.
  void expect(std::shared_ptr<Faults> of_graph);
  // As Faults::raise_reported(), of the stream's own work and of graphs that it has replayed.
  void raise_reported(cl_command_queue queue, uint64_t stream);

 private:
  Faults own_;
  std::atomic<Faults*> current_{&own_};
  std::vector<std::shared_ptr<Faults>> replayed_;  // since the last wait
};

}  // namespace ocltensor::opencl
