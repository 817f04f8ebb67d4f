// Settings and reports at the C boundary.
#include <algorithm>
#include <cstring>
#include <string>

#include "base/config.h"
#include "call/algorithms.h"
#include "call/providers.h"
#include "call/tuning.h"
#include "entry.h"
#include "ops/family.h"
#include "ops/registry.h"
#include "runtime/observe/profile_settings.h"
#include "switch_checks.h"
#include "tuning_switches.h"

namespace ocltensor::opencl {
namespace {

std::vector<const AlgorithmFamily*> families() {
  for (const Family& family : all_families())
    for (const auto list : family.algorithms) (void)list();  // enters the report at its first use
  return algorithm_families();
}

void check_algorithms(std::string_view list) {
  std::vector<std::string> names;
  for (const AlgorithmFamily* family : families())
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

// ---- Reports

// Names of the operators of every family that has an algorithm of the provider; "*" for the
// portable one, which has kernels for all.
std::string operators_of(const Provider& provider) {
  if (&provider == &kPortable) return "*";
  std::string names;
  for (const AlgorithmFamily* family : families()) {
    const auto algorithms = family->algorithms();
    if (std::ranges::none_of(algorithms, [&](const auto* a) { return a->provider == &provider; }))
      continue;
    for (const OpEntry& op : family->operators()) {
      const std::string name(op.name);
      if ((names + ",").find(name + ",") == std::string::npos)
        names += (names.empty() ? "" : ",") + name;
    }
  }
  return names;
}

std::string report_providers(std::string_view) {
  std::string text;
  for (const Provider* p : providers()) {
    const char* missing = missing_provider(*p);
    text += fmt::format("{}\t{}\t{:d}\t{:d}\t{}\t{}\t{}\t{}\n", p->name,
                        p->library == nullptr ? "" : p->library, missing == nullptr,
                        policy().is_enabled(*p), missing == nullptr ? OCLTENSOR_VERSION : "",
                        p->what, missing == nullptr ? "" : missing, operators_of(*p));
  }
  return text;
}

std::string report_algorithms(std::string_view) {
  std::string text;
  for (const AlgorithmFamily* family : families())
    for (const Algorithm* a : family->algorithms())
      text += fmt::format("{}\t{}\t{}\t{:d}\t{:d}\t{:d}\t{}\n", family->name(), a->id, a->runs(),
                          family->last() == a,
                          !a->last_resort && policy().algorithms.find(a->id) != nullptr,
                          a->last_resort, a->description);
  return text;
}

std::string report_measurements(std::string_view) {
  std::string text;
  for (const Measurement& m : measurements())
    for (const auto& [choice, time] : m.times)
      text +=
          fmt::format("{}\t{}\t{:.1f}\t{:d}\n", m.problem, text_of(choice), time, m.best == choice);
  return text;
}

// What follows the name of a subject, behind a blank, is its argument.
struct Subject {
  const char* name;
  std::string (*report)(std::string_view argument);
};
constexpr Subject kSubjects[] = {{"providers", report_providers},
                                 {"algorithms", report_algorithms},
                                 {"measurements", report_measurements},
                                 {"tuning_problems", report_tuning_problems},
                                 {"tuning_progress", report_tuning_progress},
                                 {"tuned_classes", report_tuned_classes},
                                 {"measurements_file", report_measurements_file},
                                 {"measurements_export", report_measurements_export}};

tb_status switch_report(const char* subject, char* text, uint64_t capacity, uint64_t* needed,
                        tb_error* error) {
  return guarded(error, [&] {
    const std::string_view wanted = &required(subject, "subject");
    const size_t blank = std::min(wanted.find(' '), wanted.size());
    for (const Subject& s : kSubjects) {
      if (wanted.substr(0, blank) != s.name) continue;
      const std::string whole = s.report(wanted.substr(std::min(blank + 1, wanted.size())));
      if (needed != nullptr) *needed = whole.size() + 1;
      if (capacity == 0) return;
      required(text, "text");
      const uint64_t bytes = std::min<uint64_t>(capacity - 1, whole.size());
      std::memcpy(text, whole.data(), bytes);
      text[bytes] = 0;
      return;
    }
    unsupported(TB_REASON_ARGUMENT, "there is no report '{}'", wanted);
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
