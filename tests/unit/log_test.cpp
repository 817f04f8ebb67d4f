// Logging: levels, the sink, and a bad level.
#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/config.h"

namespace ocltensor {
namespace {

void collect(void* lines, int32_t level, const char* component, const char* message) {
  static_cast<std::vector<std::string>*>(lines)->push_back(
      fmt::format("{} {}: {}", level, component, message));
}

TEST(Log, LevelFiltersAndFollowsTheSetting) {
  std::vector<std::string> lines;
  logging::set_sink(collect, &lines);
  config::set(config::Knob::LogLevel, "info");
  logging::debug("pool", "hidden {}", 1);
  logging::info("pool", "block of {} bytes", 512);
  config::set(config::Knob::LogLevel, "off");
  logging::error("pool", "hidden too");
  config::set(config::Knob::LogLevel, "trace");
  logging::debug("loader", "seen");
  logging::set_sink(nullptr, nullptr);
  config::reset();
  EXPECT_EQ(lines, (std::vector<std::string>{"2 pool: block of 512 bytes", "1 loader: seen"}));
}

TEST(Log, ABadLevelCountsAsWarning) {
  setenv("OCLTENSOR_LOG_LEVEL", "shout", 1);
  config::reset();
  EXPECT_FALSE(logging::enabled(logging::Level::Info));
  EXPECT_TRUE(logging::enabled(logging::Level::Warning));
  unsetenv("OCLTENSOR_LOG_LEVEL");
  config::reset();
}

}  // namespace
}  // namespace ocltensor
