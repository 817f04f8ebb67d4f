// Writes defines as program text.
#include "defines.h"

#include <algorithm>
#include <vector>

#include "ocltensor/error.h"

namespace ocltensor::opencl {

void Defines::refuse() { fail(TB_E_INTERNAL, "more than {} defines for one kernel", kCapacity); }

std::string Defines::source() const {
  std::vector<std::string> lines;
  for (uint32_t i = 0; i < count_; ++i) {
    const Entry& e = entries_[i];
    lines.push_back(std::string("#define ") + e.name + " " +
                    (e.text != nullptr ? std::string(e.text) : std::to_string(e.value)) + "\n");
  }
  std::sort(lines.begin(), lines.end());
  std::string all;
  for (const std::string& line : lines) all += line;
  return all;
}

}  // namespace ocltensor::opencl
