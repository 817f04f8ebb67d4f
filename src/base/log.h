// Log lines with a level and a component name. Written to standard error, or passed to a sink: a
// plugin installs one that forwards to its host.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "tensor_backend/plugin.h"

namespace ocltensor::logging {

enum class Level : int {
  Trace = TB_LOG_TRACE,
  Debug = TB_LOG_DEBUG,
  Info = TB_LOG_INFO,
  Warning = TB_LOG_WARNING,
  Error = TB_LOG_ERROR,
  Off = TB_LOG_OFF
};

// True if lines of this level are written. OCLTENSOR_LOG_LEVEL decides; a bad value counts as
// "warning".
bool enabled(Level level);
void write(Level level, const char* component, const char* message) noexcept;

// Receives every enabled line instead of standard error, from any thread. nullptr: standard error.
// The sink and its context must live as long as the process.
using Sink = void (*)(void* context, int32_t level, const char* component, const char* message);
void set_sink(Sink sink, void* context);

template <typename... T>
void line(Level level, const char* component, fmt::format_string<T...> text, T&&... values) {
  if (enabled(level))
    write(level, component, fmt::format(text, std::forward<T>(values)...).c_str());
}
template <typename... T>
void debug(const char* component, fmt::format_string<T...> text, T&&... values) {
  line(Level::Debug, component, text, std::forward<T>(values)...);
}
template <typename... T>
void info(const char* component, fmt::format_string<T...> text, T&&... values) {
  line(Level::Info, component, text, std::forward<T>(values)...);
}
template <typename... T>
void warning(const char* component, fmt::format_string<T...> text, T&&... values) {
  line(Level::Warning, component, text, std::forward<T>(values)...);
}
template <typename... T>
void error(const char* component, fmt::format_string<T...> text, T&&... values) {
  line(Level::Error, component, text, std::forward<T>(values)...);
}

}  // namespace ocltensor::logging
