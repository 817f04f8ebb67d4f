// Declares how many work-groups a multiprocessor runs at a time, in PTX text.
#include "resident_groups.h"

#include <sstream>
#include <string_view>

#include "device_facts.h"

namespace ocltensor::opencl::nvidia {
namespace {

constexpr std::string_view kWish = "\n#define TWO_GROUPS_OF_256\n";
constexpr std::string_view kItems = ".reqntid 256, 1, 1";  // what reqd_work_group_size becomes
constexpr std::string_view kDeclaration = ".minnctapersm 2";

}  // namespace

bool wants_resident_groups(const Capabilities& caps, const std::string& source) {
  return facts(caps).compute_capability != 0 && source.find(kWish) != std::string::npos;
}

std::string declare_resident_groups(const std::string& binary) {
  if (binary.find(kItems) == std::string::npos) return binary;
  std::string out;
  std::istringstream lines(binary.substr(0, binary.find('\0')));
  for (std::string line; std::getline(lines, line);) {
    out += line;
    out += '\n';
    if (line == kItems) {
      out += kDeclaration;
      out += '\n';
    }
  }
  return out;
}

}  // namespace ocltensor::opencl::nvidia
