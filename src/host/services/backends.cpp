// The switches of backends.h as settings, and the backends' reports.
#include "ocltensor/backends.h"

#include <algorithm>
#include <set>

#include "base/config.h"
#include "base/name_patterns.h"
#include "host/core/backend.h"
#include "ocltensor/settings.h"
#include "reports.h"
#include "setting_scopes.h"

namespace ocltensor::backends {
namespace {

using config::Knob;
using Values = std::vector<std::pair<std::string, std::string>>;

// ---- Flags as settings

int mask_of(const SixteenBit& s) { return (s.reduced ? 1 : 0) | (s.split ? 2 : 0); }
SixteenBit sixteen_bit(Knob knob) {
  const int64_t mask = config::get_int(knob);
  return {(mask & 1) != 0, (mask & 2) != 0};
}

Values values_of(const Flags& f) {
  Values values;
  const auto add = [&](Knob knob, const auto& given, const auto& number) {
    if (given)
      values.emplace_back(config::name(knob), std::to_string(static_cast<int>(number(*given))));
  };
  const auto as_it_is = [](auto value) { return value; };
  add(Knob::TunedKernels, f.enabled, as_it_is);
  add(Knob::Deterministic, f.deterministic, as_it_is);
  add(Knob::Benchmark, f.benchmark, as_it_is);
  add(Knob::BenchmarkLimit, f.benchmark_limit, as_it_is);
  add(Knob::KeepMeasurements, f.keep_measurements, as_it_is);
  add(Knob::Immediate, f.immediate, as_it_is);
  add(Knob::AllowTf32, f.allow_tf32, as_it_is);
  add(Knob::AllowInt8Activations, f.allow_int8_activations, as_it_is);
  add(Knob::Fp16Reduction, f.fp16, mask_of);
  add(Knob::Bf16Reduction, f.bf16, mask_of);
  return values;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

// ---- Reports

// The rows of all loaded backends.
template <typename Row>
auto report(const char* subject, Row row) {
  auto all = rows_of(backend(0), subject, row);
  for (int i = 1; i < backend_count(); ++i)
    for (auto& entry : rows_of(backend(static_cast<uint8_t>(i)), subject, row))
      all.push_back(std::move(entry));
  return all;
}

Provider provider_of(const nlohmann::json& row) {
  return {row.at("name"),    row.at("library"), row.at("available"), row.at("enabled"),
          row.at("version"), row.at("what"),    row.at("missing")};
}

// ---- Operators

std::vector<std::string> operations() {
  std::set<std::string> names;
  for (int i = 1; i < backend_count(); ++i) {
    const tb_operator_api& api = *backend(static_cast<uint8_t>(i)).api->operators;
    uint32_t count = 0;
    if (api.count(&count, nullptr) != TB_OK) continue;
    for (uint32_t k = 0; k < count; ++k) {
      tb_op op = nullptr;
      tb_op_info info{};
      info.struct_size = sizeof info;
      invoke_api("operators", api.at, k, &op, &info);
      names.insert(info.name);
    }
  }
  return {names.begin(), names.end()};
}

// The names of the operators that the patterns match.
std::vector<std::string> resolved(const std::vector<std::string>& patterns) {
  const std::vector<std::string> known = operations();
  std::vector<std::string> names;
  for (const std::string& pattern : patterns) {
    check(pattern != "copy" && pattern != "copy.out",
          "copy cannot be disabled: the fallback of every operator needs it");
    const size_t before = names.size();
    for (const std::string& name : known)
      if (name != "copy.out" && matches_operator(pattern, name)) names.push_back(name);
    if (names.size() > before) continue;
    const std::string near = joined(near_names(pattern, known));
    fail(TB_E_INVALID, "no operator of a loaded backend fits '{}'{}{}", pattern,
         near.empty() ? "" : "; near are: ", near);
  }
  return names;
}

constexpr const char* kOperations = "OCLTENSOR_DISABLED_OPERATIONS";
constexpr const char* kAlgorithms = "OCLTENSOR_DISABLED_ALGORITHMS";
constexpr const char* kProviders = "OCLTENSOR_DISABLED_PROVIDERS";

}  // namespace

SettingScope::SettingScope(const Values& values) : number_(setting_scopes().enter(values)) {}
SettingScope::~SettingScope() {
  try {
    if (number_ != 0) setting_scopes().leave(number_);
  } catch (const Error&) {  // a backend that was loaded since refuses the value from before
  }
}

Flags get_flags() {
  return {.enabled = config::get_bool(Knob::TunedKernels),
          .deterministic = config::get_bool(Knob::Deterministic),
          .benchmark = config::get_bool(Knob::Benchmark),
          .benchmark_limit = static_cast<int>(config::get_int(Knob::BenchmarkLimit)),
          .keep_measurements = config::get_bool(Knob::KeepMeasurements),
          .immediate = config::get_bool(Knob::Immediate),
          .allow_tf32 = config::get_bool(Knob::AllowTf32),
          .allow_int8_activations = config::get_bool(Knob::AllowInt8Activations),
          .fp16 = sixteen_bit(Knob::Fp16Reduction),
          .bf16 = sixteen_bit(Knob::Bf16Reduction)};
}
void set_flags(const Flags& flags) {
  for (const auto& [name, value] : values_of(flags)) set_setting(name, value);
}
SettingScope flags(const Flags& flags) { return SettingScope(values_of(flags)); }
SettingScope verbose(int level) {
  return SettingScope{{config::name(Knob::Verbose), std::to_string(level)}};
}

void disable_operations(const std::vector<std::string>& patterns) {
  setting_scopes().add(kOperations, resolved(patterns));
}
void enable_operations(const std::vector<std::string>& patterns) {
  const std::vector<std::string> names = resolved(patterns);
  setting_scopes().remove(kOperations, [&](const std::string& entry) {
    return std::ranges::find(names, entry) != names.end() ||
           std::ranges::find(patterns, entry) != patterns.end();
  });
}
SettingScope operations_disabled(const std::vector<std::string>& patterns) {
  return SettingScope{{kOperations, joined(resolved(patterns))}};
}
std::vector<std::string> disabled_operations() { return split_names(get_setting(kOperations)); }

std::vector<Provider> providers() { return report("providers", provider_of); }
void set_provider_enabled(std::string_view name, bool enabled) {
  const std::vector<Provider> known = providers();
  check(std::ranges::any_of(known, [&](const Provider& p) { return p.name == name; }),
        "there is no kernel provider '{}'", name);
  if (enabled)
    setting_scopes().remove(kProviders, [&](const std::string& entry) { return entry == name; });
  else
    setting_scopes().add(kProviders, {std::string(name)});
}
std::vector<std::string> provider_operations(std::string_view name) {
  using Found = std::pair<Provider, std::vector<std::string>>;
  const auto with_patterns = [](const nlohmann::json& row) -> Found {
    return {provider_of(row), row.at("operators").get<std::vector<std::string>>()};
  };
  for (const auto& [provider, names] : report("providers", with_patterns)) {
    if (provider.name != name) continue;
    std::vector<std::string> list;
    if (!provider.available) return list;
    const NamePatterns patterns(joined(names));
    for (const std::string& operation : operations())
      if (patterns.find_operator(operation) != nullptr) list.push_back(operation);
    return list;
  }
  fail(TB_E_INVALID, "there is no kernel provider '{}'", name);
}

std::vector<Algorithm> algorithms() {
  return report("algorithms", [](const nlohmann::json& row) -> Algorithm {
    return {row.at("family"),   row.at("id"),      row.at("runs"), row.at("last"),
            row.at("disabled"), row.at("general"), row.at("name")};
  });
}
std::string last_choice(std::string_view family) {
  for (const Algorithm& a : algorithms())
    if (a.family == family && a.last) return a.id;
  return {};
}
SettingScope algorithms_disabled(const std::vector<std::string>& patterns) {
  return SettingScope{{kAlgorithms, joined(patterns)}};
}

std::vector<Measurement> measurements() {
  return report("measurements", [](const nlohmann::json& row) -> Measurement {
    return {row.at("problem"), row.at("id"), time_of(row.at("microseconds")), row.at("best")};
  });
}
void forget_measurements() { set_setting("forget_measurements", "1"); }

}  // namespace ocltensor::backends
