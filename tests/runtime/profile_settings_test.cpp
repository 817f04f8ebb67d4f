// Every bit of OCLTENSOR_LOG_PROFILE_INFO and OCLTENSOR_TRACE_SIGNPOSTS has an effect, from the
// first use of the plugin to the end of the process, however that comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "fresh_process.h"

namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsSupersetOf;
using testing::Not;

constexpr const char* kFallback = "OCLTENSOR_ENABLE_FALLBACK=1 ";

// ---- lines and tables

std::string log_of(const std::string& mask) {
  const Outcome o = probe("profile", kFallback + ("OCLTENSOR_LOG_PROFILE_INFO=" + mask));
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("fell back: "));
  return o.text;
}

constexpr const char* kOperator =
    "ocltensor: operator mm.out\\(float32\\[10, 100\\], float32\\[100, 10\\]\\) -> "
    "float32\\[10, 10\\]";
constexpr const char* kCopy = "ocltensor: copy to host \\(400 bytes, ocl:0";
constexpr const char* kFallbackLine = "ocltensor: fallback [a-z]";
constexpr const char* kTables[] = {
    "ocltensor: operators: ", "ocltensor: copies: ", "ocltensor: CPU fallbacks: ",
    "ocltensor: (program builds|no program builds)"};

TEST(ProfileLog, LinesAsTheyRun) {
  const struct {
    const char* mask;
    bool lines[3];
  } kCases[] = {{"0", {false, false, false}},
                {"1", {true, false, false}},
                {"copies", {false, true, false}},
                {"0x4", {false, false, true}},
                {"operators,copies,fallbacks", {true, true, true}}};
  for (const auto& c : kCases) {
    const std::string text = log_of(c.mask);
    const char* const patterns[] = {kOperator, kCopy, kFallbackLine};
    for (int i = 0; i < 3; ++i) {
      if (c.lines[i])
        EXPECT_THAT(text, ContainsRegex(patterns[i])) << c.mask;
      else
        EXPECT_THAT(text, Not(ContainsRegex(patterns[i]))) << c.mask;
    }
    for (const char* table : kTables) EXPECT_THAT(text, Not(ContainsRegex(table))) << c.mask;
    EXPECT_THAT(text, Not(HasSubstr("(buffer"))) << c.mask;
    EXPECT_THAT(text, Not(HasSubstr(": device "))) << c.mask;
  }
}

TEST(ProfileLog, TimesAndBuffers) {
  const std::string device = log_of("operators,copies,device_time");
  EXPECT_THAT(device, ContainsRegex(std::string(kOperator) + ": device [0-9]+\\.[0-9]+ ms\n"));
  EXPECT_THAT(device, ContainsRegex(std::string(kCopy) + "\\): device [0-9.]+ ms, [0-9.]+ GB/s\n"));
  const std::string kernel = log_of("operators,kernel_time");
  EXPECT_THAT(kernel, ContainsRegex(std::string(kOperator) + "; [a-z_0-9]+ [0-9]+\\.[0-9]+ ms"));
  EXPECT_THAT(log_of("fallbacks,device_time"),
              ContainsRegex("fallback [a-z._A-Z]+: host [0-9.]+ ms, [1-9][0-9]* bytes copied"));
  const std::string buffers = log_of("operators,copies,buffer_ids");
  EXPECT_THAT(buffers, ContainsRegex("mm.out\\(float32\\[10, 100\\]\\(buffer 0x[0-9a-f]+\\+0\\)"));
  EXPECT_THAT(buffers, ContainsRegex("copy to host \\(400 bytes, ocl:0, buffer 0x"));
}

TEST(ProfileLog, TablesAtTheEnd) {
  const struct {
    const char* mask;
    bool tables[4];
  } kCases[] = {{"all_stats", {true, true, true, true}},
                {"16", {true, false, false, false}},
                {"copy_stats", {false, true, false, false}},
                {"64", {false, false, true, false}},
                {"build_stats", {false, false, false, true}}};
  for (const auto& c : kCases) {
    const std::string text = log_of(c.mask);
    for (int i = 0; i < 4; ++i) {
      if (c.tables[i])
        EXPECT_THAT(text, ContainsRegex(kTables[i])) << c.mask;
      else
        EXPECT_THAT(text, Not(ContainsRegex(kTables[i]))) << c.mask;
    }
    EXPECT_THAT(text, Not(HasSubstr("ocltensor: kernels"))) << c.mask;
    EXPECT_THAT(text, Not(ContainsRegex(kOperator))) << c.mask;
  }
  EXPECT_THAT(log_of("operator_stats,kernel_time"), HasSubstr("ocltensor: kernels: "));
  EXPECT_THAT(log_of("operator_stats"),
              ContainsRegex("\n +1 +[0-9.]+ +[0-9.]+ +[0-9.]+  mm.out\n"));
}

TEST(ProfileLog, AnEmptyTableSaysSo) {
  const Outcome o = probe("reason", "OCLTENSOR_LOG_PROFILE_INFO=all_stats");
  for (const char* what : {"operators", "CPU fallbacks", "copies", "program builds"})
    EXPECT_THAT(o.text, HasSubstr("no " + std::string(what) + " were recorded"));
}

// ---- traces

class Signposts : public ::testing::Test {
 protected:
  // What the process did, with its trace in this test's folder.
  Outcome run(const std::string& mask, const std::string& mode = "profile") {
    return probe(mode, kFallback + ("OCLTENSOR_TRACE_SIGNPOSTS=" + mask), folder_.path());
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> list;
    for (const auto& e : fs::directory_iterator(folder_.path())) list.push_back(e.path());
    std::ranges::sort(list);
    return list;
  }
  json only_trace() {
    const auto list = files();
    EXPECT_EQ(list.size(), 1u);
    if (list.empty()) return json::array();
    std::ifstream file(list[0]);
    const json all = json::parse(file);
    fs::remove(list[0]);
    return all["traceEvents"];
  }
  json trace_of(const std::string& mask) {
    const Outcome o = run(mask);
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_THAT(o.text, ContainsRegex("ocltensor: wrote a trace of [1-9][0-9]* records to " +
                                      folder_.path() + "/ocltensor_trace_[0-9]+_1.json\n"));
    return only_trace();
  }
  static std::set<std::string> values(const json& events, const char* member) {
    std::set<std::string> found;
    for (const json& e : events)
      if (e.contains(member)) found.insert(e[member].get<std::string>());
    return found;
  }
  Folder folder_;
};

TEST_F(Signposts, Modes) {
  const struct {
    const char* mask;
    bool slices, points;
  } kCases[] = {
      {"all_events", false, true},       {"2", true, false}, {"intervals,operators", true, false},
      {"events,operators", false, true}, {"3", true, true},  {"operators", true, false},
      {"intervals,events", true, true}};
  for (const auto& c : kCases) {
    const auto phases = values(trace_of(c.mask), "ph");
    EXPECT_EQ(phases.contains("X"), c.slices) << c.mask;
    EXPECT_EQ(phases.contains("i"), c.points) << c.mask;
  }
}

TEST_F(Signposts, Kinds) {
  for (const char* all : {"all_intervals", "all_intervals,copies", "intervals"})
    EXPECT_THAT(values(trace_of(all), "cat"),
                IsSupersetOf({"operator", "kernel", "copy", "fallback"}))
        << all;
  const auto operators = values(trace_of("65536"), "cat");
  EXPECT_THAT(operators, IsSupersetOf({"operator", "kernel"}));
  EXPECT_FALSE(operators.contains("fallback"));
  EXPECT_FALSE(values(trace_of("operators"), "name").contains("copy to host"));
  EXPECT_THAT(values(trace_of("copies"), "cat"), ElementsAre("copy", "flow"));
  EXPECT_THAT(values(trace_of("fallbacks"), "cat"), ElementsAre("fallback"));
}

TEST_F(Signposts, Schedule) {
  std::map<int, std::vector<double>> pairs;
  const json events = trace_of("intervals,schedule");
  size_t works = 0;
  for (const json& e : events) {
    if (e["ph"] == "b" || e["ph"] == "e") pairs[e["id"]].push_back(e["ts"]);
    works += e["ph"] == "X" && e["pid"] > 1;
  }
  EXPECT_EQ(pairs.size(), works);
  for (const auto& [id, times] : pairs) EXPECT_EQ(times.size(), 2u);
  EXPECT_FALSE(values(trace_of("intervals"), "ph").contains("b"));
}

// With the bit an operator's slice lasts until its kernels are done.
TEST_F(Signposts, WaitUntilCompleted) {
  const json events = trace_of("intervals,wait");
  std::map<uint64_t, double> ends;
  for (const json& e : events)
    if (e["ph"] == "X" && e["cat"] == "operator")
      ends[e["args"]["call"]] = e["ts"].get<double>() + e["dur"].get<double>();
  size_t kernels = 0;
  for (const json& e : events) {
    if (e["ph"] != "X" || e["cat"] != "kernel") continue;
    ++kernels;
    EXPECT_LE(e["ts"].get<double>() + e["dur"].get<double>(), ends.at(e["args"]["call"]) + 300);
  }
  EXPECT_GT(kernels, 2u);
}

// ---- the end of the process

TEST_F(Signposts, CtrlCWritesOnceAndStillEndsTheProcess) {
  const Outcome o = run("all_intervals", "interrupt");
  EXPECT_EQ(o.code, 128 + SIGINT) << o.text;
  EXPECT_EQ(o.text.find("wrote a trace"), o.text.rfind("wrote a trace")) << o.text;
  EXPECT_THAT(values(only_trace(), "name"), IsSupersetOf({"mm.out"}));
}

TEST_F(Signposts, AHandlerOfTheProgramStaysInCharge) {
  const Outcome o = run("all_intervals", "handler");
  EXPECT_EQ(o.code, 7) << o.text;
  EXPECT_THAT(o.text, HasSubstr("wrote a trace"));
  EXPECT_EQ(o.text.find("wrote a trace"), o.text.rfind("wrote a trace")) << o.text;
  EXPECT_FALSE(only_trace().empty());
}

TEST_F(Signposts, AForkedChildWritesNothing) {
  const Outcome o = run("all_intervals", "fork");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("forked after its parent had used OpenCL"));
  EXPECT_THAT(o.text, HasSubstr("parent right"));
  EXPECT_FALSE(only_trace().empty());
}

TEST_F(Signposts, ATraceThatNobodyStoppedIsWritten) {
  const Outcome o = run("0", "left left.json");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr(folder_.path() + "/left.json"));
  EXPECT_THAT(values(only_trace(), "name"), IsSupersetOf({"mm.out"}));
  EXPECT_THAT(run("0", "left /dev/full").text,
              HasSubstr("the trace file '/dev/full' could not be written to its end"));
}

TEST_F(Signposts, AFolderThatIsGoneIsAnErrorLineAndNoMore) {
  const std::string gone = folder_.path() + "/gone";
  fs::create_directory(gone);
  const Outcome o = probe("profile", "-C " + gone + " sh -c 'rmdir " + gone +
                                         "; OCLTENSOR_TRACE_SIGNPOSTS=2 exec \"$@\"' sh");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("this process is not traced: "));
  EXPECT_THAT(o.text, HasSubstr("right"));
}

TEST_F(Signposts, SettingsAtRunTime) {
  const Outcome o = run("0", "settings");
  EXPECT_EQ(o.code, 0) << o.text;
  EXPECT_THAT(o.text, HasSubstr("second trace: profiler start: the profiler is on already, because "
                                "OCLTENSOR_TRACE_SIGNPOSTS is set"));
  EXPECT_THAT(o.text, HasSubstr("signposts 0\n"));
  EXPECT_THAT(o.text, ContainsRegex(kOperator));
  EXPECT_THAT(o.text, Not(HasSubstr("operator mul")));
  const auto list = files();
  ASSERT_EQ(list.size(), 2u);
  const auto categories = [&](const fs::path& path) {
    std::ifstream file(path);
    return values(json::parse(file)["traceEvents"], "cat");
  };
  EXPECT_TRUE(categories(list[0]).contains("kernel"));
  EXPECT_FALSE(categories(list[1]).contains("kernel"));
  EXPECT_TRUE(categories(list[1]).contains("copy"));
}

// ---- the allocator's log

TEST(AllocatorLog, EveryBit) {
  const auto run = [](const std::string& mask) {
    return probe("profile", "OCLTENSOR_LOG_LEVEL=info OCLTENSOR_DEBUG_ALLOCATOR=" + mask).text;
  };
  const struct {
    const char* mask;
    const char* line;
  } kLines[] = {{"profiling", "new segment of "},
                {"allocations", "allocated [0-9.]+ .*at 0x"},
                {"recycles", "recycled [0-9.]+ .*at 0x"},
                {"releases", "released the segment of "}};
  for (const auto& asked : kLines) {
    const std::string text = run(asked.mask);
    for (const auto& other : kLines) {
      if (&other == &asked)
        EXPECT_THAT(text, ContainsRegex(other.line)) << asked.mask;
      else
        EXPECT_THAT(text, Not(ContainsRegex(other.line))) << asked.mask;
    }
  }
  // All blocks here are small; isolated, none is left to be taken from its segment by the next.
  EXPECT_THAT(run("allocations,recycles,large_only"), Not(HasSubstr("at 0x")));
  const auto segments = [&](const std::string& mask) {
    const std::string text = run(mask);
    size_t count = 0;
    for (size_t at = 0; (at = text.find("new segment of ", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_GT(segments("profiling,isolated"), segments("profiling"));
}

}  // namespace
