// The profiler and the captures of a backend.
#include "ocltensor/profiler.h"

#include "base/config.h"
#include "host/core/backend.h"

namespace ocltensor::profiler {
namespace {

const tb_profiler_api& api(Device device) { return *backend(device).api->profiler; }

// The table, which must have the functions that were added after its first version.
const tb_profiler_api& api_with_statistics(Device device) {
  const tb_profiler_api& table = api(device);
  if (table.struct_size < sizeof table)
    unsupported(TB_REASON_OPERATOR, "the plugin of {} is older than this host: no statistics",
                device.text());
  return table;
}

double ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

void start(std::string_view mode, bool wait_until_completed, const std::string& path,
           Device device) {
  invoke_api("profiler start", api(device).start, std::string(mode).c_str(),
             static_cast<int32_t>(wait_until_completed), path.empty() ? nullptr : path.c_str());
}

void stop(Device device) {
  invoke_api("profiler stop", api(device).stop);
  // This also ends a trace that OCLTENSOR_TRACE_SIGNPOSTS started; the host has its own copy of the
  // setting.
  if (config::get_int(config::Knob::TraceSignposts) != 0)
    config::set(config::Knob::TraceSignposts, "0");
}

bool is_enabled(Device device) {
  int32_t enabled = 0;
  invoke_api("profiler is_enabled", api(device).is_enabled, &enabled);
  return enabled != 0;
}

std::vector<Statistic> statistics(Device device) {
  std::vector<Statistic> rows;
  const auto add = [](void* context, const tb_statistic* row) {
    static_cast<std::vector<Statistic>*>(context)->push_back(
        {static_cast<StatisticKind>(row->kind), row->name, row->count, ms(row->total_ns),
         ms(row->longest_ns), ms(row->host_ns), row->bytes});
  };
  invoke_api("profiler statistics", api_with_statistics(device).statistics,
             static_cast<void (*)(void*, const tb_statistic*)>(add), static_cast<void*>(&rows));
  return rows;
}

void reset_statistics(Device device) {
  invoke_api("profiler statistics", api_with_statistics(device).reset_statistics);
}

void print_statistics(Device device) {
  invoke_api("profiler statistics", api_with_statistics(device).print_statistics);
}

Range::Range(const std::string& name, Device device) : device_(device) {
  invoke_api("profiler range", api(device).push_range, name.c_str());
}

Range::~Range() { (void)api(device_).pop_range(nullptr); }

bool is_capture_enabled(Device device) {
  int32_t enabled = 0;
  invoke_api("capture is_enabled", backend(device).api->capture->is_enabled, &enabled);
  return enabled != 0;
}

bool is_capturing(Device device) {
  int32_t capturing = 0;
  invoke_api("capture is_capturing", backend(device).api->capture->is_capturing, &capturing);
  return capturing != 0;
}

Capture::Capture(const std::string& path, Device device) : device_(device) {
  invoke_api("capture start", backend(device).api->capture->start, path.c_str());
}

Capture::~Capture() {
  if (on_) (void)backend(device_).api->capture->stop(nullptr);
}

void Capture::stop() {
  on_ = false;
  invoke_api("capture stop", backend(device_).api->capture->stop);
}

}  // namespace ocltensor::profiler
