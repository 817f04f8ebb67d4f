// The profiler of a backend.
#include "ocltensor/profiler.h"

#include "backend.h"

namespace ocltensor::profiler {
namespace {

const tb_profiler_api& api(Device device) { return *backend(device).api->profiler; }

}  // namespace

void start(std::string_view mode, bool wait_until_completed, const std::string& path,
           Device device) {
  invoke_api("profiler start", api(device).start, std::string(mode).c_str(),
             static_cast<int32_t>(wait_until_completed), path.empty() ? nullptr : path.c_str());
}

void stop(Device device) { invoke_api("profiler stop", api(device).stop); }

bool is_enabled(Device device) {
  int32_t enabled = 0;
  invoke_api("profiler is_enabled", api(device).is_enabled, &enabled);
  return enabled != 0;
}

Range::Range(const std::string& name, Device device) : device_(device) {
  invoke_api("profiler range", api(device).push_range, name.c_str());
}

Range::~Range() { (void)api(device_).pop_range(nullptr); }

}  // namespace ocltensor::profiler
