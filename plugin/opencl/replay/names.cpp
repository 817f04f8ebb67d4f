// File names made from program names.
#include "names.h"

#include <cctype>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "ocltensor/error.h"

namespace ocltensor::replay {

namespace {

std::optional<std::string> text_of(const std::string& path) {
  const std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string export_name(const capture_file::Capture& capture,
                        const capture_file::Program& program) {
  std::string name = program.name.ends_with(".cl") ? program.name.substr(0, program.name.size() - 3)
                                                   : program.name;
  name = name.substr(0, 80);
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') c = '-';
  const auto place = static_cast<size_t>(&program - capture.programs().data()) + 1;
  return fmt::format("{:03}-{}.cl", place, name);
}

Replacements read_replacements(const capture_file::Capture& capture, const std::string& folder) {
  Replacements found;
  for (const auto& program : capture.programs()) {
    const std::string path = folder + "/" + export_name(capture, program);
    std::optional<std::string> source = text_of(path);
    if (!source) continue;
    const std::string options = text_of(path + ".options").value_or(program.options);
    found[program.id] = {std::move(*source),
                         options.substr(0, options.find_last_not_of(" \n") + 1)};
  }
  check(!found.empty() || capture.programs().empty(),
        "{} has no file of this capture's programs, e.g. {}: --export DIR writes them all", folder,
        export_name(capture, capture.programs().front()));
  return found;
}

}  // namespace ocltensor::replay
