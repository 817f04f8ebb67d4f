// What a plan has from Python: values, and the steps that are lines of Python.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "plan/plan.h"

namespace torch_ocl {

// A tensor or an integer as a value; false for anything else, which a plan does not take.
bool take_value(c10::IValue& value, PyObject* object);

// A function that is called with values and returns a tuple of values, whatever they are.
class PythonStep final : public plan::Step {
 public:
  PythonStep(PyObject* function, std::vector<size_t> reads, std::vector<size_t> writes)
      : function_(function), reads_(std::move(reads)), writes_(std::move(writes)) {}
  void run(plan::Run& run) const override;

 private:
  PyObject* function_;  // the plan holds it
  std::vector<size_t> reads_, writes_;
};

// What a graph returns, in the caller's form.
pybind11::object give_value(const c10::IValue& value);

}  // namespace torch_ocl
