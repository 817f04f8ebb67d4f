// Settings and reports of plugin and adapter, for torch.backends.ocl and C++ programs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "torch_ocl/torch_ocl.h"

namespace torch_ocl {

TORCH_OCL_API std::vector<std::string> setting_names();
// Values for a scope's duration, and lists: see base/setting_scopes.h.
TORCH_OCL_API uint64_t
enter_settings(const std::vector<std::pair<std::string, std::string>>& values);
TORCH_OCL_API void leave_settings(uint64_t scope);
TORCH_OCL_API void add_to_setting(const std::string& name, const std::vector<std::string>& entries);
TORCH_OCL_API void remove_from_setting(const std::string& name,
                                       const std::vector<std::string>& entries);
// A switch that runs something instead of having a value; it may take long, and others may be run
// meanwhile.
TORCH_OCL_API void run_action(const std::string& name, const std::string& value);
// Rows as JSON: see tb_switch_api.report. The adapter's own ways to compute attention follow.
TORCH_OCL_API std::string report(const std::string& subject);

// The plugin's operators, by name with overload.
TORCH_OCL_API std::vector<std::string> plugin_operators();
// ATen's operators that the adapter composes of others, without a counterpart in the plugin. The
// pseudo-setting OCLTENSOR_DISABLED_COMPOSITES lists those that are treated as if they were
// missing; for operators of the plugin there is OCLTENSOR_DISABLED_OPERATIONS.
TORCH_OCL_API std::vector<std::string> composite_operators();
// Operators of the table with a rule for their results' strides, and its name (base/layouts.h).
TORCH_OCL_API std::vector<std::pair<std::string, std::string>> result_layouts();

}  // namespace torch_ocl
