// Reads and writes measurements that travel from one machine to others.
#include "shipped_measurements.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>

#include "base/config.h"
#include "base/log.h"

namespace ocltensor::opencl::shipped_measurements {
namespace {

constexpr std::string_view kTitle = "ocltensor tuned 1";

using Fields = std::map<std::string, std::string, std::less<>>;

const char* style_name(const Capabilities& caps) {
  return caps.style == KernelStyle::Cpu ? "cpu" : "gpu";
}

// What the device was. Driver and version are for readers: a driver's next version rarely changes
// what is fast, and what a later version of a kernel cannot run is refused by its plan.
std::vector<std::pair<std::string, std::string>> fields_of(const Capabilities& caps) {
  return {{"device", caps.name},
          {"vendor", caps.vendor},
          {"style", style_name(caps)},
          {"compute_units", std::to_string(caps.compute_units)},
          {"work_group", std::to_string(caps.max_work_group_size)},
          {"local_memory", std::to_string(caps.local_memory)},
          {"platform", caps.platform + " " + caps.platform_version},
          {"driver", caps.driver_version},
          {"version", OCLTENSOR_VERSION}};
}

// The fields above the empty line, which `stream` is read up to; empty: it is no such file.
Fields read_fields(std::istream& stream) {
  Fields fields;
  std::string line;
  if (!std::getline(stream, line) || line != kTitle) return fields;
  while (std::getline(stream, line) && !line.empty()) {
    const size_t tab = line.find('\t');
    if (tab != std::string::npos) fields[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return fields;
}

std::string value(const Fields& fields, std::string_view name) {
  const auto it = fields.find(name);
  return it == fields.end() ? std::string() : it->second;
}

std::string refusal_of(const Fields& fields, const Capabilities& caps) {
  if (fields.empty())
    return fmt::format("it does not begin with '{}': it is damaged, or of another version", kTitle);
  for (const auto& [name, mine] : fields_of(caps)) {
    const bool limit = name == "work_group" || name == "local_memory";
    if (name == "platform") break;  // the rest is for readers
    const std::string theirs = value(fields, name);
    // Where less is allowed than there (OCLTENSOR_CAPS, another driver), other kernels are fast.
    const bool fits = limit ? std::strtoull(theirs.c_str(), nullptr, 10) <=
                                  std::strtoull(mine.c_str(), nullptr, 10)
                            : theirs == mine;
    if (!fits)
      return fmt::format("it was measured where '{}' is '{}'; here it is '{}'", name, theirs, mine);
  }
  return {};
}

struct File {
  std::string path, text;
  bool given;  // by the setting
};

std::vector<File> files() {
  std::vector<File> list;
  std::istringstream paths(config::get_string(config::Knob::TunedFiles));
  for (std::string path; std::getline(paths, path, ':');) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    list.push_back({path, text.str(), true});
  }
  for (const Embedded& e : embedded()) list.push_back({e.path, e.text, false});
  return list;
}

}  // namespace

std::string export_text(const Capabilities& caps, const measurement_file::Lines& lines) {
  std::string text = fmt::format("{}\n", kTitle);
  for (const auto& [name, value] : fields_of(caps)) text += fmt::format("{}\t{}\n", name, value);
  return text + '\n' + measurement_file::to_text(lines);
}

std::string refusal(std::string_view text, const Capabilities& caps) {
  std::istringstream stream{std::string(text)};
  return refusal_of(read_fields(stream), caps);
}

measurement_file::Lines lines_for(const Capabilities& caps) {
  measurement_file::Lines lines;
  for (const File& file : files()) {
    std::istringstream stream(file.text);
    const std::string reason = refusal_of(read_fields(stream), caps);
    if (reason.empty()) {
      lines.merge(measurement_file::parse(stream));
      continue;
    }
    const auto level = file.given ? logging::Level::Warning : logging::Level::Debug;
    if (logging::enabled(level))
      logging::write(
          level, "tuned",
          fmt::format("{} is not used for {}: {}", file.path, caps.name, reason).c_str());
  }
  return lines;
}

}  // namespace ocltensor::opencl::shipped_measurements
