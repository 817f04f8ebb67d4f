// The Python extension: what the package torch_ocl needs beyond PyTorch's own bindings.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/python_headers.h>
#include <torch/csrc/utils/pybind.h>

#include "api/switches.h"
#include "distributed.h"
#include "graphs.h"
#include "kernels.h"
#include "memory_history.h"
#include "operators/attention.h"
#include "plan.h"
#include "profiler.h"
#include "runtime/allocator.h"
#include "runtime/generator.h"
#include "runtime/process_end.h"
#include "runtime/stream.h"
#include "shared_memory.h"

namespace torch_ocl {
namespace {

namespace py = pybind11;

// Functions that build Python objects hold the GIL; those that may wait for a device release it:
// see the two kinds of registration at the end.

py::dict device_properties(int index) {
  tb_device_properties p{};
  p.struct_size = sizeof p;
  {
    const py::gil_scoped_release release;  // may load the driver
    call_api("device properties", api().device->properties,
             checked_index(static_cast<c10::DeviceIndex>(index)), &p);
  }
  const char* const kinds[] = {"", "cpu", "gpu", "accelerator"};
  py::dict d;
  d["name"] = p.name;
  d["vendor"] = p.vendor;
  d["platform"] = p.platform;
  d["driver_version"] = p.driver_version;
  d["language_version"] = p.language_version;
  d["kind"] = kinds[p.kind < 4 ? p.kind : 0];
  d["total_memory"] = p.global_memory;
  d["largest_allocation"] = p.largest_allocation;
  d["local_memory"] = p.local_memory;
  d["recommended_memory"] = p.recommended_memory;
  d["compute_units"] = p.compute_units;
  d["max_work_group_size"] = p.max_work_group_size;
  d["clock_mhz"] = p.clock_mhz;
  d["has_fp64"] = (p.features & TB_FEATURE_FP64) != 0;
  d["has_fp16_arithmetic"] = (p.features & TB_FEATURE_FP16_ARITHMETIC) != 0;
  d["has_unified_memory"] = (p.features & TB_FEATURE_UNIFIED_MEMORY) != 0;
  d["has_subgroups"] = (p.features & TB_FEATURE_SUBGROUPS) != 0;
  d["has_int64_atomics"] = (p.features & TB_FEATURE_INT64_ATOMICS) != 0;
  d["has_float_atomics"] = (p.features & TB_FEATURE_FLOAT_ATOMICS) != 0;
  return d;
}

py::dict memory_statistics(int index) {
  const tb_memory_stats s = memory_stats(static_cast<c10::DeviceIndex>(index));
  py::dict d;
  const auto add = [&](const char* name, const tb_memory_stat& stat) {
    const std::string prefix = std::string(name) + ".";
    d[py::str(prefix + "current")] = stat.current;
    d[py::str(prefix + "peak")] = stat.peak;
    d[py::str(prefix + "allocated")] = stat.allocated;
    d[py::str(prefix + "freed")] = stat.freed;
  };
  add("requested_bytes", s.requested_bytes);
  add("allocated_bytes", s.allocated_bytes);
  add("active_bytes", s.active_bytes);
  add("reserved_bytes", s.reserved_bytes);
  add("allocation", s.allocations);
  add("segment", s.segments);
  add("pinned_bytes", s.pinned_bytes);
  d["num_alloc_retries"] = s.allocation_retries;
  d["num_ooms"] = s.out_of_memory_errors;
  d["driver_bytes"] = s.driver_bytes;
  d["recommended_bytes"] = s.recommended_bytes;
  d["limit_bytes"] = s.limit_bytes;
  d["low_limit_bytes"] = s.low_limit_bytes;
  return d;
}

py::dict counters() {
  tb_counters c{};
  c.struct_size = sizeof c;
  call_api("counters", api().profiler->counters, &c);
  py::dict d;
  d["operators"] = c.operators;
  d["launches"] = c.launches;
  d["copies"] = c.copies;
  d["copied_bytes"] = c.copied_bytes;
  d["program_builds"] = c.program_builds;
  d["program_loads"] = c.program_loads;
  return d;
}

void capture_start(const std::string& path) {
  call_api("profiler.opencl_capture", api().capture->start, path.c_str());
}
void capture_stop() { call_api("profiler.opencl_capture", api().capture->stop); }
bool capture_is_enabled() {
  int32_t enabled = 0;
  call_api("profiler.is_opencl_capture_enabled", api().capture->is_enabled, &enabled);
  return enabled != 0;
}
bool is_capturing() {
  int32_t capturing = 0;
  call_api("profiler.is_capturing_opencl", api().capture->is_capturing, &capturing);
  return capturing != 0;
}

py::dict fallbacks() {
  py::dict d;
  for (const auto& [name, count] : fallback_counts()) d[py::str(name)] = count;
  return d;
}

// ---- Thin wrappers with Python's integers

c10::DeviceIndex index_of(int64_t index) {
  TORCH_CHECK(index >= -1 && index < kMaxDevices, "there is no device ocl:", index);
  return checked_index(static_cast<c10::DeviceIndex>(index));
}
void synchronize_device(int64_t index) { synchronize(index_of(index)); }
void reset_peak(int64_t index) {
  call_api("reset statistics", api().memory->reset_peak_stats, index_of(index));
}
void reset_accumulated(int64_t index) {
  call_api("reset statistics", api().memory->reset_accumulated_stats, index_of(index));
}
void set_fraction(int64_t index, double fraction) {
  call_api("memory fraction", api().memory->set_fraction, index_of(index), fraction);
}
void set_watermarks(int64_t index, double high, double low) {
  call_api("watermarks", api().memory->set_watermarks, index_of(index), high, low);
}
int64_t current_stream_id(int64_t index) { return current_stream(index_of(index)).id(); }
void set_stream(int64_t index, int64_t id) {
  exchange_stream(c10::Stream(c10::Stream::UNSAFE, c10::Device(kOcl, index_of(index)), id));
}
tb_stream rehearsal(int64_t index) { return handle_of(rehearsal_stream(index_of(index))); }
int64_t begin_rehearsal(int64_t index) {
  TORCH_CHECK(api().stream->struct_size > offsetof(tb_stream_api, build_missing), "the plugin ",
              plugin_path(), " is too old for warming up: install the one of this adapter");
  call_api("begin a rehearsal", api().stream->begin_rehearsal, rehearsal(index));
  return rehearsal_stream(index_of(index)).id();
}
uint32_t end_rehearsal(int64_t index) {
  uint32_t missing = 0;
  call_api("end a rehearsal", api().stream->end_rehearsal, rehearsal(index), &missing);
  return missing;
}
uint32_t build_missing(int64_t index) {
  uint32_t left = 0;
  call_api("build programs", api().stream->build_missing, rehearsal(index), &left);
  return left;
}
// Both events were created and recorded by PyTorch through the guard in runtime/guard.cpp.
double elapsed_ms(uintptr_t start, uintptr_t end) {
  double milliseconds = 0;
  call_api("elapsed time", api().event->elapsed_ms, reinterpret_cast<tb_event>(start),
           reinterpret_cast<tb_event>(end), &milliseconds);
  return milliseconds;
}
int64_t exchange_device_index(int64_t index) {
  return exchange_device(static_cast<c10::DeviceIndex>(index));
}
void set_device(int64_t index) { set_current_device(index_of(index)); }
at::Generator generator_of(int64_t index) { return default_generator(index_of(index)); }
bool any_initialized() {
  for (c10::DeviceIndex i = 0; i < kMaxDevices; ++i)
    if (is_initialized(i)) return true;
  return false;
}

}  // namespace
}  // namespace torch_ocl

PYBIND11_MODULE(TORCH_OCL_MODULE, m) {
  using namespace torch_ocl;
  const auto waits = [&m](const char* name, auto* function) {
    m.def(name, torch::wrap_pybind_function_no_gil(function));
  };
  const auto answers = [&m](const char* name, auto* function) {
    m.def(name, torch::wrap_pybind_function(function));
  };
  m.doc() = "Bindings of the ocl device; see torch.ocl for the public names.";
  m.attr("torch_version") = TORCH_OCL_TORCH_VERSION;
  m.attr("max_devices") = kMaxDevices;
  waits(
      "device_count", +[] { return static_cast<int>(device_count()); });
  waits(
      "unavailable_reason", +[] { return unavailable_reason(); });
  waits(
      "device_report", +[] { return device_report(); });
  waits(
      "require_device", +[] { require_device(); });
  waits(
      "plugin_path", +[] { return plugin_path(); });
  waits(
      "plugin_version", +[] { return plugin_version(); });
  waits("synchronize", &synchronize_device);
  waits(
      "empty_cache", +[] { empty_cache(); });
  waits(
      "empty_host_cache", +[] { empty_host_cache(); });
  waits("reset_peak_stats", &reset_peak);
  waits("reset_accumulated_stats", &reset_accumulated);
  waits("set_fraction", &set_fraction);
  waits("set_watermarks", &set_watermarks);
  waits("elapsed_ms", &elapsed_ms);
  waits("set_stream", &set_stream);
  waits("begin_rehearsal", &begin_rehearsal);
  waits("end_rehearsal", &end_rehearsal);
  waits("build_missing", &build_missing);
  waits("await_backward_threads", &await_backward_threads);
  waits("await_devices", &await_devices);
  waits("set_device", &set_device);
  waits("prefer_cpu", &prefer_cpu);
  waits(
      "seed_all", +[](uint64_t seed) { manual_seed(seed); });
  waits("set_setting", &set_setting);
  waits("get_setting", &get_setting);
  waits("settings", &setting_names);
  waits("run_action", &run_action);
  waits("enter_settings", &enter_settings);
  waits("leave_settings", &leave_settings);
  waits("add_to_setting", &add_to_setting);
  waits("remove_from_setting", &remove_from_setting);
  waits("report", &report);
  waits("plugin_operators", &plugin_operators);
  waits("composite_operators", &composite_operators);
  answers("layouts", &result_layouts);
  waits("attention_refusal", &attention_refusal);
  answers(
      "is_in_bad_fork", +[] { return is_in_bad_fork(); });
  answers("is_initialized", &any_initialized);
  answers(
      "current_device", +[] { return static_cast<int>(current_device()); });
  answers("exchange_device", &exchange_device_index);
  answers("current_stream_id", &current_stream_id);
  answers("default_generator", &generator_of);
  answers("device_properties", &device_properties);
  answers("memory_stats", &memory_statistics);
  answers("counters", &counters);
  waits("capture_start", &capture_start);
  waits("capture_stop", &capture_stop);
  answers("capture_is_enabled", &capture_is_enabled);
  answers("is_capturing", &is_capturing);
  answers("fallback_counts", &fallbacks);
  bind_distributed(m);
  bind_shared_memory(m);
  bind_graphs(m);
  bind_kernels(m);
  bind_plans(m);
  bind_profiler(m);
  bind_memory_history(m);
}
