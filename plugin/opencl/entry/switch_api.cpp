// Settings at the C boundary, and the way to the reports.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/config.h"
#include "call/algorithms.h"
#include "call/providers.h"
#include "call/tuning.h"
#include "entry.h"
#include "ops/registry.h"
#include "reports.h"
#include "runtime/observe/profile_settings.h"
#include "switch_checks.h"
#include "tuning/problems.h"
#include "words.h"

namespace ocltensor::opencl {
namespace {

void check_algorithms(std::string_view list) {
  std::vector<std::string> names;
  for (const AlgorithmFamily* family : reported_families())
    for (const Algorithm* a : family->algorithms()) names.emplace_back(a->id);
  // The adapter's ways to compute attention; this library sees only the one that was chosen.
  names.emplace_back("attention.fused");
  names.emplace_back("attention.math");
  for (const std::string& pattern : split_names(list)) {
    bool found = false;
    for (const std::string& name : names) found = found || matches_pattern(pattern, name);
    if (found) continue;
    std::string near;
    for (const std::string& name : near_names(pattern, names)) near += " " + name;
    fail(TB_E_INVALID, "no algorithm fits '{}'{}{}", pattern,
         near.empty() ? "" : "; near are:", near);
  }
}

// Checks of values that the table of settings cannot make alone.
struct Check {
  config::Knob knob;
  void (*check)(std::string_view value);
};
constexpr Check kChecks[] = {{config::Knob::DisabledOperations, check_operations},
                             {config::Knob::DisabledAlgorithms, check_algorithms},
                             {config::Knob::DisabledProviders, check_providers}};

void check_list(const Check& c, std::string_view value, const char* where) {
  try {
    c.check(value);
  } catch (const Error& e) {
    fail(TB_E_INVALID, "{}='{}' ({}) is not valid: {}", config::name(c.knob), value, where,
         e.what());
  }
}

}  // namespace

void check_lists() {
  for (const Check& c : kChecks)
    if (const std::string value = config::get_string(c.knob); !value.empty())
      check_list(c, value, "environment");
}

namespace {

// "DEVICE NUMBER quick|full": tunes a problem of the report tuning_problems.
void tune_numbered_problem(std::string_view value) {
  std::string_view rest = value;
  Device& device = device_of_text(next_word(rest));
  const size_t number = number_of(next_word(rest));
  check(number < tuning::problems().size(), "there is no problem {}", number);
  check(rest == "quick" || rest == "full", "'{}' is neither quick nor full", rest);
  tuning::tune_problem(device, tuning::problems()[number], rest == "quick");
}

// Names that run a function instead of setting a value.
struct Action {
  const char* name;
  void (*run)(std::string_view value);
};
constexpr Action kActions[] = {
    {"forget_measurements", [](std::string_view) { forget_measurements(); }},
    {"start_tuning", [](std::string_view) { start_tuning(); }},
    {"stop_tuning", [](std::string_view) { stop_tuning(); }},
    {"tune_problem", tune_numbered_problem}};

// Declines the name, as it may be another backend's, or the host's.
[[noreturn]] void refuse_name(std::string_view name) {
  unsupported(TB_REASON_ARGUMENT, "there is no setting '{}'", name);
}

bool is_setting(std::string_view name) {
  const auto all = config::list();
  return std::ranges::any_of(all, [&](const auto& knob) { return name == knob.name; });
}

tb_status switch_set(const char* name, const char* value, tb_error* error) {
  return guarded(error, [&] {
    const std::string_view n = &required(name, "name");
    required(value, "value");
    for (const Action& action : kActions)
      if (n == action.name) return action.run(value);
    for (const Check& c : kChecks)
      if (n == config::name(c.knob)) check_list(c, value, "API");
    if (!is_setting(n)) refuse_name(n);
    config::set(n, value);
    profiler::apply_settings();
  });
}

tb_status switch_get(const char* name, char* value, uint64_t capacity, tb_error* error) {
  return guarded(error, [&] {
    required(name, "name");
    for (const auto& knob : config::list()) {
      if (std::strcmp(knob.name, name) != 0) continue;
      check(value != nullptr && capacity > knob.value.size(), "the buffer for {} needs {} bytes",
            name, knob.value.size() + 1);
      std::memcpy(value, knob.value.c_str(), knob.value.size() + 1);
      return;
    }
    refuse_name(name);
  });
}

tb_status switch_count(uint32_t* count, tb_error* error) {
  return guarded(error, [&] { required(count, "count") = config::kKnobCount; });
}
tb_status switch_at(uint32_t index, const char** name, tb_error* error) {
  return guarded(error, [&] {
    check(index < static_cast<uint32_t>(config::kKnobCount), "there is no setting {}", index);
    required(name, "name") = config::list()[index].name;
  });
}

tb_status switch_report(const char* subject, char* text, uint64_t capacity, uint64_t* needed,
                        tb_error* error) {
  return guarded(error, [&] {
    const std::string whole = report(&required(subject, "subject"));
    if (needed != nullptr) *needed = whole.size() + 1;
    if (capacity == 0) return;
    required(text, "text");
    const uint64_t bytes = std::min<uint64_t>(capacity - 1, whole.size());
    std::memcpy(text, whole.data(), bytes);
    text[bytes] = 0;
  });
}

}  // namespace

const tb_switch_api kSwitchApi{
    .struct_size = sizeof(tb_switch_api),
    .set = switch_set,
    .get = switch_get,
    .count = switch_count,
    .at = switch_at,
    .report = switch_report,
};

}  // namespace ocltensor::opencl
