// Uncovers hidden instructions in PTX text.
#include "ptx.h"

#include <sstream>
#include <string_view>

#include "ocltensor/error.h"

namespace ocltensor::opencl::nvidia_hopper::ptx {
namespace {

constexpr std::string_view kMark = "//@ ";
constexpr std::string_view kTarget = ".target sm_90";

void append_uncovered(std::string& out, std::string_view line) {
  for (size_t at = line.find(kMark); at != std::string_view::npos; at = line.find(kMark)) {
    out += line.substr(0, at);
    line.remove_prefix(at + kMark.size());
  }
  out += line;
  out += '\n';
}

}  // namespace

bool hides_instructions(const std::string& source) {
  return source.find("\"//@ ") != std::string::npos;
}

std::string uncover(const std::string& text) {
  std::string out;
  bool targeted = false;
  std::istringstream lines(text.substr(0, text.find('\0')));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kTarget)) {
      line = ".target sm_90a" + line.substr(std::min(line.find(',', kTarget.size()), line.size()));
      targeted = true;
    }
    append_uncovered(out, line);
    if (line.starts_with(".reqntid")) out += ".minnctapersm 1\n";
  }
  if (!targeted)
    fail(TB_E_COMPILE, "the driver's program is no PTX for sm_90: it begins with '{}'",
         text.substr(0, 80));
  return out;
}

}  // namespace ocltensor::opencl::nvidia_hopper::ptx
