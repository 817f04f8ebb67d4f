// Graphs for Python: see torch_ocl/graphs.py.
#include "graphs.h"

#include <torch/csrc/Exceptions.h>

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
  module.def("new_pool_id", torch::wrap_pybind_function(&new_pool_id));
  module.def("is_current_stream_capturing", torch::wrap_pybind_function(&is_recording));
}

}  // namespace torch_ocl
