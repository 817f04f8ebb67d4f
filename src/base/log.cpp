// Logging over spdlog, which stays inside this file.
#include "log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "config.h"

namespace ocltensor::logging {
namespace {

struct Target {
  std::mutex mutex;  // guards sink and context
  Sink sink = nullptr;
  void* context = nullptr;
  std::atomic<uint64_t> generation{0};  // of the settings that `level` was read from
  std::atomic<int> level{TB_LOG_WARNING};
  spdlog::logger logger{"ocltensor", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

// Leaked: the last threads and static destructors may still log.
Target& target() {
  static Target& t = *[] {
    auto* made = new Target;
    made->logger.set_level(spdlog::level::trace);
    made->logger.set_pattern("[ocltensor] [%H:%M:%S.%e] [%l] %v");
    return made;
  }();
  return t;
}

int read_level() noexcept {
  try {
    return static_cast<int>(config::get_int(config::Knob::LogLevel));
  } catch (...) {
    return TB_LOG_WARNING;  // validate() reports the bad value; a log line must not fail
  }
}

}  // namespace

bool enabled(Level level) {
  Target& t = target();
  const uint64_t now = config::generation();
  if (t.generation.load(std::memory_order_acquire) != now) {
    t.level.store(read_level(), std::memory_order_relaxed);
    t.generation.store(now, std::memory_order_release);
  }
  return static_cast<int>(level) >= t.level.load(std::memory_order_relaxed);
}

void write(Level level, const char* component, const char* message) noexcept {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::trace, spdlog::level::debug,
                                                   spdlog::level::info,  spdlog::level::warn,
                                                   spdlog::level::err,   spdlog::level::off};
  try {
    Target& t = target();
    Sink sink;
    void* context;
    {
      const std::lock_guard lock(t.mutex);
      sink = t.sink;
      context = t.context;
    }
    if (sink != nullptr)
      sink(context, static_cast<int32_t>(level), component, message);
    else
      t.logger.log(kLevels[static_cast<int>(level)], "{}: {}", component, message);
  } catch (...) {  // NOLINT: a log line that cannot be written must not break its caller
  }
}

void set_sink(Sink sink, void* context) {
  const std::lock_guard lock(target().mutex);
  target().sink = sink;
  target().context = context;
}

}  // namespace ocltensor::logging
