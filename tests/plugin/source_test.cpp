// Kernel text for drivers that take no structures by value: no kernel may hide one in a macro,
// where structures_in_memory() does not see it.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "kernel_sources.h"

namespace ocltensor::opencl {
namespace {

// With lines that go on joined to one.
std::string joined(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.compare(i, 2, "\\\n") == 0)
      ++i;
    else
      out += text[i];
  }
  return out;
}

TEST(StructuresInMemory, AreSeenInEveryKernelsHead) {
  const std::regex structure(R"(const \w+Params \w+)"), word(R"(\w+)");
  size_t kernels = 0;
  for (const Source* source : kernel_sources::all()) {
    const std::string text = joined(expand(*source));
    std::set<std::string> hiding;  // macros with a structure in them
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("#define ") && std::regex_search(line, structure))
        hiding.insert(line.substr(8, line.find_first_of(" (", 8) - 8));
    constexpr std::string_view kKernel = "__kernel void ";
    for (size_t at = text.find(kKernel); at != std::string::npos; at = text.find(kKernel, at + 1)) {
      ++kernels;
      const size_t open = text.find('(', at);
      const std::string head = text.substr(open, text.find('{', open) - open);
      for (std::sregex_iterator w(head.begin(), head.end(), word), none; w != none; ++w)
        EXPECT_EQ(hiding.count(w->str()), 0U) << source->path << ": " << w->str();
    }
  }
  EXPECT_GT(kernels, 100U);
}

}  // namespace
}  // namespace ocltensor::opencl
