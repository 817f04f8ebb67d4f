// Settings and the plugin's reports, for torch.backends.ocl.
#pragma once

#include <string>
#include <vector>

#include "base/setting_scopes.h"

namespace torch_ocl {

// All settings pass through these scopes, because adapter and plugin have a copy of src/base each,
// and both copies must be set.
ocltensor::SettingScopes& setting_scopes();
std::string get_setting(const std::string& name);
std::vector<std::string> setting_names();
// A switch that runs something instead of having a value; it may take long, and others may be run
// meanwhile.
void run_action(const std::string& name, const std::string& value);
// Lines of fields separated by tabs: see tb_switch_api.report.
std::string switch_report(const std::string& subject);

// The plugin's operators, by name with overload.
std::vector<std::string> plugin_operators();
// ATen's operators that the adapter composes of others, without a counterpart in the plugin. The
// pseudo-setting OCLTENSOR_DISABLED_COMPOSITES lists those that are treated as if they were
// missing; for operators of the plugin there is OCLTENSOR_DISABLED_OPERATIONS.
std::vector<std::string> composite_operators();

}  // namespace torch_ocl
