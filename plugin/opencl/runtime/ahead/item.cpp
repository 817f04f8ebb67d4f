// Converts defines to a line and back.
#include "item.h"

#include <algorithm>
#include <vector>

namespace ocltensor::opencl::build_ahead {

std::string define_lines(std::string_view one_line) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < one_line.size();) {
    const size_t end = std::min(one_line.find("; ", begin), one_line.size());
    lines.push_back("#define " + std::string(one_line.substr(begin, end - begin)) + "\n");
    begin = end + 2;
  }
  std::ranges::sort(lines);
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

std::string on_one_line(std::string_view define_lines) {
  constexpr std::string_view kDefine = "#define ";
  std::string out;
  for (size_t begin = 0; begin < define_lines.size();) {
    const size_t end = std::min(define_lines.find('\n', begin), define_lines.size());
    if (end > begin + kDefine.size()) {
      if (!out.empty()) out += "; ";
      out += define_lines.substr(begin + kDefine.size(), end - begin - kDefine.size());
    }
    begin = end + 1;
  }
  return out;
}

}  // namespace ocltensor::opencl::build_ahead
