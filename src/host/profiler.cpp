// The profiler and the captures of a backend.
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
