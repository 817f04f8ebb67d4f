// Snapshots in PyTorch's format.
#include "memory_history.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/profiler/python/combined_traceback.h>

#include <algorithm>
#include <vector>

#include "runtime/memory_history.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

py::dict to_dict(const MemoryEvent& e, const char* action, const py::object& frames) {
  py::dict d;
  d["action"] = action;
  d["addr"] = e.address;
  d["size"] = e.bytes;
  d["stream"] = e.stream;
  d["time_us"] = e.time_us;
  d["frames"] = frames;
  return d;
}

// The frames of many events, in their order.
std::vector<py::object> frames_of(const std::vector<MemoryEvent>& events) {
  std::vector<torch::CapturedTraceback*> stacks;
  for (const MemoryEvent& e : events)
    if (e.stack) stacks.push_back(e.stack.get());
  const std::vector<py::object> symbols = torch::py_symbolize(stacks);
  std::vector<py::object> result;
  result.reserve(events.size());
  size_t next = 0;
  for (const MemoryEvent& e : events)
    result.push_back(e.stack ? symbols[next++] : py::object(py::list()));
  return result;
}

// PyTorch's format. The pool's segments are internal to the plugin, so each allocation appears as a
// segment of its own.
py::dict snapshot() {
  MemoryHistory history;
  {
    const py::gil_scoped_release release;
    history = memory_history();
  }
  const auto& [events, live] = history;
  py::list segments;
  const std::vector<py::object> live_frames = frames_of(live);
  for (size_t i = 0; i < live.size(); ++i) {
    const MemoryEvent& e = live[i];
    py::dict block;
    block["address"] = e.address;
    block["size"] = e.bytes;
    block["requested_size"] = e.bytes;
    block["state"] = "active_allocated";
    block["frames"] = live_frames[i];
    py::dict segment;
    segment["device"] = e.device;
    segment["address"] = e.address;
    for (const char* size : {"total_size", "allocated_size", "active_size", "requested_size"})
      segment[size] = e.bytes;
    segment["stream"] = e.stream;
    segment["segment_type"] = "large";
    segment["segment_pool_id"] = py::make_tuple(0, 0);
    segment["is_expandable"] = false;
    segment["frames"] = py::list();
    py::list blocks;
    blocks.append(block);
    segment["blocks"] = blocks;
    segments.append(segment);
  }
  int devices = 1;
  for (const MemoryEvent& e : events) devices = std::max(devices, e.device + 1);
  std::vector<py::list> traces(static_cast<size_t>(devices));
  const std::vector<py::object> frames = frames_of(events);
  for (size_t i = 0; i < events.size(); ++i) {
    py::list& trace = traces[static_cast<size_t>(events[i].device)];
    if (events[i].allocated) {
      trace.append(to_dict(events[i], "alloc", frames[i]));
    } else {
      trace.append(to_dict(events[i], "free_requested", frames[i]));
      trace.append(to_dict(events[i], "free_completed", frames[i]));
    }
  }
  py::list all;
  for (const py::list& trace : traces) all.append(trace);
  py::dict result;
  result["segments"] = segments;
  result["device_traces"] = all;
  result["allocator_settings"] = py::dict();
  return result;
}

}  // namespace

void bind_memory_history(py::module_& m) {
  m.def("memory_history_start", torch::wrap_pybind_function_no_gil(&start_memory_history));
  m.def("memory_history_stop", torch::wrap_pybind_function_no_gil(&stop_memory_history));
  m.def("memory_snapshot", torch::wrap_pybind_function(&snapshot));
}

}  // namespace torch_ocl
