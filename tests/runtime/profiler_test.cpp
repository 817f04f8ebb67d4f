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
  const ot::Tensor x = ot::arange(0, 1000, 1, ot::DType::Float32, "ocl").view({10, 100});
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
  EXPECT_EQ(categories["copy"], 1);
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

}  // namespace
