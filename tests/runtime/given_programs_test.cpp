// Programs that users give: built by builder processes, kept on disk, and whatever can go wrong
// with either. In processes with caches of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <thread>
#include <vector>

#include "fresh_process.h"

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GivenPrograms : public testing::Test {
 protected:
  Outcome kernels(int count, const std::string& settings = "") const {
    return probe("kernels " + std::to_string(count), "OCLTENSOR_CACHE_DIR=" + folder_.path() +
                                                         "/cache POCL_CACHE_DIR=" + folder_.path() +
                                                         "/driver " + settings);
  }
  // Without builders.
  Outcome alone(int count, const std::string& settings = "") const {
    return kernels(count, "OCLTENSOR_BUILD_AHEAD=0 " + settings);
  }
  void SetUp() override { fs::create_directory(folder_.path() + "/driver"); }
  Folder folder_;
};

// The number after a word of the outcome.
int number_after(const Outcome& o, const std::string& word) {
  const size_t at = o.text.find(word + " ");
  return at == std::string::npos ? -1 : std::atoi(o.text.c_str() + at + word.size());
}

TEST_F(GivenPrograms, BuildersCompileThemAndALaterProcessFindsAll) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "no builders on one processor";
  const Outcome first = kernels(40);
  EXPECT_EQ(first.code, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("right asked 40 "));
  const int builds = number_after(first, "builds"), loads = number_after(first, "loads");
  EXPECT_EQ(builds + loads, 40) << first.text;
  EXPECT_GT(loads, 0) << "builders have compiled none: " << first.text;
  const Outcome second = kernels(40);
  EXPECT_THAT(second.text, HasSubstr("right asked 0 builds 0 loads 40")) << first.text;
}

TEST_F(GivenPrograms, ParametersAreKnownOfThoseThatAreLoaded) {
  EXPECT_THAT(alone(2).text,
              AllOf(HasSubstr("right asked 0 builds 2 loads 0"), HasSubstr("the tensor is int32")));
  for (const char* settings : {"", "OPENCL_LAYERS=" POOR_DRIVER " NO_BINARY_ARGUMENTS=1"})
    EXPECT_THAT(alone(2, settings).text, AllOf(HasSubstr("right asked 0 builds 0 loads 2"),
                                               HasSubstr("the tensor is int32")))
        << settings;
}

TEST_F(GivenPrograms, DamagedEntriesAreBuiltAgain) {
  const std::string untold = "OPENCL_LAYERS=" POOR_DRIVER " NO_BINARY_ARGUMENTS=1";
  (void)alone(1, untold);
  const std::vector<fs::path> entries = folder_.entries();
  ASSERT_EQ(entries.size(), 2u) << "a program and its parameters";
  for (const fs::path& entry : entries) {
    fs::resize_file(entry, fs::file_size(entry) / 2);
    EXPECT_THAT(alone(1, untold).text, AllOf(HasSubstr("right asked 0 builds 1 loads 0"),
                                             HasSubstr("the tensor is int32")));
    EXPECT_THAT(alone(1, untold).text, HasSubstr("builds 0 loads 1"));
  }
}

TEST_F(GivenPrograms, ManyProcessesBuildEachOnce) {
  std::vector<std::thread> threads;
  std::vector<Outcome> outcomes(3);
  for (Outcome& o : outcomes) threads.emplace_back([&] { o = alone(4); });
  for (std::thread& t : threads) t.join();
  int builds = 0;
  for (const Outcome& o : outcomes) {
    EXPECT_THAT(o.text, HasSubstr("right"));
    builds += number_after(o, "builds");
  }
  EXPECT_EQ(builds, 4);
}

TEST_F(GivenPrograms, WithoutACacheAllAreBuilt) {
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(kernels(3, "OCLTENSOR_CACHE_DIR=/proc/nowhere/cache").text,
                HasSubstr("right asked 0 builds 3 loads 0"));
}

TEST_F(GivenPrograms, ACompilerThatCrashesEndsABuilder) {
  const std::string layer = "OPENCL_LAYERS=" POOR_DRIVER " CRASH_ON='a * 1 +' ";
  const Outcome careful = kernels(3, layer + "OCLTENSOR_CAPS=trusted_compiler=0");
  EXPECT_EQ(careful.code, 3) << careful.text;  // an error, not a signal
  EXPECT_THAT(careful.text, AllOf(HasSubstr("the kernel source is not compiled: the compiler of"),
                                  HasSubstr("/cache/building/")));
  const Outcome later = kernels(3, layer);  // which has learnt it
  EXPECT_EQ(later.code, 3) << later.text;
  EXPECT_THAT(later.text, HasSubstr("the kernel source is not compiled"));
  EXPECT_THAT(kernels(1, layer).text, HasSubstr("right"));  // the others are as ever
}

}  // namespace
