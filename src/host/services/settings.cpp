// Settings of the host and of every loaded backend under one name space.
#include "ocltensor/settings.h"

#include "base/config.h"
#include "host/core/backend.h"
#include "setting_scopes.h"

namespace ocltensor {
namespace {

bool host_knows(std::string_view name) {
  for (const config::KnobState& s : config::list())
    if (name == s.name) return true;
  return false;
}

// Writes to the host's table and to every backend that has such a switch. If one refuses the value,
// those before it get the old value back.
void write(const std::string& name, const std::string& value) {
  const bool known = host_knows(name);
  const std::string before = known ? get_setting(name) : "";
  if (known) config::set(name, value);
  bool accepted = known;
  std::string refusal;
  for (int i = 0; i < backend_count(); ++i) {
    ErrorBuffer error;
    const tb_status status =
        set_switch(backend(static_cast<uint8_t>(i)), name.c_str(), value.c_str(), error);
    accepted |= status == TB_OK;
    if (status == TB_OK) continue;
    refusal = error.text();
    if (status == TB_UNSUPPORTED) continue;
    if (known) {
      config::set(name, before);
      for (int k = 0; k < i; ++k)
        (void)set_switch(backend(static_cast<uint8_t>(k)), name.c_str(), before.c_str(), error);
    }
    fail(TB_E_INVALID, "setting '{}' to '{}' failed: {}", name, value, refusal);
  }
  check(accepted, "setting '{}' to '{}' failed: {}{}", name, value,
        refusal.empty() ? "no backend has a switch of this name" : refusal,
        config::near_settings(name));
}

}  // namespace

SettingScopes& setting_scopes() {
  static SettingScopes& scopes =  // leaked: threads may run while the process ends
      *new SettingScopes([](const std::string& name) { return get_setting(name); }, write);
  return scopes;
}

void set_setting(std::string_view name, std::string_view value) {
  setting_scopes().assign(std::string(name), std::string(value));
}

std::string get_setting(std::string_view name) {
  for (const config::KnobState& s : config::list())
    if (name == s.name) return s.value;
  const std::string n(name);
  for (int i = 0; i < backend_count(); ++i) {
    char text[1024] = "";
    ErrorBuffer error;
    if (backend(static_cast<uint8_t>(i))
            .api->switches->get(n.c_str(), text, sizeof text, error.get()) == TB_OK)
      return text;
  }
  fail(TB_E_INVALID, "there is no setting named '{}'{}", name, config::near_settings(name));
}

std::vector<Setting> settings() {
  std::vector<Setting> result;
  for (const config::KnobState& s : config::list())
    result.push_back(
        {s.name, s.value, s.default_value, s.accepted, s.meaning, config::to_string(s.source)});
  return result;
}

void validate_settings() { config::validate(); }

}  // namespace ocltensor
