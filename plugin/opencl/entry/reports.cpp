// Writes the reports of tb_switch_api.
#include "reports.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "call/algorithms.h"
#include "call/providers.h"
#include "call/shipped_measurements.h"
#include "call/tuning.h"
#include "entry.h"
#include "ops/family.h"
#include "ops/registry.h"
#include "runtime/device/device.h"
#include "tuning/problems.h"
#include "words.h"

namespace ocltensor::opencl {
namespace {

using json = nlohmann::ordered_json;

// Rows as text. A name that is no UTF-8, which a driver may give to a device, is mended.
std::string text_of_rows(const json& rows) {
  return rows.dump(-1, ' ', false, json::error_handler_t::replace);
}

// A time in microseconds; JSON has no number for a choice that failed.
json time_or_null(double microseconds) {
  return std::isfinite(microseconds) ? json(microseconds) : json(nullptr);
}

// Names of the operators of every family that has an algorithm of the provider; "*" for the
// portable one, which has kernels for all.
json operators_of(const Provider& provider) {
  if (&provider == &kPortable) return json::array({"*"});
  std::vector<std::string_view> names;
  for (const AlgorithmFamily* family : reported_families()) {
    const auto algorithms = family->algorithms();
    if (std::ranges::none_of(algorithms, [&](const auto* a) { return a->provider == &provider; }))
      continue;
    for (const OpEntry& op : family->operators())
      if (std::ranges::find(names, op.name) == names.end()) names.push_back(op.name);
  }
  return names;
}

std::string report_providers(std::string_view) {
  json rows = json::array();
  for (const Provider* p : providers()) {
    const char* missing = missing_provider(*p);
    rows.push_back({{"name", p->name},
                    {"library", p->library == nullptr ? "" : p->library},
                    {"available", missing == nullptr},
                    {"enabled", policy().is_enabled(*p)},
                    {"version", missing == nullptr ? OCLTENSOR_VERSION : ""},
                    {"what", p->what},
                    {"missing", missing == nullptr ? "" : missing},
                    {"operators", operators_of(*p)}});
  }
  return text_of_rows(rows);
}

std::string report_algorithms(std::string_view) {
  json rows = json::array();
  for (const AlgorithmFamily* family : reported_families())
    for (const Algorithm* a : family->algorithms())
      rows.push_back({{"family", family->name()},
                      {"id", a->id},
                      {"runs", a->runs()},
                      {"last", family->last() == a},
                      {"disabled", !a->last_resort && policy().algorithms.find(a->id) != nullptr},
                      {"general", a->last_resort},
                      {"name", a->description}});
  return text_of_rows(rows);
}

std::string report_measurements(std::string_view) {
  json rows = json::array();
  for (const Measurement& m : measurements())
    for (const auto& [choice, time] : m.times)
      rows.push_back({{"problem", m.problem},
                      {"id", text_of(choice)},
                      {"microseconds", time_or_null(time)},
                      {"best", m.best == choice}});
  return text_of_rows(rows);
}

std::string report_tuning_problems(std::string_view argument) {
  const Device& device = device_of_text(argument);
  json rows = json::array();
  for (size_t i = 0; i < tuning::problems().size(); ++i) {
    const tuning::Problem& p = tuning::problems()[i];
    if (tuning::refusal(p, device) != nullptr) continue;
    rows.push_back({{"number", i},
                    {"family", p.family},
                    {"dtype", name(p.dtype)},
                    {"quick", p.quick},
                    {"operations", p.operations},
                    {"text", p.text}});
  }
  return text_of_rows(rows);
}

std::string report_tuning_progress(std::string_view) {
  const TuningProgress p = tuning_progress();
  const json row{{"family", p.family},
                 {"shapes", p.problem},
                 {"choice", p.choice},
                 {"index", p.index},
                 {"count", p.count},
                 {"rule_time", time_or_null(p.rule_time)},
                 {"best_time", time_or_null(p.best_time)},
                 {"classes", p.classes},
                 {"untuned", p.untuned}};
  return text_of_rows(json::array({row}));
}

std::string report_tuned_classes(std::string_view) {
  json rows = json::array();
  for (const TunedClass& c : tuned_classes())
    rows.push_back({{"device", c.device},
                    {"family", c.family},
                    {"shapes", c.problem},
                    {"rule", c.rule},
                    {"best", c.best},
                    {"rule_time", time_or_null(c.rule_time)},
                    {"best_time", time_or_null(c.best_time)},
                    {"tried", c.tried},
                    {"wrong", c.wrong},
                    {"complete", c.complete}});
  return text_of_rows(rows);
}

std::string report_measurements_file(std::string_view argument) {
  return measurement_path(device_of_text(argument));
}

std::string report_measurements_export(std::string_view argument) {
  Device& device = device_of_text(argument);
  return shipped_measurements::export_text(device.caps(),
                                           measurement_file::read(measurement_path(device)));
}

struct Subject {
  std::string_view name;
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

}  // namespace

std::vector<const AlgorithmFamily*> reported_families() {
  for (const Family& family : all_families())
    for (const auto list : family.algorithms) (void)list();  // enters the report at its first use
  return algorithm_families();
}

std::string report(std::string_view subject) {
  std::string_view argument = subject;
  const std::string_view wanted = next_word(argument);
  for (const Subject& s : kSubjects)
    if (wanted == s.name) return s.report(argument);
  unsupported(TB_REASON_ARGUMENT, "there is no report '{}'", subject);
}

}  // namespace ocltensor::opencl
