// Settings and what the plugin tells of itself, for torch.backends.ocl.
#pragma once

#include <string>
#include <vector>

#include "base/setting_scopes.h"

namespace torch_ocl {

// Every setting passes through these scopes; the adapter has its own copy of those of src/base, and
// both copies are set.
ocltensor::SettingScopes& setting_scopes();
std::string get_setting(const std::string& name);
std::vector<std::string> setting_names();
// Lines of fields with tabs between them: see tb_switch_api.report.
std::string switch_report(const std::string& subject);

// The plugin's operators, by name with overload.
std::vector<std::string> plugin_operators();
// ATen's operators that the adapter composes of others, and that have no counterpart in the plugin.
// The pseudo-setting OCLTENSOR_DISABLED_COMPOSITES lists those that are treated as if there were
// none; operators of the plugin have OCLTENSOR_DISABLED_OPERATIONS.
std::vector<std::string> composite_operators();

}  // namespace torch_ocl
