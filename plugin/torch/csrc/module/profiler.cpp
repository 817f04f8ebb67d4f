// Traces, ranges and statistics for Python.
#include "profiler.h"

#include <torch/csrc/Exceptions.h>

#include "runtime/plugin.h"
#include "runtime/ranges.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

void start(const std::string& mode, bool wait, const std::string& path) {
  call_api("profiler.start", api().profiler->start, mode.c_str(), static_cast<int32_t>(wait),
           path.empty() ? nullptr : path.c_str());
  follow_profiler(api());
}
void stop() {
  // If a stream has failed, the error is raised after the trace has ended.
  struct Follow {
    ~Follow() { follow_profiler(api()); }
  } follow;
  call_api("profiler.stop", api().profiler->stop);
}
bool is_enabled() {
  int32_t enabled = 0;
  call_api("profiler.is_enabled", api().profiler->is_enabled, &enabled);
  return enabled != 0;
}
void push_range(const std::string& name) {
  call_api("profiler.range_push", api().profiler->push_range, name.c_str());
}
void pop_range() { call_api("profiler.range_pop", api().profiler->pop_range); }
void print_statistics() { call_api("profiler.print_statistics", api().profiler->print_statistics); }
void reset_statistics() { call_api("profiler.reset_statistics", api().profiler->reset_statistics); }
// Runs at the end of the process. It does not load the plugin if nothing used it, and a forked
// child does not write its parent's trace.
void finish() {
  if (is_in_bad_fork()) return;
  if (const tb_api* loaded = api_if_loaded()) call_api("profiler", loaded->profiler->finish);
}

struct Row {
  uint32_t kind;
  std::string name;
  tb_statistic values;
};
std::vector<Row> statistic_rows() {
  std::vector<Row> rows;
  call_api(
      "profiler.statistics", api().profiler->statistics,
      [](void* context, const tb_statistic* row) {
        static_cast<std::vector<Row>*>(context)->push_back({row->kind, row->name, *row});
      },
      &rows);
  return rows;
}

py::dict statistics() {
  constexpr const char* kKinds[] = {"",          "operators", "kernels", "copies",
                                    "fallbacks", "builds",    "loads",   "hits"};
  std::vector<Row> rows;
  {
    const py::gil_scoped_release release;  // waits for the streams
    rows = statistic_rows();
  }
  py::dict result;
  for (size_t kind = 1; kind < std::size(kKinds); ++kind) {
    py::list list;
    for (const Row& row : rows) {
      if (row.kind != kind) continue;
      const tb_statistic& v = row.values;
      py::dict d;
      const auto ms = [](uint64_t ns) { return static_cast<double>(ns) / 1e6; };
      d["name"] = row.name;
      d["count"] = v.count;
      d["total_ms"] = ms(v.total_ns);
      d["mean_ms"] = v.count == 0 ? 0.0 : ms(v.total_ns) / static_cast<double>(v.count);
      d["max_ms"] = ms(v.longest_ns);
      d["host_ms"] = ms(v.host_ns);
      d["bytes"] = v.bytes;
      list.append(d);
    }
    result[kKinds[kind]] = list;
  }
  return result;
}

}  // namespace

void bind_profiler(py::module_& m) {
  const auto waits = [&m](const char* name, auto* function) {
    m.def(name, torch::wrap_pybind_function_no_gil(function));
  };
  const auto answers = [&m](const char* name, auto* function) {
    m.def(name, torch::wrap_pybind_function(function));
  };
  waits("profiler_start", &start);
  waits("profiler_stop", &stop);
  waits("profiler_print_statistics", &print_statistics);
  waits("profiler_finish", &finish);
  answers("profiler_is_enabled", &is_enabled);
  answers("profiler_push_range", &push_range);
  answers("profiler_pop_range", &pop_range);
  answers("profiler_reset_statistics", &reset_statistics);
  answers("profiler_statistics", &statistics);
}

}  // namespace torch_ocl
