// The registry of backends, and loading one on first use.
#include "backend.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

#include "base/config.h"
#include "base/log.h"
#include "host/cpu/backend.h"
#include "loader/loader.h"

namespace ocltensor {
namespace {

const tb_op kMissingOp = reinterpret_cast<tb_op>(~uintptr_t{0});  // NOLINT: never dereferenced

struct Registry {
  std::mutex mutex;  // serialises registration and loading
  std::atomic<Backend*> backends[kMaxBackends] = {};
  std::atomic<int> count{0};
  // By device type: the settings' generation at the last search that found nothing, and the reason.
  std::map<std::string, std::pair<uint64_t, std::string>> searched;
};

Backend& add(Registry& r, std::string_view type, const tb_api* api, const std::string& path) {
  const int id = r.count.load(std::memory_order_relaxed);
  check(id < kMaxBackends, "at most {} backends can be registered", kMaxBackends);
  const std::string defect = api == nullptr ? "it has no table" : defect_of(*api);
  check(defect.empty(), "backend '{}' cannot be registered: {}", type, defect);
  auto* b = new Backend;
  b->id = static_cast<uint8_t>(id);
  b->type = type;
  b->path = path;
  b->api = api;
  b->ops = std::make_unique<std::atomic<tb_op>[]>(operators().size());
  r.backends[id].store(b, std::memory_order_release);
  r.count.store(id + 1, std::memory_order_release);
  return *b;
}

Registry& registry() {
  static Registry& r = *[] {
    config::warn_of_misspelt_variables();
    auto* made = new Registry;
    add(*made, "cpu", cpu_api(), {});
    return made;
  }();
  return r;
}

// Passes on the settings that were made through the API before the plugin was loaded.
void forward_settings(const Backend& b) {
  for (const config::KnobState& s : config::list()) {
    if (s.source != config::Source::Api) continue;
    ErrorBuffer error;
    if (set_switch(b, s.name, s.value.c_str(), error) < 0)
      logging::warning("backend", "{} does not accept {}={}: {}", b.type, s.name, s.value,
                       error.text());
  }
}

// Of several plugins of a device type, the first is used.
void add_loaded(Registry& r, const LoadedPlugin& plugin) {
  const std::string_view type = plugin.descriptor->device_type;
  if (find_backend(type) == nullptr)
    forward_settings(add(r, type, plugin.api, plugin.path));
  else
    logging::info("backend", "'{}' is not used: another plugin serves '{}'", plugin.path, type);
}

// Registers the plugins that OCLTENSOR_PLUGIN_PATH names, and the one that comes with the library
// if `type` is still missing. Returns what went wrong.
std::string load_plugins(Registry& r, std::string_view type) {
  try {
    for (const LoadedPlugin& plugin : load_plugin_path()) add_loaded(r, plugin);
    if (find_backend(type) != nullptr) return {};
    const LoadedPlugin own =
        load_own_plugin(folder_of(reinterpret_cast<const void*>(&backend_count)));
    if (own) add_loaded(r, own);
    return own.refusal;
  } catch (const Error& e) {
    return e.what();
  }
}

Backend* search(std::string_view type, std::string* reason) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  if (Backend* b = find_backend(type)) return b;  // another thread was first
  const uint64_t now = config::generation();
  auto& [generation, result] = r.searched[std::string(type)];
  if (generation != now) {
    result = load_plugins(r, type);
    generation = now;
  }
  if (Backend* b = find_backend(type)) return b;
  std::string others;
  for (int i = 1; i < backend_count(); ++i) {
    const Backend& b = backend(static_cast<uint8_t>(i));
    others += fmt::format("{}'{}' is '{}'", i == 1 ? "; loaded are: " : ", ", b.path, b.type);
  }
  const char* variable = config::name(config::Knob::PluginPath);
  const bool bad_path = result.starts_with(variable);  // then nothing of it was loaded
  *reason = fmt::format("no plugin for device type '{}' was found{}{}{}; {}", type,
                        result.empty() ? "" : ": ", result, others,
                        bad_path ? "take that entry out of the variable"
                                 : fmt::format("set {} to its file", variable));
  return nullptr;
}

}  // namespace

int Backend::device_count() const {
  int32_t count = 0;
  invoke_api("counting devices", api->device->count, &count);
  return count;
}

tb_op Backend::find(const Operator& op) {
  std::atomic<tb_op>& slot = ops[static_cast<size_t>(&op - operators().data())];
  tb_op found = slot.load(std::memory_order_acquire);
  if (found == nullptr) [[unlikely]] {
    ErrorBuffer error;
    const tb_status status = api->operators->find(op.name.c_str(), &found, error.get());
    if (status == TB_UNSUPPORTED || (status == TB_OK && found == nullptr))
      found = kMissingOp;
    else
      error.raise_if_failed(status);
    slot.store(found, std::memory_order_release);
  }
  return found == kMissingOp ? nullptr : found;
}

bool has_switch(const Backend& b, const char* name) {
  uint32_t count = 0;
  if (b.api->switches->count(&count, nullptr) != TB_OK) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const char* known = nullptr;
    if (b.api->switches->at(i, &known, nullptr) == TB_OK && known != nullptr &&
        std::strcmp(known, name) == 0)
      return true;
  }
  return false;
}

tb_status set_switch(const Backend& b, const char* name, const char* value, ErrorBuffer& error) {
  const tb_status status = b.api->switches->set(name, value, error.get());
  return status < 0 && !has_switch(b, name) ? TB_UNSUPPORTED : status;
}

Backend& backend(uint8_t id) {
  Registry& r = registry();
  check(id < r.count.load(std::memory_order_acquire), "there is no backend {}", id);
  return *r.backends[id].load(std::memory_order_acquire);
}

int backend_count() { return registry().count.load(std::memory_order_acquire); }

Backend* find_backend(std::string_view type) {
  Registry& r = registry();
  for (int i = 0; i < r.count.load(std::memory_order_acquire); ++i)
    if (Backend* b = r.backends[i].load(std::memory_order_acquire); b->type == type) return b;
  return nullptr;
}

Backend& register_backend(std::string_view type, const tb_api* api, const std::string& path) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  check(find_backend(type) == nullptr, "a backend for device type '{}' is registered already",
        type);
  Backend& b = add(r, type, api, path);
  forward_settings(b);
  return b;
}

Backend* find_or_load_backend(std::string_view type, std::string* reason) {
  if (Backend* b = find_backend(type)) return b;
  return search(type, reason);
}

}  // namespace ocltensor

extern "C" const tb_api* ocltensor_cpu_api(void) { return ocltensor::cpu_api(); }
