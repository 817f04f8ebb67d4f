// The profiler through the C++ API.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ocltensor/ocltensor.h"

namespace ot = ocltensor;
namespace {

using nlohmann::json;

class Profiler : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() / ("trace_" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(path_); }
  json events() const {
    std::ifstream file(path_);
    return json::parse(file)["traceEvents"];
  }
  std::filesystem::path path_;
};

std::vector<float> compute() {
  const ot::Tensor x = ot::arange(0, 1000, 1, {ot::DType::Float32, "ocl"}).view({10, 100});
  return ot::_softmax(ot::mm(x, x.t()), 1, false).to_vector<float>();
}

TEST_F(Profiler, TraceHasOperatorsKernelsAndRanges) {
  const auto expected = compute();
  ot::profiler::start("interval", false, path_.string());
  EXPECT_TRUE(ot::profiler::is_enabled());
  {
    const ot::profiler::Range range("the whole");
    EXPECT_EQ(compute(), expected);
  }
  ot::profiler::stop();
  EXPECT_FALSE(ot::profiler::is_enabled());
  std::map<std::string, int> categories;
  std::vector<std::string> names;
  for (const json& e : events())
    if (e["ph"] == "X") {
      ++categories[e["cat"]];
      names.push_back(e["name"]);
    }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"mm.out", "_softmax.out", "the whole"}));
  EXPECT_GE(categories["kernel"], 2);
  EXPECT_EQ(categories["copy"], 2);  // the call and the command
  EXPECT_EQ(categories["range"], 1);
  EXPECT_EQ(compute(), expected);
}

TEST_F(Profiler, ErrorsSayWhatIsWrong) {
  const auto text_of = [](auto&& call) {
    try {
      call();
    } catch (const ot::Error& e) {
      EXPECT_EQ(e.status(), TB_E_INVALID);
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(text_of([] { ot::profiler::stop(); }), ::testing::HasSubstr("the profiler is off"));
  EXPECT_THAT(text_of([] { ot::profiler::start("both"); }),
              ::testing::HasSubstr("invalid trace mode 'both'"));
  EXPECT_THAT(text_of([] { ot::profiler::start("event", false, "/nowhere/x"); }),
              ::testing::HasSubstr("/nowhere/x"));
  ot::profiler::start("event", true, path_.string());
  EXPECT_THAT(text_of([&] { ot::profiler::start("event", true, path_.string()); }),
              ::testing::HasSubstr("on already"));
  ot::profiler::stop();
}

TEST_F(Profiler, FullAtItsLimitItDropsAndCounts) {
  ot::set_setting("OCLTENSOR_TRACE_LIMIT", "3");
  ot::profiler::start("interval", false, path_.string());
  const auto expected = compute();
  ot::profiler::stop();
  ot::set_setting("OCLTENSOR_TRACE_LIMIT", "2097152");
  std::ifstream file(path_);
  const json all = json::parse(file);
  std::map<std::string, int> kept;
  for (const json& e : all["traceEvents"])
    if (e["ph"] == "X") ++kept[e["pid"] == 1 ? "calls" : "commands"];
  EXPECT_EQ(kept["calls"], 3);
  EXPECT_EQ(kept["commands"], 3);
  EXPECT_GT(all["otherData"]["lost"], 0);
  EXPECT_EQ(compute(), expected);
}

TEST_F(Profiler, StatisticsAddUp) {
  (void)compute();
  ot::profiler::reset_statistics();
  EXPECT_TRUE(ot::profiler::statistics().empty());
  ot::profiler::start("interval", false, path_.string());
  for (int i = 0; i < 5; ++i) (void)compute();
  const auto while_on = ot::profiler::statistics();
  ot::profiler::stop();
  double kernels = 0, operators = 0;
  for (const ot::profiler::Statistic& s : ot::profiler::statistics()) {
    if (s.kind == ot::profiler::StatisticKind::Kernel) kernels += s.total_ms;
    if (s.kind == ot::profiler::StatisticKind::Operator) {
      operators += s.total_ms;
      if (s.name == "mm.out") {
        EXPECT_EQ(s.count, 5u);
        EXPECT_GE(s.max_ms, s.mean_ms());
        EXPECT_GT(s.mean_ms(), 0);
        EXPECT_GT(s.host_ms, 0);
      }
    }
    if (s.kind == ot::profiler::StatisticKind::Copy) {
      EXPECT_EQ(s.name, "copy to host");
      EXPECT_EQ(s.count, 5u);
      EXPECT_EQ(s.bytes, 5u * 400);
    }
  }
  EXPECT_GT(kernels, 0);
  EXPECT_NEAR(operators, kernels, 1e-3 * kernels);  // no operator here copies
  EXPECT_EQ(while_on.size(), ot::profiler::statistics().size());
  (void)compute();
  EXPECT_EQ(while_on.size(), ot::profiler::statistics().size());
}

}  // namespace
