// Settings of the host and of every loaded backend under one name space.
#include "ocltensor/settings.h"

#include "backend.h"
#include "base/config.h"
#include "setting_scopes.h"

namespace ocltensor {
namespace {

bool host_knows(std::string_view name) {
  for (const config::KnobState& s : config::list())
    if (name == s.name) return true;
  return false;
}

// To the host's table and every backend. What a backend calls invalid is taken back.
void write(const std::string& name, const std::string& value) {
  const bool known = host_knows(name);
  const std::string before = known ? get_setting(name) : "";
  if (known) config::set(name, value);
  bool accepted = known;
  bool invalid = false;
  std::string refusal;
  for (int i = 0; i < backend_count(); ++i) {
    ErrorBuffer error;
    const tb_status status = backend(static_cast<uint8_t>(i))
                                 .api->switches->set(name.c_str(), value.c_str(), error.get());
    accepted |= status == TB_OK;
    invalid |= known && status == TB_E_INVALID;
    if (status != TB_OK) refusal = error.text();
  }
  if (invalid) config::set(name, before);
  check(accepted && !invalid, "setting '{}' to '{}' failed: {}", name, value,
        refusal.empty() ? "no backend has a switch of this name" : refusal);
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
  fail(TB_E_INVALID, "there is no setting named '{}'", name);
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
