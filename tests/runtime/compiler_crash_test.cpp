// A compiler that ends its process: of one program, in processes with caches of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "fresh_process.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kSegmentationFault = 128 + 11;

// A convolution whose first algorithm has a program that the compiler dies of.
class CompilerCrash : public testing::Test {
 protected:
  Outcome convolve(const std::string& settings) const {
    return probe("convolve",
                 "OPENCL_LAYERS=" POOR_DRIVER
                 " CRASH_ON='void implicit(' "
                 "OCLTENSOR_KERNEL_STYLE=gpu "
                 "OCLTENSOR_DISABLED_PROVIDERS=nvidia_hopper,nvidia_mma OCLTENSOR_CACHE_DIR=" +
                     folder_.path() + "/cache POCL_CACHE_DIR=" + folder_.path() + " " + settings);
  }
  static size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
    return found;
  }
  std::string marks() const { return folder_.path() + "/cache/building"; }

 private:
  Folder folder_;
};

TEST_F(CompilerCrash, AnotherAlgorithmRunsWithOneMessage) {
  const Outcome o = convolve("OCLTENSOR_CAPS=trusted_compiler=0");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_EQ(count(o.text, "is left out, another algorithm runs"), 1u) << o.text;
  EXPECT_THAT(o.text, AllOf(HasSubstr("right"), HasSubstr("conv/implicit.cl is not compiled"),
                            HasSubstr("Delete " + marks() + "/")));
  const Outcome again = convolve("");  // the compiler is known now
  EXPECT_EQ(again.code, 0) << again.text;
  EXPECT_THAT(again.text, AllOf(HasSubstr("right, builds 0"), HasSubstr("is left out")));
}

TEST_F(CompilerCrash, OfATrustedCompilerTheNextProcessLearns) {
  EXPECT_EQ(convolve("OCLTENSOR_BUILD_AHEAD=0").code, kSegmentationFault);
  const Outcome next = convolve("");
  EXPECT_EQ(next.code, 0) << next.text;
  EXPECT_THAT(next.text, AllOf(HasSubstr("right"), HasSubstr("is left out")));
}

TEST_F(CompilerCrash, AProcessThatWasKilledIsNotHeldAgainstTheCompiler) {
  EXPECT_EQ(convolve("OCLTENSOR_BUILD_AHEAD=0").code, kSegmentationFault);
  const Outcome next = convolve("CRASH_ON=");
  EXPECT_EQ(next.code, 0) << next.text;
  EXPECT_THAT(next.text, AllOf(HasSubstr("right"), Not(HasSubstr("is left out"))));
  EXPECT_TRUE(std::filesystem::is_empty(marks()));
}

}  // namespace
