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

uint32_t whole(const std::string& text) { return static_cast<uint32_t>(std::stoul(text)); }

}  // namespace

std::vector<Problem> problems(Device device) {
  std::vector<Problem> list;
  for (Fields& f : report_lines(backend(device), of_device("tuning_problems", device), 6))
    list.push_back({whole(f[0]), std::move(f[1]), std::move(f[2]), f[3] == "1", std::stod(f[4]),
                    std::move(f[5])});
  return list;
}

void start(Device device) { act(device, "start_tuning", ""); }
void stop(Device device) { act(device, "stop_tuning", ""); }

void tune(Device device, const Problem& problem, Effort effort) {
  act(device, "tune_problem",
      fmt::format("{} {} {}", device.index(), problem.number,
                  effort == Effort::Quick ? "quick" : "full"));
}

Progress progress(Device device) {
  for (Fields& f : report_lines(backend(device), "tuning_progress", 9))
    return {std::move(f[0]), std::move(f[1]), std::move(f[2]), whole(f[3]),
            whole(f[4]),     std::stod(f[5]), std::stod(f[6]), whole(f[7])};
  return {};
}

std::vector<Class> results(Device device) {
  std::vector<Class> list;
  for (Fields& f : report_lines(backend(device), "tuned_classes", 10))
    if (std::stoi(f[0]) == device.index())
      list.push_back({device, std::move(f[1]), std::move(f[2]), std::move(f[3]), std::move(f[4]),
                      std::stod(f[5]), std::stod(f[6]), whole(f[7]), whole(f[8]), f[9] == "1"});
  return list;
}

std::string measurements_file(Device device) {
  return report_text(backend(device), of_device("measurements_file", device));
}
std::string export_measurements(Device device) {
  return report_text(backend(device), of_device("measurements_export", device));
}

}  // namespace ocltensor::tuning
