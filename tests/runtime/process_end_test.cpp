// Calls where a process or a thread ends: each is right, or says that the process is ending.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <string>
#include <string_view>

#include "fresh_process.h"

namespace {

using testing::HasSubstr;
using testing::Not;

// Those of end_probe.cpp.
constexpr const char* kPlaces[] = {"exit handler early",
                                   "exit handler late",
                                   "static early",
                                   "static late",
                                   "unloading",
                                   "thread_local early",
                                   "thread_local late",
                                   "worker thread_local early",
                                   "worker thread_local late",
                                   "thread after main, early",
                                   "thread after main, late",
                                   "exit in a thread, early",
                                   "exit in a thread, late",
                                   "quick exit",
                                   "main thread ends first"};

Outcome end(const std::string& place, const std::string& rest, const std::string& settings) {
  return outcome_of("timeout 300 " END_PROBE " '" + place + "' " + rest, settings);
}

class ProcessEnd : public testing::TestWithParam<const char*> {};

TEST_P(ProcessEnd, CpuComputes) {
  for (const char* done : {"none", "all"}) {
    const Outcome o = end(GetParam(), std::string("cpu ") + done + " all", "");
    EXPECT_EQ(o.code, 0) << done << "\n" << o.text;
    EXPECT_THAT(o.text, HasSubstr("\nend\n"));
    EXPECT_THAT(o.text, Not(HasSubstr("status")));
  }
}

// Of other drivers than PoCL no program can be had once their exit handlers ran: what had not been
// called before is an error in places that come later.
bool loads_at_exit() {
  const tb_device_properties device = ocltensor::device_properties(ocltensor::Device("ocl"));
  return std::string_view(device.platform) == "Portable Computing Language";
}
bool is_first_call_refused(std::string_view place, std::string_view done) {
  const bool is_local = place.find("thread_local") != std::string_view::npos;
  const bool is_late = place == "unloading" || (place.ends_with("early") && !is_local);
  return is_late && done == "none" && !loads_at_exit();
}

// Only a user's kernel may need a compiler that is gone.
TEST_P(ProcessEnd, DeviceComputes) {
  for (const char* thread : {"0", "1"})
    for (const char* done : {"none", "all"}) {
      const Outcome o = end(GetParam(), std::string("ocl ") + done + " all",
                            std::string("OCLTENSOR_LAUNCH_THREAD=") + thread);
      EXPECT_EQ(o.code, 0) << done << "\n" << o.text;
      EXPECT_THAT(o.text, HasSubstr("\nend\n"));
      std::string text = o.text;
      if (is_first_call_refused(GetParam(), done))
        continue;  // the probe fails at any but TB_E_STATE
      if (const size_t at = text.find("\nkernel: status -"); at != std::string::npos)
        text.erase(at, sizeof "\nkernel: status" - 1);
      EXPECT_THAT(text, Not(HasSubstr(": status"))) << o.text;
    }
}

INSTANTIATE_TEST_SUITE_P(Places, ProcessEnd, testing::ValuesIn(kPlaces), [](const auto& row) {
  std::string name(row.param);
  std::erase_if(name, [](char c) { return c == ',' || c == ' '; });
  return name;
});

// PoCL compiles kernels at their launch, and clang is gone where main() has used it.
TEST(ProcessEnd, NothingOnDisk) {
  if (!loads_at_exit()) GTEST_SKIP() << "SKIPPED: the driver loads no programs at the end";
  for (const char* place : {"exit handler early", "exit handler late", "thread after main, early"})
    for (const char* call : {"multiply", "softmax"}) {
      const Folder f;
      fs::create_directory(f.path() + "/driver");
      const Outcome o = end(place, std::string("ocl none ") + call,
                            "-u POCL_WORK_GROUP_SPECIALIZATION OCLTENSOR_CACHE_DIR=" + f.path() +
                                "/cache POCL_CACHE_DIR=" + f.path() + "/driver");
      EXPECT_EQ(o.code, 0) << place << "\n" << o.text;
      EXPECT_THAT(o.text, HasSubstr("right\nend\n"));  // PoCL may tell of warnings before
    }
}

TEST(ProcessEnd, WithoutACacheFolderWhatIsNotCompiledIsAnError) {
  const Folder f;
  fs::create_directory(f.path() + "/driver");
  const Outcome o = end("exit handler early", "ocl none multiply",
                        "OCLTENSOR_CACHE_DIR=/proc/nowhere POCL_CACHE_DIR=" + f.path() + "/driver");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("multiply: status -7: "));
  EXPECT_THAT(o.text, HasSubstr("cannot be compiled: the process is ending"));
}

}  // namespace
