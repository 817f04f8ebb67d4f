// Writes defines as program text.
#include "defines.h"

#include <algorithm>
#include <vector>

#include "ocltensor/error.h"

namespace ocltensor::opencl {

void Defines::refuse() { fail(TB_E_INTERNAL, "more than {} defines for one kernel", kCapacity); }

std::vector<std::string> Defines::sorted() const {
  std::vector<std::string> all;
  for (uint32_t i = 0; i < count_; ++i) {
    const Entry& e = entries_[i];
    all.push_back(std::string(e.name) + " " +
                  (e.text != nullptr ? std::string(e.text) : std::to_string(e.value)));
  }
  std::ranges::sort(all);
  return all;
}

std::string Defines::source() const {
  std::string lines;
  for (const std::string& define : sorted()) lines += "#define " + define + "\n";
  return lines;
}

std::string Defines::line() const {
  std::string text;
  for (const std::string& define : sorted()) (text += text.empty() ? "" : "; ") += define;
  return text;
}

}  // namespace ocltensor::opencl
