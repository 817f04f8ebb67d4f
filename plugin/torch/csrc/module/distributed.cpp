// Making a backend of torch.distributed from Python: see torch_ocl/distributed/__init__.py.
#include "distributed.h"

#include <torch/csrc/Exceptions.h>

#include "distributed/backend.h"
#include "distributed/c10d_engine.h"
#include "distributed/nccl_engine.h"
#include "distributed/registry.h"
#include "distributed/statistics.h"
#include "python_engine.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

c10::intrusive_ptr<c10d::Backend> make_distributed_backend(
    const py::object& engine, const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
    const std::string& name, double seconds, bool copies, double patience,
    const std::optional<std::string>& nccl) {
  using Backend = c10::intrusive_ptr<c10d::Backend>;
  const auto milliseconds = [](double given) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::duration<double>(given));
  };
  std::shared_ptr<distributed::Engine> carrier =
      py::isinstance<c10d::Backend>(engine) ? distributed::make_c10d_engine(engine.cast<Backend>())
                                            : make_python_engine(engine);
  const py::gil_scoped_release no_gil;
  std::shared_ptr<distributed::DeviceEngine> device_engine;
  if (nccl) device_engine = distributed::make_nccl_engine(store, *nccl, rank, size);
  return distributed::make_backend(std::move(carrier), store,
                                   {.rank = rank,
                                    .size = size,
                                    .name = name,
                                    .limit = milliseconds(seconds),
                                    .copies = copies,
                                    .patience = milliseconds(patience),
                                    .device_engine = std::move(device_engine)});
}

// {"calls": {title: [(calls, bytes, [seconds of each part], seconds in wait()), ...]}, "steps":
// DDP's that were timed, "exposed": seconds of these}
py::dict statistics() {
  const auto seconds = [](distributed::Clock::duration d) {
    return std::chrono::duration<double>(d).count();
  };
  const distributed::Statistics all = distributed::statistics();
  py::dict calls;
  for (const auto& [op, totals] : all.calls) {
    std::vector<double> parts;
    for (const auto part : totals.parts) parts.push_back(seconds(part));
    // Some kinds have one title: all_to_all.
    py::list rows = calls.contains(distributed::title_of(op))
                        ? py::list(calls[distributed::title_of(op)])
                        : py::list();
    rows.append(py::make_tuple(totals.calls, totals.bytes, parts, seconds(totals.waited)));
    calls[distributed::title_of(op)] = rows;
  }
  py::dict found;
  found["calls"] = calls;
  found["steps"] = all.steps;
  found["exposed"] = seconds(all.exposed);
  return found;
}

}  // namespace

void bind_distributed(py::module_& module) {
  module.def("make_distributed_backend", torch::wrap_pybind_function(&make_distributed_backend));
  module.def("nccl_version", torch::wrap_pybind_function_no_gil(&distributed::nccl_version));
  module.def("end_distributed_groups",
             torch::wrap_pybind_function_no_gil(&distributed::end_all_groups));
  module.def("distributed_statistics", torch::wrap_pybind_function(&statistics));
  module.def("reset_distributed_statistics",
             torch::wrap_pybind_function_no_gil(&distributed::reset_statistics));
}

}  // namespace torch_ocl
