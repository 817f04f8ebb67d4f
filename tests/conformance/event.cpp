// Events as lines of JSON.
#include "event.h"

#include <nlohmann/json.hpp>

namespace ocltensor::conformance {

using nlohmann::json;

std::string to_line(const Event& e) {
  const json line{{"kind", static_cast<int>(e.kind)},
                  {"op", e.op},
                  {"dtype", static_cast<int>(e.dtype)},
                  {"seed", e.seed},
                  {"text", e.text},
                  {"arguments", e.arguments},
                  {"task", e.task},
                  {"tasks", e.tasks},
                  {"spent", e.spent},
                  {"checks", e.checks},
                  {"failures", e.failures},
                  {"notes", e.notes}};
  // Texts of a plugin need not be UTF-8.
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

Event from_line(const std::string& text) {
  const json line = json::parse(text);
  Event e;
  e.kind = static_cast<Event::Kind>(line.at("kind").get<int>());
  e.op = line.at("op");
  e.dtype = static_cast<DType>(line.at("dtype").get<int>());
  e.seed = line.at("seed");
  e.text = line.at("text");
  e.arguments = line.at("arguments");
  e.task = line.at("task");
  e.tasks = line.at("tasks");
  e.spent = line.at("spent");
  e.checks = line.at("checks");
  e.failures = line.at("failures").get<std::vector<std::string>>();
  e.notes = line.at("notes").get<std::vector<std::string>>();
  return e;
}

}  // namespace ocltensor::conformance
