// A bounded list of allocations and frees, and the live allocations.
#include "memory_history.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/profiler/combined_traceback.h>
#include <torch/csrc/profiler/python/combined_traceback.h>

#include <chrono>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace torch_ocl {
namespace {

namespace py = pybind11;
using Stack = std::shared_ptr<torch::CapturedTraceback>;

struct Event {
  bool allocated;  // else freed
  int device;
  tb_address address;
  uint64_t bytes;
  int64_t stream;
  int64_t time_us;  // since 1970
  Stack stack;      // of the allocation
};

// Leaked: memory is freed until the last thread ends.
struct History {
  std::mutex mutex;
  bool stacks = false;
  size_t most = 0;
  std::deque<Event> events;
  std::unordered_map<tb_address, Event> live;
};
History& history() {
  static History& h = *new History;
  return h;
}

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void keep(History& h, Event event) {
  if (h.most == 0) return;
  if (h.events.size() >= h.most) h.events.pop_front();
  h.events.push_back(std::move(event));
}

// Keeps at most `most` events; 0: only live allocations.
void start(bool stacks, size_t most) {
  History& h = history();
  std::deque<Event> old_events;  // their stacks take the GIL: released without the lock
  std::unordered_map<tb_address, Event> old_live;
  const std::lock_guard lock(h.mutex);
  old_events.swap(h.events);
  old_live.swap(h.live);
  h.stacks = stacks;
  h.most = most;
  remembering = true;
}
void stop() { remembering = false; }

py::dict to_dict(const Event& e, const char* action, const py::object& frames) {
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
std::vector<py::object> frames_of(const std::vector<Event>& events) {
  std::vector<torch::CapturedTraceback*> stacks;
  for (const Event& e : events)
    if (e.stack) stacks.push_back(e.stack.get());
  const std::vector<py::object> symbols = torch::py_symbolize(stacks);
  std::vector<py::object> result;
  result.reserve(events.size());
  size_t next = 0;
  for (const Event& e : events)
    result.push_back(e.stack ? symbols[next++] : py::object(py::list()));
  return result;
}

// PyTorch's format. The pool's segments are internal to the plugin, so each allocation appears as a
// segment of its own.
py::dict snapshot() {
  std::vector<Event> events, live;
  {
    const py::gil_scoped_release release;
    History& h = history();
    const std::lock_guard lock(h.mutex);
    events.assign(h.events.begin(), h.events.end());
    for (const auto& [address, event] : h.live) live.push_back(event);
  }
  py::list segments;
  const std::vector<py::object> live_frames = frames_of(live);
  for (size_t i = 0; i < live.size(); ++i) {
    const Event& e = live[i];
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
  for (const Event& e : events) devices = std::max(devices, e.device + 1);
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

void remember_allocation(int device, tb_address address, uint64_t bytes, int64_t stream) noexcept {
  try {
    History& h = history();
    Stack stack;
    if (h.stacks) stack = torch::CapturedTraceback::gather(true, false, false);
    Event event{true, device, address, bytes, stream, now_us(), std::move(stack)};
    const std::lock_guard lock(h.mutex);
    h.live[address] = event;
    keep(h, std::move(event));
  } catch (const std::exception&) {  // out of memory: the event is not recorded
  }
}

void remember_free(tb_address address) noexcept {
  try {
    History& h = history();
    const std::lock_guard lock(h.mutex);
    const auto it = h.live.find(address);
    if (it == h.live.end()) return;
    Event event = std::move(it->second);
    h.live.erase(it);
    event.allocated = false;
    event.time_us = now_us();
    keep(h, std::move(event));
  } catch (const std::exception&) {
  }
}

void bind_memory_history(py::module_& m) {
  m.def("memory_history_start", torch::wrap_pybind_function_no_gil(&start));
  m.def("memory_history_stop", torch::wrap_pybind_function_no_gil(&stop));
  m.def("memory_snapshot", torch::wrap_pybind_function(&snapshot));
}

}  // namespace torch_ocl
