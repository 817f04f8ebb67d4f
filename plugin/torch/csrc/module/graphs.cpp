// Graphs for Python, and what callables that replay ask at each call: see torch_ocl/graphs.py and
// torch_ocl/_watch.py.
#include "graphs.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "runtime/generator.h"
#include "runtime/graphs.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

py::dict info_of(const Graph& graph) {
  const tb_graph_info info = graph.info();
  py::dict d;
  d["launches"] = info.launches;
  d["transfers"] = info.transfers;
  d["random_blocks"] = info.random_blocks;
  return d;
}

// Whether a tensor has the memory, the form and the flag of its recording.
bool is_as_recorded(const at::Tensor& now, const at::Tensor& then, const void* address,
                    bool needs_gradient) {
  return now.layout() == at::kStrided && now.const_data_ptr() == address &&
         now.scalar_type() == then.scalar_type() && now.sizes() == then.sizes() &&
         now.strides() == then.strides() && now.requires_grad() == needs_gradient;
}

// The fields of torch_ocl._watch._Place.
bool is_as_recorded(PyObject* place) {
  PyObject* const holder = PyTuple_GET_ITEM(place, 0);
  PyObject* const name = PyTuple_GET_ITEM(place, 1);
  PyObject* const value = PyTuple_GET_ITEM(place, 2);
  PyObject* const twin = PyTuple_GET_ITEM(place, 3);
  if (name == Py_None) return PyDict_Size(holder) == PyLong_AsSsize_t(value);
  if (PyDict_GetItemWithError(holder, name) != value) return false;
  if (twin == Py_None) return true;
  return is_as_recorded(THPVariable_Unpack(value), THPVariable_Unpack(twin),
                        PyLong_AsVoidPtr(PyTuple_GET_ITEM(place, 4)),
                        PyTuple_GET_ITEM(place, 5) == Py_True);
}

// The index of the first place that is not as it was recorded; -1 if all are.
int64_t first_difference(const py::list& places) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places.ptr()); ++i)
    if (!is_as_recorded(PyList_GET_ITEM(places.ptr(), i))) {
      if (PyErr_Occurred() != nullptr) throw py::error_already_set();
      return i;
    }
  return -1;
}

// Counts changes in place: equal sums mean that there was none in between.
uint64_t sum_of_versions(const py::tuple& tensors) {
  uint64_t sum = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tensors.ptr()); ++i)
    sum += THPVariable_Unpack(PyTuple_GET_ITEM(tensors.ptr(), i))._version();
  return sum;
}

}  // namespace

void bind_graphs(py::module_& module) {
  py::class_<Graph>(module, "Graph")
      .def(py::init<>())
      .def("register_generator_state", torch::wrap_pybind_function(&Graph::register_generator))
      .def("capture_begin", torch::wrap_pybind_function_no_gil(&Graph::capture_begin))
      .def("capture_end", torch::wrap_pybind_function_no_gil(&Graph::capture_end))
      .def("discard", &Graph::discard, py::call_guard<py::gil_scoped_release>())
      .def("replay", torch::wrap_pybind_function_no_gil(&Graph::replay))
      .def("reset", torch::wrap_pybind_function_no_gil(&Graph::reset))
      .def("pool", torch::wrap_pybind_function(&Graph::pool))
      .def("info", torch::wrap_pybind_function(&info_of));
  module.def("first_difference", torch::wrap_pybind_function(&first_difference));
  module.def("sum_of_versions", torch::wrap_pybind_function(&sum_of_versions));
  module.def("new_pool_id", torch::wrap_pybind_function(&new_pool_id));
  module.def("is_current_stream_capturing", torch::wrap_pybind_function(&is_recording));
}

}  // namespace torch_ocl
