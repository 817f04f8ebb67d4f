// Texts of programs: no kernel may hide a structure in a macro, where structures_in_memory() does
// not see it; and the lines of users' texts that compilers' logs name.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "kernel_sources.h"
#include "runtime/program/compiler_log.h"

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

TEST(LineInQuestion, IsTheUsersOwn) {
  const std::string plain = "first\nsecond\nthird\n";
  EXPECT_EQ(line_in_question("/tmp/a.cl:2:5: error: no", plain), "line 2: second");
  EXPECT_EQ(line_in_question("it failed\n<kernel>:3: error: no", plain), "line 3: third");
  EXPECT_EQ(line_in_question("a.cl:4:1: error: at the end", plain), "");
  EXPECT_EQ(line_in_question("an error without a place", plain), "");
  const std::string with_header =
      "#define STYLE 1\n#line 1 \"the kernel source\"\n#line 1 \"types.h\"\nof a header\n"
      "its second\n#line 2 \"the kernel source\"\nsecond\nthird\n";
  const std::string obeyed = "the kernel source:3:5: error: no",
                    counted = "<kernel>:8:5: error: no";
  EXPECT_EQ(line_in_question(obeyed, with_header), "line 3: third");
  EXPECT_EQ(line_in_question("error: the kernel source:3:5: no", with_header), "line 3: third");
  EXPECT_EQ(line_in_question(counted, with_header), "line 3: third") << "#line is not obeyed";
  EXPECT_EQ(line_in_question("types.h:2:5: error: no", with_header), "");
  EXPECT_EQ(line_in_question("<kernel>:5:5: error: no", with_header), "");
}

}  // namespace
}  // namespace ocltensor::opencl
