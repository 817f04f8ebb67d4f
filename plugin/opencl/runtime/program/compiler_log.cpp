// What a compiler's log says about a text that a user wrote.
#include "compiler_log.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include "runtime/driver/caps.h"

namespace ocltensor::opencl {
namespace {

// A line of a text as #line directives number it.
struct Line {
  std::string file;  // empty before the first directive with a name
  unsigned long number;
  std::string text;
};

std::vector<Line> lines_of(const std::string& source) {
  constexpr std::string_view kDirective = "#line ";
  std::vector<Line> lines;
  std::istringstream in(source);
  std::string file, text;
  for (unsigned long number = 1; std::getline(in, text); ++number) {
    lines.push_back({file, number, text});
    if (!text.starts_with(kDirective)) continue;
    number = std::strtoul(text.c_str() + kDirective.size(), nullptr, 10) - 1;
    if (const size_t quote = text.find('"'); quote != std::string::npos)
      file = text.substr(quote + 1, text.rfind('"') - quote - 1);
  }
  return lines;
}

// Of a line of a log: "FILE:3:5: error: ..." or, as PoCL says it, "error: FILE:3:5: ...".
struct Place {
  std::string file;
  unsigned long number = 0;  // from 1; 0: there is none
};

Place place_in(const std::string& line) {
  constexpr std::string_view kBefore = "error: ";
  const size_t begin = line.starts_with(kBefore) ? kBefore.size() : 0;
  for (size_t i = begin; i + 1 < line.size(); ++i)
    if (line[i] == ':' && std::isdigit(static_cast<unsigned char>(line[i + 1])))
      return {line.substr(begin, i - begin), std::strtoul(line.c_str() + i + 1, nullptr, 10)};
  return {};
}

}  // namespace

std::string line_in_question(const std::string& log, const std::string& source) {
  const size_t at = log.find("error");
  if (at == std::string::npos) return {};
  const size_t begin = log.rfind('\n', at) == std::string::npos ? 0 : log.rfind('\n', at) + 1;
  const Place place = place_in(log.substr(begin, log.find('\n', at) - begin));
  const std::vector<Line> lines = lines_of(source);
  bool is_named = false;  // by a directive
  for (const Line& line : lines) {
    if (line.file.empty() || line.file != place.file) continue;
    is_named = true;
    if (line.file == kGivenText && line.number == place.number)
      return fmt::format("line {}: {}", line.number, line.text);
  }
  if (is_named || place.number == 0 || place.number > lines.size()) return {};
  const Line& line = lines[place.number - 1];
  if (!line.file.empty() && line.file != kGivenText) return {};
  return fmt::format("line {}: {}", line.number, line.text);
}

}  // namespace ocltensor::opencl
