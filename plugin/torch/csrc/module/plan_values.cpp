// Values between Python and a plan.
#include "plan_values.h"

#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/python/pybind_utils.h>

namespace torch_ocl {
namespace py = pybind11;

bool take_value(c10::IValue& value, PyObject* object) {
  if (THPVariable_Check(object)) {
    value = THPVariable_Unpack(object);
    return true;
  }
  if (!PyLong_CheckExact(object)) return false;
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
  value = static_cast<int64_t>(number);
  return overflow == 0;
}

py::object give_value(const c10::IValue& value) {
  if (value.isTensor())
    return py::reinterpret_steal<py::object>(THPVariable_Wrap(value.toTensor()));
  return torch::jit::toPyObject(value);
}

void PythonStep::run(plan::Run& run) const {
  const py::gil_scoped_acquire gil;
  py::tuple arguments(reads_.size());
  for (size_t i = 0; i < reads_.size(); ++i) arguments[i] = give_value(run.values[reads_[i]]);
  const auto results =
      py::reinterpret_steal<py::object>(PyObject_Call(function_, arguments.ptr(), nullptr));
  if (!results) throw py::error_already_set();
  for (size_t i = 0; i < writes_.size(); ++i) {
    PyObject* const result = PyTuple_GET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i));
    c10::IValue& value = run.values[writes_[i]];
    if (PyFloat_CheckExact(result))
      value = PyFloat_AS_DOUBLE(result);
    else if (PyBool_Check(result))
      value = result == Py_True;
    else if (!take_value(value, result))
      value = torch::jit::toIValue(result, c10::PyObjectType::get());
  }
}

}  // namespace torch_ocl
