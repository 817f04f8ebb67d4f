// What needs a fresh process: missing drivers, bad settings, the program cache, fork, exit,
// threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "fresh_process.h"

namespace {

using testing::HasSubstr;
using testing::Not;

// For what OCL_ICD_VENDORS says to be all.
const std::string kNoOthers = "OCL_ICD_FILENAMES= ";

TEST(Process, NoPlatformIsAReasonNotAnAbort) {
  const Outcome o = probe("reason", kNoOthers + "OCL_ICD_VENDORS=/nonexistent/");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("devices 0"));
  EXPECT_THAT(o.text, HasSubstr("no OpenCL platform is installed"));
  const Outcome used = probe("add", kNoOthers + "OCL_ICD_VENDORS=/nonexistent/");
  EXPECT_EQ(used.code, 3) << used.text;
  EXPECT_THAT(used.text, HasSubstr("no OpenCL platform"));
}

TEST(Process, BadDriverFileIsAReason) {
  Folder f;
  std::ofstream(f.path() + "/bad.icd") << "/nonexistent/libdriver.so\n";
  const Outcome o = probe("add", kNoOthers + "OCL_ICD_VENDORS=" + f.path());
  EXPECT_EQ(o.code, 3) << o.text;
  EXPECT_THAT(o.text,
              HasSubstr("/bad.icd' names '/nonexistent/libdriver.so', which does not load"));
  EXPECT_THAT(o.text, Not(HasSubstr("is installed")));
}

// PoCL alone, so that a machine's other drivers do not count.
TEST(Process, ADriverThatTwoFilesNameIsOneDevice) {
  const fs::path file = "/etc/OpenCL/vendors/pocl.icd";
  if (!fs::exists(file)) GTEST_SKIP() << file << " is not here";
  Folder f;
  fs::copy_file(file, f.path() + "/a.icd");
  const Outcome one = probe("devices", kNoOthers + "OCL_ICD_VENDORS=" + f.path());
  EXPECT_THAT(one.text, HasSubstr("devices 1\n"));
  EXPECT_THAT(one.text, Not(HasSubstr("once more")));
  fs::copy_file(file, f.path() + "/b.icd");
  const Outcome two = probe("devices", kNoOthers + "OCL_ICD_VENDORS=" + f.path());
  EXPECT_THAT(two.text, HasSubstr("devices 1\n"));
  EXPECT_THAT(two.text, HasSubstr("once more: two *.icd files name its driver, one can go"));
  // Two devices of one driver, alike in all but their handles, are two.
  const Outcome equal =
      probe("devices", kNoOthers + "POCL_DEVICES='pthread pthread' OCL_ICD_VENDORS=" + f.path());
  EXPECT_THAT(equal.text, HasSubstr("devices 2\n"));
}

TEST(Process, UnknownDeviceChoiceNamesIt) {
  const Outcome o = probe("reason", "OCLTENSOR_DEVICES=nosuchdevice");
  EXPECT_THAT(o.text, HasSubstr("'nosuchdevice' matches no"));
}

TEST(Process, BadVariableIsAnErrorThatNamesIt) {
  for (const char* bad :
       {"OCLTENSOR_HIGH_WATERMARK_RATIO=3", "OCLTENSOR_ENABLE_FALLBACK=maybe",
        "OCLTENSOR_DEBUG_ALLOCATOR=99", "OCLTENSOR_LOG_LEVEL=loud",
        "OCLTENSOR_DISABLED_OPERATIONS=sofmax", "OCLTENSOR_DISABLED_ALGORITHMS=matmul.fast",
        "OCLTENSOR_DISABLED_PROVIDERS=abc", "OCLTENSOR_KERNEL_STYLE=row",
        "OCLTENSOR_PLUGIN_PATH=/nowhere/p.so"}) {
    const std::string name = std::string(bad).substr(0, std::string(bad).find('='));
    const Outcome o = probe("add", bad);
    EXPECT_NE(o.code, 0) << bad;
    EXPECT_LT(o.code, 128) << bad << o.text;
    EXPECT_THAT(o.text, HasSubstr(name));
    EXPECT_THAT(probe("reason", bad).text, HasSubstr(name)) << "not at start";
  }
}

TEST(ProgramCache, SecondProcessBuildsNothing) {
  Folder f;
  EXPECT_THAT(probe("add", f.cache()).text, HasSubstr("right builds 1 loads 0"));
  EXPECT_THAT(probe("add", f.cache()).text, HasSubstr("right builds 0 loads 1"));
  struct stat st {};
  ASSERT_EQ(stat((f.path() + "/cache").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
}

TEST(ProgramCache, WhatIsCompilingIsToldAtLogLevelInfo) {
  Folder f;
  const std::string info = f.cache() + " OCLTENSOR_LOG_LEVEL=info";
  EXPECT_THAT(probe("add", info).text, HasSubstr("program: compiling elementwise/"));
  EXPECT_THAT(probe("add", info).text, Not(HasSubstr("compiling"))) << "it is loaded";
}

TEST(ProgramCache, TruncatedAndCorruptEntriesAreBuiltAgain) {
  Folder f;
  (void)probe("add", f.cache());
  ASSERT_EQ(f.entries().size(), 1u);
  const fs::path entry = f.entries()[0];
  const auto size = fs::file_size(entry);
  for (const uintmax_t keep : {size / 2, uintmax_t{10}, uintmax_t{0}}) {
    fs::resize_file(entry, keep);
    EXPECT_THAT(probe("add", f.cache()).text, HasSubstr("right builds 1 loads 0")) << keep;
  }
  {
    std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file.write("damage", 6);
  }
  EXPECT_THAT(probe("add", f.cache()).text, HasSubstr("right builds 1 loads 0"));
  EXPECT_THAT(probe("add", f.cache()).text, HasSubstr("right builds 0 loads 1"));
}

TEST(ProgramCache, UnusableFolderIsNoError) {
  Folder f;
  std::ofstream(f.path() + "/file") << "x";
  EXPECT_THAT(probe("add", "OCLTENSOR_CACHE_DIR=" + f.path() + "/file").text,
              HasSubstr("right builds 1"));
  EXPECT_THAT(probe("add", "OCLTENSOR_CACHE_DIR=/proc/nowhere/cache").text,
              HasSubstr("right builds 1"));
  fs::create_directory(f.path() + "/open");
  fs::permissions(f.path() + "/open", fs::perms::all);
  const Outcome o = probe("add", "OCLTENSOR_CACHE_DIR=" + f.path() + "/open");
  EXPECT_THAT(o.text, HasSubstr("writable by others"));
  EXPECT_THAT(o.text, HasSubstr("right builds 1"));
}

TEST(ProgramCache, TheTextSaysWhichFolderAndWhy) {
  Folder f;
  const std::string unset =
      "-u OCLTENSOR_CACHE_DIR -u XDG_CACHE_HOME POCL_CACHE_DIR=" + f.path() + " ";
  const Outcome nowhere = probe("add", "-u HOME " + unset);
  EXPECT_THAT(nowhere.text,
              HasSubstr("anew: none of OCLTENSOR_CACHE_DIR, XDG_CACHE_HOME and HOME"));
  const Outcome read_only = probe("add", unset + "HOME=/sys");
  EXPECT_THAT(read_only.text, HasSubstr("'/sys/.cache' cannot be made: "));
  EXPECT_THAT(read_only.text, Not(HasSubstr("No such file")));
}

TEST(ProgramCache, EightProcessesAtOnce) {
  Folder f;
  std::vector<std::thread> threads;
  std::vector<Outcome> outcomes(8);
  for (auto& o : outcomes) threads.emplace_back([&] { o = probe("add", f.cache()); });
  for (auto& t : threads) t.join();
  EXPECT_EQ(std::ranges::count_if(outcomes,
                                  [](const Outcome& o) {
                                    return o.text.find("right builds 1 loads 0") !=
                                           std::string::npos;
                                  }),
            1)
      << "the others wait for it and load";
  for (const auto& o : outcomes) EXPECT_THAT(o.text, HasSubstr("right"));
  EXPECT_EQ(f.entries().size(), 1u) << "a temporary file was left behind";
  EXPECT_THAT(probe("add", f.cache()).text, HasSubstr("right builds 0 loads 1"));
}

TEST(Process, ForkedChildGetsAClearError) {
  const Outcome o = probe("fork");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("child: status -7"));
  EXPECT_THAT(o.text, HasSubstr("forked"));
  EXPECT_THAT(o.text, HasSubstr("child exit 0 parent right"));
}

TEST(Process, ExitsWithLiveObjectsAndWorkUnderWay) {
  const Outcome o = probe("live");
  EXPECT_EQ(o.code, 0) << o.text;
}

// With empty caches of our own and of the driver, so that it has something to compile.
TEST(Process, ExitsAfterCompiling) {
  const Folder f;
  fs::create_directory(f.path() + "/driver");
  const Outcome o = probe("live", f.cache() + " POCL_CACHE_DIR=" + f.path() + "/driver");
  EXPECT_EQ(o.code, 0) << o.text;
}

TEST(Process, EightThreadsWithAStreamEach) {
  const Outcome o = probe("threads");
  EXPECT_EQ(o.code, 0) << o.text;
}

}  // namespace
