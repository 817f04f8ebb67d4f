// Settings in the plugin's and the adapter's copy of src/base, and operators that run as if they
// were missing.
#include "switches.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/config.h"
#include "base/layouts.h"
#include "base/name_patterns.h"
#include "base/setting_scopes.h"
#include "operators/attention.h"
#include "operators/operator.h"
#include "runtime/plugin.h"
#include "runtime/ranges.h"

namespace torch_ocl {
namespace {

using ocltensor::split_names;
namespace config = ocltensor::config;

const std::string kComposites = "OCLTENSOR_DISABLED_COMPOSITES";

bool adapter_knows(const std::string& name) {
  for (const config::KnobState& knob : config::list())
    if (name == knob.name) return true;
  return false;
}

// ---- Composites

void run_disabled(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  fall_back(op, *stack, "it is disabled (torch.backends.ocl.disable_operations)");
}

// Silences the dispatcher's warning about registering over an existing kernel, which is intended
// here.
struct Silence : c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

struct Composites {
  std::mutex mutex;
  std::map<std::string, c10::RegistrationHandleRAII> disabled;
};
Composites& composites() {
  static Composites& c = *new Composites;  // leaked: the dispatcher may be gone before
  return c;
}

c10::OperatorName operator_name(const std::string& name) {
  const size_t dot = name.find('.');
  return {"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)};
}

void disable_composites(const std::vector<std::string>& names) {
  Silence silence;
  const c10::WarningUtils::WarningHandlerGuard quiet(&silence);
  const std::lock_guard lock(composites().mutex);
  auto& disabled = composites().disabled;
  std::erase_if(disabled, [&](const auto& entry) {
    return std::find(names.begin(), names.end(), entry.first) == names.end();
  });
  for (const std::string& name : names)
    if (!disabled.contains(name))
      disabled.emplace(name, c10::Dispatcher::singleton().registerImpl(
                                 operator_name(name), c10::DispatchKey::PrivateUse1,
                                 c10::KernelFunction::makeFromBoxedFunction<&run_disabled>(),
                                 std::nullopt, nullptr, "disabled by torch.backends.ocl"));
}

std::string disabled_composites() {
  const std::lock_guard lock(composites().mutex);
  std::string text;
  for (const auto& entry : composites().disabled) text += (text.empty() ? "" : ",") + entry.first;
  return text;
}

// "aten::add_" with overload "Tensor" is "add" for the plugin.
std::string base_name(const std::string& name) {
  std::string base = name.substr(0, name.find('.'));
  if (base.size() > 1 && base.back() == '_' && base[base.size() - 2] != '_') base.pop_back();
  return base;
}

// Tensors are created, copied, viewed and stored by these, so they cannot be disabled.
constexpr std::string_view kNeeded[] = {"empty",
                                        "empty_strided",
                                        "copy_",
                                        "_copy_from",
                                        "_copy_from_and_resize",
                                        "_to_cpu",
                                        "resize_",
                                        "set_",
                                        "_local_scalar_dense",
                                        "record_stream",
                                        "is_pinned",
                                        "_pin_memory",
                                        "_fused_sdp_choice",
                                        "_has_compatible_shallow_copy_type",
                                        "_efficientzerotensor",
                                        "zero_",
                                        "fill_",
                                        "_resize_output_",
                                        "equal"};

bool is_needed(const c10::OperatorHandle& op, const std::string& name) {
  const std::string plain = name.substr(0, name.find('.'));
  if (std::find(std::begin(kNeeded), std::end(kNeeded), plain) != std::end(kNeeded)) return true;
  // It is differentiated through the operators that it calls: a decline below autograd would lose
  // the gradient.
  if (op.hasKernelForDispatchKey(c10::DispatchKey::AutogradPrivateUse1)) return true;
  for (const c10::Argument& argument : op.schema().arguments())  // views
    if (argument.alias_info() != nullptr && !argument.alias_info()->isWrite()) return true;
  return false;
}

// ---- Reading and writing

// An unknown name is the caller's mistake, not a missing feature.
void raise_if_failed(tb_status status, const char* what, const ocltensor::ErrorBuffer& error) {
  if (status != TB_OK) raise(status == TB_UNSUPPORTED ? TB_E_INVALID : status, what, error.text());
}

void write_setting(const std::string& name, const std::string& value) {
  if (name == kComposites) return disable_composites(split_names(value));
  ocltensor::ErrorBuffer error;
  raise_if_failed(api().switches->set(name.c_str(), value.c_str(), error.get()), "set", error);
  if (adapter_knows(name)) config::set(name, value);
  follow_profiler(api());
}

std::string plugin_report(const std::string& subject) {
  const tb_switch_api& switches = *api().switches;
  TORCH_CHECK(switches.struct_size > offsetof(tb_switch_api, report),
              "ocl: the plugin is too old to report its ", subject);
  uint64_t needed = 0;
  call_api("report", switches.report, subject.c_str(), static_cast<char*>(nullptr), uint64_t{0},
           &needed);
  std::string text;
  while (text.size() < needed) {  // again where it has grown meanwhile
    text.resize(needed + 64);
    call_api("report", switches.report, subject.c_str(), text.data(), uint64_t{text.size()},
             &needed);
  }
  text.resize(needed - 1);
  return text;
}

// All settings pass through these scopes, because adapter and plugin have a copy of src/base each,
// and both copies must be set.
ocltensor::SettingScopes& setting_scopes() {
  static ocltensor::SettingScopes& scopes =  // leaked: threads may run while the process ends
      *new ocltensor::SettingScopes(get_setting, write_setting);
  return scopes;
}

}  // namespace

std::string get_setting(const std::string& name) {
  if (name == kComposites) return disabled_composites();
  std::string value(size_t{1} << 16, '\0');  // large enough for the names of all operators
  ocltensor::ErrorBuffer error;
  raise_if_failed(api().switches->get(name.c_str(), value.data(), value.size(), error.get()), "get",
                  error);
  value.resize(value.find('\0'));
  return value;
}

void run_action(const std::string& name, const std::string& value) {
  ocltensor::ErrorBuffer error;
  raise_if_failed(api().switches->set(name.c_str(), value.c_str(), error.get()), name.c_str(),
                  error);
}

std::vector<std::string> setting_names() {
  uint32_t count = 0;
  call_api("settings", api().switches->count, &count);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    call_api("settings", api().switches->at, i, &name);
    names.emplace_back(name);
  }
  return names;
}

void set_setting(const std::string& name, const std::string& value) {
  setting_scopes().assign(name, value);
}

uint64_t enter_settings(const std::vector<std::pair<std::string, std::string>>& values) {
  return setting_scopes().enter(values);
}

void leave_settings(uint64_t scope) { setting_scopes().leave(scope); }

void add_to_setting(const std::string& name, const std::vector<std::string>& entries) {
  setting_scopes().add(name, entries);
}

void remove_from_setting(const std::string& name, const std::vector<std::string>& entries) {
  setting_scopes().remove(name, [&](const std::string& entry) {
    return std::find(entries.begin(), entries.end(), entry) != entries.end();
  });
}

std::string report(const std::string& subject) {
  std::string text = plugin_report(subject);
  if (subject != "algorithms") return text;
  nlohmann::json rows = nlohmann::json::parse(text);
  for (const AttentionWay& way : attention_ways())
    rows.push_back({{"family", "attention"},
                    {"id", way.id},
                    {"runs", way.runs},
                    {"last", way.last},
                    {"disabled", way.disabled},
                    {"general", way.general},
                    {"name", way.name}});
  return rows.dump();
}

std::vector<std::string> plugin_operators() {
  uint32_t count = 0;
  call_api("operators", api().operators->count, &count);
  std::vector<std::string> names;
  for (uint32_t i = 0; i < count; ++i) {
    tb_op op = nullptr;
    tb_op_info info{};
    info.struct_size = sizeof info;
    call_api("operators", api().operators->at, i, &op, &info);
    names.emplace_back(info.name);
  }
  return names;
}

std::vector<std::pair<std::string, std::string>> result_layouts() {
  std::vector<std::pair<std::string, std::string>> rules;
  for (const ocltensor::Operator& op : ocltensor::operators())
    if (op.layout != ocltensor::LayoutRule::Contiguous)
      rules.emplace_back(op.name, ocltensor::name(op.layout));
  return rules;
}

std::vector<std::string> composite_operators() {
  std::set<std::string> own;
  for (const std::string& name : plugin_operators()) own.insert(base_name(name));
  std::vector<std::string> names;
  const c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& registered :
       dispatcher.getRegistrationsForDispatchKey(c10::DispatchKey::PrivateUse1)) {
    if (registered.name.rfind("aten::", 0) != 0) continue;
    const std::string name = c10::toString(registered).substr(6);
    const auto op = c10::Dispatcher::singleton().findSchema(registered);
    if (op && !own.contains(base_name(name)) && !is_needed(*op, name)) names.push_back(name);
  }
  return names;
}

}  // namespace torch_ocl
