// A compiled graph as steps, which one call runs: memory, views, operators and kernels.
#pragma once

#include <memory>
#include <vector>

#include "integer.h"

namespace torch_ocl::plan {

// One call of a graph, by one thread. What it leaves, also by an exception, goes back: values are
// released, and the current device is as before.
struct TORCH_OCL_API Run {
  explicit Run(size_t values) : values(values) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  Values values;
  std::vector<c10::DeviceIndex> devices;  // to go back to, the last one first
};

// A result of an operator; a tensor that it does not have is None, as in Python.
inline c10::IValue as_result(c10::IValue value) {
  return value.isTensor() && !value.toTensor().defined() ? c10::IValue() : std::move(value);
}

// Immutable: threads run a plan at the same time. Python's lock is not held.
class Step {
 public:
  Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  virtual ~Step() = default;
  virtual void run(Run& run) const = 0;
};
using Steps = std::vector<std::unique_ptr<Step>>;

// Calls `look_up` between steps now and then, for interrupts.
TORCH_OCL_API void run_steps(const Steps& steps, Run& run, void (*look_up)());

}  // namespace torch_ocl::plan
