// The type PlanFunction: runs a plan's steps between the arguments and the results of a call.
#include "plan_function.h"

#include <structmember.h>
#include <torch/csrc/Exceptions.h>

#include "plan_values.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

struct PlanFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  Plan* plan;
};
Plan& plan_of(PyObject* self) { return *reinterpret_cast<PlanFunction*>(self)->plan; }

void look_up() {
  const py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// False if something is neither a tensor nor an integer: such a call runs in Python.
bool take_arguments(const Plan& plan, plan::Run& run, PyObject* arguments) {
  if (!PyList_CheckExact(arguments)) return false;
  const auto count = static_cast<Py_ssize_t>(plan.taken.size());
  if (count != 0 && PyList_GET_SIZE(arguments) != count) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    c10::IValue& value = run.values[plan.taken[static_cast<size_t>(i)]];
    if (!take_value(value, PyList_GET_ITEM(arguments, i))) return false;
  }
  for (const auto& [name, place] : plan.globals) {
    PyObject* const found = PyDict_GetItemWithError(plan.names.ptr(), name.ptr());
    if (found == nullptr || !take_value(run.values[place], found)) {
      PyErr_Clear();
      return false;
    }
  }
  // The graph owns its arguments: what nobody else has is released by its steps.
  return count == 0 || PyList_SetSlice(arguments, 0, count, nullptr) == 0;
}

PyObject* results_of(const Plan& plan, const plan::Run& run) {
  py::tuple results(plan.given.size());
  for (size_t i = 0; i < plan.given.size(); ++i) {
    const auto* place = std::get_if<size_t>(&plan.given[i]);
    results[i] =
        place == nullptr ? std::get<py::object>(plan.given[i]) : give_value(run.values[*place]);
  }
  return results.release().ptr();
}

PyObject* run_plan(const Plan& plan, PyObject* arguments) {
  TORCH_CHECK(plan.python, "a plan that has ended is called");
  plan::Run run(plan.values);
  if (!take_arguments(plan, run, arguments)) {
    run.values.clear();
    return PyObject_CallOneArg(plan.python.ptr(), arguments);
  }
  try {
    const py::gil_scoped_release release;
    plan::run_steps(plan.steps, run, look_up);
  } catch (const plan::DivisionByZero& error) {
    PyErr_SetString(PyExc_ZeroDivisionError, error.what());
    return nullptr;
  }
  return results_of(plan, run);
}

PyObject* call_plan(PyObject* self, PyObject* const* args, size_t flagged, PyObject* names) {
  HANDLE_TH_ERRORS
  const bool has_names = names != nullptr && PyTuple_GET_SIZE(names) != 0;
  if (has_names || PyVectorcall_NARGS(flagged) != 1)
    C10_THROW_ERROR(TypeError, "a compiled graph takes the list of its arguments");
  return run_plan(plan_of(self), args[0]);
  END_HANDLE_TH_ERRORS
}

// ---- The garbage collector
template <typename Visit>
int visit_objects(const Plan& plan, Visit visit) {
  int done = visit(plan.names.ptr());
  if (done == 0) done = visit(plan.python.ptr());
  for (const py::object& function : plan.functions)
    if (done == 0) done = visit(function.ptr());
  for (const auto& given : plan.given)
    if (const auto* object = std::get_if<py::object>(&given); object != nullptr && done == 0)
      done = visit(object->ptr());
  return done;
}

int visit_plan(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return visit_objects(
      plan_of(self), [&](PyObject* object) { return object == nullptr ? 0 : visit(object, arg); });
}

int clear_plan(PyObject* self) {
  Plan& plan = plan_of(self);
  plan.python = py::object();  // no call begins from here on
  plan.names = py::object();
  plan.functions.clear();
  plan.given.clear();
  return 0;
}

void free_plan(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<PlanFunction*>(self)->plan;
  type->tp_free(self);
  Py_DECREF(type);
}

// Kept for the life of the process.
PyTypeObject* plan_type() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(PlanFunction, vectorcall), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_dealloc, reinterpret_cast<void*>(free_plan)},
      {Py_tp_traverse, reinterpret_cast<void*>(visit_plan)},
      {Py_tp_clear, reinterpret_cast<void*>(clear_plan)},
      {Py_tp_members, members},
      {Py_tp_doc, const_cast<char*>("A compiled graph, as steps; made by Plan.finish")},
      {0, nullptr}};
  static PyType_Spec spec{"torch_ocl._C.PlanFunction", sizeof(PlanFunction), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                          slots};
  static auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (type == nullptr) throw py::error_already_set();
  return type;
}

}  // namespace

py::object make_plan_function(Plan plan) {
  auto owned = std::make_unique<Plan>(std::move(plan));
  PyTypeObject* type = plan_type();
  // Not tracked until it is complete: PyType_GenericAlloc would let the collector see it before.
  auto* made = PyObject_GC_New(PlanFunction, type);
  if (made == nullptr) throw py::error_already_set();
  made->vectorcall = call_plan;
  made->plan = owned.release();
  PyObject_GC_Track(made);
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(made));
}

}  // namespace torch_ocl
