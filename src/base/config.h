// Every run-time setting (config.def): typed, checked values from the environment or the API. No
// other file reads the environment. Host and plugin each link this library statically and so have
// separate copies of the settings.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config_generation.h"

namespace ocltensor::config {

enum class Knob : uint8_t {
#define OCLTENSOR_KNOB(id, ...) id,
#include "config.def"
#undef OCLTENSOR_KNOB
};
inline constexpr int kKnobCount = 0
#define OCLTENSOR_KNOB(...) +1
#include "config.def"
#undef OCLTENSOR_KNOB
    ;

enum class Kind : uint8_t {
  Bool,
  Count,
  Mask,
  Ratio,
  AutoRatio,
  Level,
  Choice,  // one of the words of `accepted`, or empty
  Caps,    // limits and profiles of caps.def
  Text,
  AbsolutePath,
  AbsolutePaths
};
enum class Source : uint8_t { Default, Environment, Api };

struct KnobState {
  const char* name;
  Kind kind;
  const char* default_value;
  const char* accepted;
  const char* meaning;
  std::string value;  // as given, or the default
  Source source;
};

namespace detail {
// The values of boolean knobs for get_bool's fast path; -1 until the knob is read. set() updates
// them.
extern std::atomic<int8_t> flags[kKnobCount];
bool read_bool(Knob knob);
}  // namespace detail

// Getters throw Error(TB_E_INVALID) that names variable, value and accepted range where the
// environment holds a bad value. All are thread-safe.
inline bool get_bool(Knob knob) {
  const int8_t flag =
      detail::flags[static_cast<int>(knob)].load(std::memory_order_relaxed);  // the hot path
  if (flag >= 0) [[likely]]
    return flag != 0;
  return detail::read_bool(knob);
}
int64_t get_int(Knob knob);         // Bool, Count, Mask, Level (as TB_LOG_*)
double get_double(Knob knob);       // Ratio, AutoRatio; "auto" is -1
std::string get_string(Knob knob);  // any kind, as text

// The low watermark in force: "auto" replaced by a number, and at most the high one if that is on.
double low_watermark_ratio(bool unified_memory);
// OCLTENSOR_CACHE_DIR, else $XDG_CACHE_HOME/ocltensor, else $HOME/.cache/ocltensor; empty where
// none of them is an absolute path.
std::string cache_folder();

// Where OpenCL's loader looks for the files that name drivers: the folder or file in its own
// variable, OCL_ICD_VENDORS, else its default folder.
std::string driver_files();
// The text of a variable of OpenCL's loader as it stands in the environment, where the loader may
// write; null if it is not set.
char* loader_variable(const char* name);
// For a driver that reads it later. Not thread-safe, as all that changes the environment.
void set_driver_variable(const char* name, const char* value);

// Checks and stores a value, which takes precedence over the environment. Throws
// Error(TB_E_INVALID) for an unknown name or a bad value, and then changes nothing.
void set(std::string_view name, std::string_view text);
void set(Knob knob, std::string_view text);
// Forgets values set through the API and reads the environment again.
void reset();
// Throws Error(TB_E_INVALID) for the first bad value of the environment.
void validate();
// Variables of the environment that are almost a setting's name, with that name. Others that begin
// with OCLTENSOR_ may be those of a plugin.
std::vector<std::pair<std::string, std::string>> misspelt_variables();
// Logs a warning for each of them, at the process's first call.
void warn_of_misspelt_variables();
// "; did you mean OCLTENSOR_DEVICES?" for a name that no setting has.
std::string near_settings(std::string_view name);
// Every knob with its value and the value's source, in config.def's order. Does not throw for a bad
// value, but lists it unchanged.
std::vector<KnobState> list();

const char* name(Knob knob);
// The accepted values as text: config.def's text, and the names of a mask's bits.
std::string accepted(Knob knob);
const char* to_string(Source source);  // "default", "environment", "API"

}  // namespace ocltensor::config
