// Tuning through a backend's switches and reports.
#include "ocltensor/tuning.h"

#include <fmt/format.h>

#include "host/core/backend.h"
#include "reports.h"

namespace ocltensor::tuning {
namespace {

void act(Device device, const char* action, const std::string& value) {
  invoke_api(action, backend(device).api->switches->set, action, value.c_str());
}

std::string of_device(const char* subject, Device device) {
  return fmt::format("{} {}", subject, device.index());
}

Problem problem_of(const nlohmann::json& row) {
  return {row.at("number"), row.at("family"),     row.at("dtype"),
          row.at("quick"),  row.at("operations"), row.at("text")};
}

Progress progress_of(const nlohmann::json& row) {
  return {row.at("family"),
          row.at("shapes"),
          row.at("choice"),
          row.at("index"),
          row.at("count"),
          time_of(row.at("rule_time")),
          time_of(row.at("best_time")),
          row.at("classes")};
}

}  // namespace

std::vector<Problem> problems(Device device) {
  return rows_of(backend(device), of_device("tuning_problems", device), problem_of);
}

void start(Device device) { act(device, "start_tuning", ""); }
void stop(Device device) { act(device, "stop_tuning", ""); }

void tune(Device device, const Problem& problem, Effort effort) {
  act(device, "tune_problem",
      fmt::format("{} {} {}", device.index(), problem.number,
                  effort == Effort::Quick ? "quick" : "full"));
}

Progress progress(Device device) {
  const auto rows = rows_of(backend(device), "tuning_progress", progress_of);
  return rows.empty() ? Progress{} : rows.front();
}

std::vector<Class> results(Device device) {
  using Found = std::pair<int, Class>;
  const auto found = [&](const nlohmann::json& row) -> Found {
    return {row.at("device"),
            {device, row.at("family"), row.at("shapes"), row.at("rule"), row.at("best"),
             time_of(row.at("rule_time")), time_of(row.at("best_time")), row.at("tried"),
             row.at("wrong"), row.at("complete")}};
  };
  std::vector<Class> list;
  for (Found& f : rows_of(backend(device), "tuned_classes", found))
    if (f.first == device.index()) list.push_back(std::move(f.second));
  return list;
}

std::string measurements_file(Device device) {
  return report_text(backend(device), of_device("measurements_file", device));
}
std::string export_measurements(Device device) {
  return report_text(backend(device), of_device("measurements_export", device));
}

}  // namespace ocltensor::tuning
