// Making a backend of torch.distributed from Python: see torch_ocl/distributed/__init__.py.
#include "distributed.h"

#include <torch/csrc/Exceptions.h>

#include "distributed/backend.h"
#include "distributed/c10d_engine.h"
#include "distributed/registry.h"
#include "python_engine.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

c10::intrusive_ptr<c10d::Backend> make_distributed_backend(
    const py::object& engine, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const std::string& name, double seconds, bool copies) {
  using Backend = c10::intrusive_ptr<c10d::Backend>;
  const auto limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
  std::shared_ptr<distributed::Engine> carrier =
      py::isinstance<c10d::Backend>(engine) ? distributed::make_c10d_engine(engine.cast<Backend>())
                                            : make_python_engine(engine);
  const py::gil_scoped_release no_gil;
  return distributed::make_backend(std::move(carrier), store, {rank, size, name, limit, copies});
}

}  // namespace

void bind_distributed(py::module_& module) {
  module.def("make_distributed_backend", torch::wrap_pybind_function(&make_distributed_backend));
  module.def("end_distributed_groups",
             torch::wrap_pybind_function_no_gil(&distributed::end_all_groups));
}

}  // namespace torch_ocl
