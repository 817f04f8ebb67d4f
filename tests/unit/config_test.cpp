// Settings: every variable with a bad value, sources, limits, run-time changes.
#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <thread>

#include "base/caps.h"
#include "ocltensor/error.h"

namespace ocltensor {
namespace {

using config::Knob;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Config : public ::testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override { clear(); }
  static void clear() {
    for (const config::KnobState& s : config::list()) unsetenv(s.name);
    config::reset();
  }
  static void environment(const char* name, const char* value) {
    setenv(name, value, 1);
    config::reset();
  }
};

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), TB_E_INVALID);
    return e.what();
  }
  return "no error";
}

// One bad value per variable; a variable without an entry fails the test below.
struct Bad {
  const char* name;
  const char* value;
};
constexpr Bad kBad[] = {{"OCLTENSOR_ENABLE_FALLBACK", "yes"},
                        {"OCLTENSOR_DEBUG_ALLOCATOR", "64"},
                        {"OCLTENSOR_LOG_PROFILE_INFO", "2048"},
                        {"OCLTENSOR_TRACE_SIGNPOSTS", "524288"},
                        {"OCLTENSOR_TRACE_LIMIT", "0"},
                        {"OCLTENSOR_LOG_PROFILE_INFO", "operator_stats,speed"},
                        {"OCLTENSOR_LOG_PROFILE_INFO", "operators,"},
                        {"OCLTENSOR_TRACE_SIGNPOSTS", "operators|copies"},
                        {"OCLTENSOR_TRACE_SIGNPOSTS", "64"},
                        {"OCLTENSOR_DEBUG_ALLOCATOR", "operators"},
                        {"OCLTENSOR_HIGH_WATERMARK_RATIO", "2.1"},
                        {"OCLTENSOR_LOW_WATERMARK_RATIO", "-0.1"},
                        {"OCLTENSOR_FAST_MATH", "2"},
                        {"OCLTENSOR_PREFER_OPENCL", "-1"},
                        {"OCLTENSOR_CACHE_DIR", "cache"},
                        {"OCLTENSOR_KERNEL_DIR", "./kernels"},
                        {"OCLTENSOR_CHECK_VALUES", "on"},
                        {"OCLTENSOR_COMPILE", "2"},
                        {"OCLTENSOR_COMPILE_PLAN", "2"},
                        {"OCLTENSOR_DISTRIBUTED_ENGINE", "ucc"},
                        {"OCLTENSOR_SHARED_MEMORY", "2"},
                        {"OCLTENSOR_CPU_DEVICES", "-1"},
                        {"OCLTENSOR_LOCAL_RANKS", "0"},
                        {"OCLTENSOR_FLOAT64", "no"},
                        {"OCLTENSOR_CAPS", "fp8=0"},
                        {"OCLTENSOR_CAPS", "fp16"},
                        {"OCLTENSOR_CAPS", "fp16=2"},
                        {"OCLTENSOR_CAPS", "work_group=1K"},
                        {"OCLTENSOR_CAPS", "work_group=32"},
                        {"OCLTENSOR_CAPS", "small-gpu,"},
                        {"OCLTENSOR_CAPS", "local_memory=-1"},
                        {"OCLTENSOR_CAPS", "local_memory=99999999999G"},
                        {"OCLTENSOR_KERNEL_STYLE", "row"},
                        {"OCLTENSOR_LAUNCH_THREAD", "2"},
                        {"OCLTENSOR_NVIDIA_MMA", "emulated70"},
                        {"OCLTENSOR_MATRIX_UNITS", "gfx1100"},
                        {"OCLTENSOR_AUTOLOAD", "yes"},
                        {"OCLTENSOR_PLUGIN_PATH", "/a:b"},
                        {"OCLTENSOR_LOG_LEVEL", "loud"},
                        {"OCLTENSOR_CAPTURE_ENABLED", "1 "},
                        {"OCLTENSOR_BUILD_AHEAD", "auto"},
                        {"OCLTENSOR_TUNED_KERNELS", "on"},
                        {"OCLTENSOR_DETERMINISTIC", "2"},
                        {"OCLTENSOR_BENCHMARK", "true"},
                        {"OCLTENSOR_BENCHMARK_LIMIT", "1001"},
                        {"OCLTENSOR_KEEP_MEASUREMENTS", "-1"},
                        {"OCLTENSOR_TUNE", "fast"},
                        {"OCLTENSOR_TUNED_FILES", "/a.tsv:b.tsv"},
                        {"OCLTENSOR_IMMEDIATE", "-1"},
                        {"OCLTENSOR_VERBOSE", "3"},
                        {"OCLTENSOR_ALLOW_TF32", "high"},
                        {"OCLTENSOR_ALLOW_INT8_ACTIVATIONS", "yes"},
                        {"OCLTENSOR_FP16_REDUCTION", "4"},
                        {"OCLTENSOR_BF16_REDUCTION", "1.5"},
                        {"OCLTENSOR_HIGH_WATERMARK_RATIO", "nan"},
                        {"OCLTENSOR_HIGH_WATERMARK_RATIO", "1.7x"}};

TEST(Caps, ProfilesOfDevicesAreFoundByName) {
  EXPECT_EQ(profile_of("gfx906:sramecc+:xnack-"), "gfx906, AMD Vega 20 (Radeon VII, MI50)");
  EXPECT_EQ(profile_of("Intel(R) UHD Graphics 630"), "skl, Intel Gen9 (HD 530 to UHD 630)");
  EXPECT_EQ(profile_of("NVIDIA GeForce GTX 1080 Ti"), "sm_61, NVIDIA Pascal (GTX 1050 to 1080 Ti)");
  EXPECT_EQ(profile_of("NVIDIA H200"), "");
  EXPECT_EQ(profile_of(""), "");
  for (const char* text : {"gfx906", "skl", "adreno,local_memory=16K", "small-gpu"})
    EXPECT_TRUE(parse_caps(text).has_value()) << text;
}

TEST_F(Config, EveryBadValueIsRefusedWithNameValueAndRange) {
  for (const config::KnobState& knob : config::list()) {
    bool tested = knob.kind == config::Kind::Text;  // accepts anything
    for (const Bad& bad : kBad) {
      if (std::string(bad.name) != knob.name) continue;
      tested = true;
      clear();
      environment(bad.name, bad.value);
      for (const std::string& text : {error_of([] { config::validate(); }),
                                      error_of([&] { config::set(bad.name, bad.value); })}) {
        EXPECT_THAT(text, HasSubstr(bad.name));
        EXPECT_THAT(text, HasSubstr(bad.value));
        EXPECT_THAT(text, HasSubstr(knob.accepted));
      }
    }
    EXPECT_TRUE(tested) << knob.name << " has no bad value in this test";
  }
}

TEST_F(Config, DefaultsAreValidAndListed) {
  config::validate();
  EXPECT_EQ(config::list().size(), 48u);
  for (const config::KnobState& s : config::list()) {
    EXPECT_EQ(s.source, config::Source::Default) << s.name;
    EXPECT_EQ(s.value, s.default_value);
  }
  EXPECT_FALSE(config::get_bool(Knob::EnableFallback));
  EXPECT_EQ(config::get_double(Knob::HighWatermarkRatio), 1.7);
  EXPECT_EQ(config::get_int(Knob::LogLevel), TB_LOG_WARNING);
}

TEST_F(Config, ApiWinsOverEnvironmentAndABadOneChangesNothing) {
  environment("OCLTENSOR_FAST_MATH", "1");
  EXPECT_TRUE(config::get_bool(Knob::FastMath));
  const uint64_t before = config::generation();
  config::set("OCLTENSOR_FAST_MATH", "0");
  EXPECT_GT(config::generation(), before);
  EXPECT_FALSE(config::get_bool(Knob::FastMath));
  EXPECT_THROW(config::set("OCLTENSOR_FAST_MATH", "maybe"), Error);
  EXPECT_FALSE(config::get_bool(Knob::FastMath));
  for (const config::KnobState& s : config::list())
    if (s.name == std::string("OCLTENSOR_FAST_MATH")) {
      EXPECT_EQ(s.source, config::Source::Api);
      EXPECT_EQ(s.value, "0");
    }
  EXPECT_THROW(config::set("OCLTENSOR_NO_SUCH_THING", "0"), Error);
}

TEST_F(Config, EmptyMeansUnsetAndMasksTakeAnyBase) {
  environment("OCLTENSOR_DEBUG_ALLOCATOR", "");
  EXPECT_EQ(config::get_int(Knob::DebugAllocator), 0);
  environment("OCLTENSOR_DEBUG_ALLOCATOR", "0x1f");
  EXPECT_EQ(config::get_int(Knob::DebugAllocator), 31);
}

TEST_F(Config, MasksTakeNamesAndAnErrorListsThem) {
  config::set("OCLTENSOR_LOG_PROFILE_INFO", "operator_stats,copy_stats");
  EXPECT_EQ(config::get_int(Knob::LogProfileInfo), 48);
  environment("OCLTENSOR_TRACE_SIGNPOSTS", "wait,events,copies");
  EXPECT_EQ(config::get_int(Knob::TraceSignposts), 4 + 32 + 131072);
  environment("OCLTENSOR_DEBUG_ALLOCATOR", "isolated");
  EXPECT_EQ(config::get_int(Knob::DebugAllocator), 32);
  EXPECT_THAT(error_of([] { config::set("OCLTENSOR_DEBUG_ALLOCATOR", "large"); }),
              HasSubstr("names joined by commas: profiling, allocations, recycles, releases, "
                        "large_only, isolated"));
}

TEST_F(Config, EveryBitOfAMaskHasAName) {
  const std::vector<config::KnobState> knobs = config::list();
  for (int i = 0; i < config::kKnobCount; ++i) {
    if (knobs[i].kind != config::Kind::Mask) continue;
    const auto knob = static_cast<Knob>(i);
    const std::string text = config::accepted(knob);
    int64_t all = 0;
    for (size_t at = text.find(": ") + 2; at < text.size();) {
      const size_t comma = std::min(text.find(", ", at), text.size());
      config::set(knob, text.substr(at, comma - at));
      EXPECT_EQ(all & config::get_int(knob), 0) << text;
      all |= config::get_int(knob);
      at = comma + 2;
    }
    EXPECT_NO_THROW(config::set(knob, std::to_string(all))) << text;
    EXPECT_THROW(config::set(knob, std::to_string(all + 1)), Error) << text;
  }
}

TEST_F(Config, LowWatermarkIsAutomaticAndClampedToTheHighOne) {
  EXPECT_EQ(config::low_watermark_ratio(true), 1.4);
  EXPECT_EQ(config::low_watermark_ratio(false), 1.0);
  config::set(Knob::HighWatermarkRatio, "0.5");
  EXPECT_EQ(config::low_watermark_ratio(true), 0.5);
  config::set(Knob::HighWatermarkRatio, "0");  // no limit: nothing to clamp to
  EXPECT_EQ(config::low_watermark_ratio(true), 1.4);
  config::set(Knob::LowWatermarkRatio, "1.25");
  EXPECT_EQ(config::low_watermark_ratio(true), 1.25);
}

TEST_F(Config, MisspeltVariablesAreFound) {
  const char* const set[] = {"OCLTENSOR_ENABLE_FALBACK", "OCLTENSOR_DEVICE",
                             "OCLTENSOR_OF_A_PLUGIN", "OCLTENSOR_DEVICES", "TENSOR_DEVICE"};
  for (const char* name : set) setenv(name, "1", 1);
  auto found = config::misspelt_variables();
  for (const char* name : set) unsetenv(name);
  std::ranges::sort(found);
  EXPECT_THAT(found,
              ElementsAre(std::pair("OCLTENSOR_DEVICE", "OCLTENSOR_DEVICES"),
                          std::pair("OCLTENSOR_ENABLE_FALBACK", "OCLTENSOR_ENABLE_FALLBACK")));
  EXPECT_THAT(error_of([] { config::set("OCLTENSOR_DEVICE", "1"); }),
              HasSubstr("'OCLTENSOR_DEVICE'; did you mean OCLTENSOR_DEVICES"));
}

TEST_F(Config, ReadersAndAWriterDoNotRace) {
  std::thread writer([] {
    for (int i = 0; i < 500; ++i) config::set(Knob::FastMath, i % 2 ? "1" : "0");
  });
  int seen = 0;
  for (int i = 0; i < 5000; ++i) seen += config::get_bool(Knob::FastMath);
  writer.join();
  EXPECT_TRUE(config::get_bool(Knob::FastMath));
  EXPECT_LE(seen, 5000);
}

}  // namespace
}  // namespace ocltensor
