// Loads the plugin, counts its devices, and translates its errors.
#include "plugin.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>

#include "base/log.h"
#include "loader/loader.h"
#include "ranges.h"

namespace torch_ocl {
namespace {

constexpr const char* kComponent = "torch_ocl";

struct Plugin {
  ocltensor::LoadedPlugin loaded;
  std::string reason;  // why there is no plugin
};

std::atomic<const tb_api*> loaded_api{nullptr};

// The plugin lies beside this library.
Plugin load() {
  Plugin plugin;
  try {
    const std::string folder = ocltensor::folder_of(reinterpret_cast<const void*>(&load));
    plugin.loaded = ocltensor::find_plugin("ocl", folder);
    if (!plugin.loaded) {
      plugin.reason = "no plugin could be loaded: " + plugin.loaded.refusal;
    } else if (plugin.loaded.api->profiler->struct_size < sizeof(tb_profiler_api)) {
      plugin.reason = "the plugin " + plugin.loaded.path + " is older than this adapter";
      plugin.loaded.api = nullptr;
    } else {
      loaded_api = plugin.loaded.api;
      follow_profiler(*plugin.loaded.api);  // OCLTENSOR_TRACE_SIGNPOSTS
    }
  } catch (const std::exception& error) {
    plugin.reason = error.what();  // a bad environment variable
  }
  return plugin;
}

// Leaked: tensors are freed until the last thread ends.
const Plugin& plugin() {
  static const Plugin& instance = *new Plugin(load());
  return instance;
}

std::atomic<bool> bad_fork{false};
std::atomic<int> known_count{-1};

void watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { bad_fork = true; });
  (void)registered;
}

// The plugin's number of devices; -1 and a reason if it cannot say.
int ask_count(std::string& reason) {
  const tb_api* table = api_or_null();
  if (table == nullptr) return reason = plugin().reason, -1;
  ocltensor::ErrorBuffer error;
  int32_t count = 0;
  const tb_status status = table->device->count(&count, error.get());
  if (status != TB_OK) return reason = error.text(), -1;
  watch_forks();
  return std::clamp(count, 0, kMaxDevices);
}

}  // namespace

const tb_api* api_or_null() noexcept { return plugin().loaded.api; }

const tb_api* api_if_loaded() noexcept { return loaded_api; }

const tb_api& api() {
  const tb_api* table = api_or_null();
  TORCH_CHECK(table != nullptr, "torch.ocl cannot be used: ", plugin().reason);
  return *table;
}

std::string plugin_path() { return plugin().loaded.path; }

std::string plugin_version() { return plugin().loaded ? plugin().loaded.descriptor->version : ""; }

c10::DeviceIndex device_count() noexcept {
  int count = known_count.load(std::memory_order_relaxed);
  if (count >= 0) [[likely]]
    return static_cast<c10::DeviceIndex>(count);
  std::string reason;
  count = ask_count(reason);
  if (count >= 0) known_count = count;
  return static_cast<c10::DeviceIndex>(std::max(count, 0));
}

std::string unavailable_reason() {
  if (is_in_bad_fork())
    return "the OpenCL driver was in use before fork(), and does not work in the child: start "
           "workers with the multiprocessing method 'spawn'";
  std::string reason;
  const int count = ask_count(reason);
  if (count != 0) return count > 0 ? "" : reason;
  return "no OpenCL device was found: " + device_report();
}

std::string device_report() {
  std::string report(api().device->report(nullptr, 0) + 1, '\0');
  api().device->report(report.data(), report.size());
  report.pop_back();
  return report;
}

void require_device() {
  TORCH_CHECK(device_count() > 0 && !is_in_bad_fork(),
              "torch.ocl cannot be used: ", unavailable_reason());
}

bool is_in_bad_fork() noexcept { return bad_fork.load(std::memory_order_relaxed); }

void raise(tb_status status, const char* what, const char* text) {
  const std::string message = c10::str("ocl: ", what, ": ", text);
  if (status == TB_E_OUT_OF_MEMORY) C10_THROW_ERROR(OutOfMemoryError, text);
  if (status == TB_E_INDEX) C10_THROW_ERROR(IndexError, message);
  if (status == TB_UNSUPPORTED) C10_THROW_ERROR(NotImplementedError, message);
  C10_THROW_ERROR(Error, message);
}

void raise(const ocltensor::Error& error, std::string_view what) {
  std::string_view text(error.what());
  if (text.starts_with(what) && text.substr(what.size()).starts_with(": "))
    text.remove_prefix(what.size() + 2);
  const bool out_of_range = dynamic_cast<const ocltensor::RangeError*>(&error) != nullptr;
  raise(out_of_range ? tb_status{TB_E_INDEX} : error.status(), std::string(what).c_str(),
        std::string(text).c_str());
}

void log_failure(tb_status status, const char* what, const char* text) noexcept {
  // A forked child frees what it inherited: nothing to report.
  if (status == TB_E_STATE && is_in_bad_fork()) return;
  try {
    ocltensor::logging::error(kComponent, "{} failed with status {}: {}", what, status, text);
  } catch (...) {  // out of memory: the line is lost
  }
}

}  // namespace torch_ocl
