// Settings of the host and of every loaded backend under one name space.
#include "ocltensor/settings.h"

#include "backend.h"
#include "base/config.h"

namespace ocltensor {
namespace {

bool host_knows(std::string_view name) {
  for (const config::KnobState& s : config::list())
    if (name == s.name) return true;
  return false;
}

}  // namespace

void set_setting(std::string_view name, std::string_view value) {
  const bool known = host_knows(name);
  if (known) config::set(name, value);
  bool accepted = known;
  std::string refusal;
  const std::string n(name), v(value);
  for (int i = 0; i < backend_count(); ++i) {
    ErrorBuffer error;
    const tb_status status =
        backend(static_cast<uint8_t>(i)).api->switches->set(n.c_str(), v.c_str(), error.get());
    accepted |= status == TB_OK;
    if (status != TB_OK) refusal = error.text();
  }
  check(accepted, "setting '{}' to '{}' failed: {}", name, value,
        refusal.empty() ? "no backend has a switch of this name" : refusal);
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
