// Texts of the switches that tune, and of their reports.
#include "tuning_switches.h"

#include <fmt/format.h>

#include <charconv>

#include "call/shipped_measurements.h"
#include "call/tuning.h"
#include "runtime/device/device.h"
#include "tuning/problems.h"

namespace ocltensor::opencl {
namespace {

// Takes a word from the front of `text`.
std::string_view next_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

size_t number_of(std::string_view word) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  check(error == std::errc() && end == word.data() + word.size(), "'{}' is not a number", word);
  return number;
}

Device& device_of_text(std::string_view text) {
  return device(static_cast<int>(text.empty() ? 0 : number_of(text)));
}

}  // namespace

void tune_numbered_problem(std::string_view value) {
  std::string_view rest = value;
  Device& device = device_of_text(next_word(rest));
  const size_t number = number_of(next_word(rest));
  check(number < tuning::problems().size(), "there is no problem {}", number);
  check(rest == "quick" || rest == "full", "'{}' is neither quick nor full", rest);
  tuning::tune_problem(device, tuning::problems()[number], rest == "quick");
}

std::string report_tuning_problems(std::string_view argument) {
  const Device& device = device_of_text(argument);
  std::string text;
  for (size_t i = 0; i < tuning::problems().size(); ++i) {
    const tuning::Problem& p = tuning::problems()[i];
    if (tuning::refusal(p, device) != nullptr) continue;
    text += fmt::format("{}\t{}\t{}\t{:d}\t{:.0f}\t{}\n", i, p.family, name(p.dtype), p.quick,
                        p.operations, p.text);
  }
  return text;
}

std::string report_tuning_progress(std::string_view) {
  const TuningProgress p = tuning_progress();
  return fmt::format("{}\t{}\t{}\t{}\t{}\t{:.1f}\t{:.1f}\t{}\t{}\n", p.family, p.problem, p.choice,
                     p.index, p.count, p.rule_time, p.best_time, p.classes, p.untuned);
}

std::string report_tuned_classes(std::string_view) {
  std::string text;
  for (const TunedClass& c : tuned_classes())
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{:.2f}\t{:.2f}\t{}\t{}\t{:d}\n", c.device, c.family,
                        c.problem, c.rule, c.best, c.rule_time, c.best_time, c.tried, c.wrong,
                        c.complete);
  return text;
}

std::string report_measurements_file(std::string_view argument) {
  return measurement_path(device_of_text(argument));
}

std::string report_measurements_export(std::string_view argument) {
  Device& device = device_of_text(argument);
  return shipped_measurements::export_text(device.caps(),
                                           measurement_file::read(measurement_path(device)));
}

}  // namespace ocltensor::opencl
