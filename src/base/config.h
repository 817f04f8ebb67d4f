// Every run-time setting (config.def): typed, checked values from the environment or the API. The
// one place that reads the environment. The library is linked into host and plugin separately, so
// each reads the environment for itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  Choice,  // one of the words of `accepted`, or nothing
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
// -1 until the knob was read: the fast path of get_bool. Kept current by set().
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

// The low watermark in force: "auto" resolved, and clamped to the high one unless that is off.
double low_watermark_ratio(bool unified_memory);
// OCLTENSOR_CACHE_DIR, else $XDG_CACHE_HOME/ocltensor, else $HOME/.cache/ocltensor; empty where
// none of them is an absolute path.
std::string cache_folder();

// Where OpenCL's loader looks for the files that name drivers: OCL_ICD_VENDORS, its own variable, a
// folder or a file; else its default.
std::string driver_files();

// Checks and stores a value; it wins over the environment. Throws Error(TB_E_INVALID) for an
// unknown name or a bad value, and changes nothing then.
void set(std::string_view name, std::string_view text);
void set(Knob knob, std::string_view text);
// Forgets values set through the API and reads the environment again.
void reset();
// Throws Error(TB_E_INVALID) for the first bad value of the environment.
void validate();
// Every knob with its value and where it came from, in config.def's order. Never throws for a bad
// value: it is listed as it stands.
std::vector<KnobState> list();
// Grows with every set() and reset(): lets others cache what they derived from a value.
uint64_t generation();

const char* name(Knob knob);
// What a setting takes, as text: config.def's, and the names of a mask's bits.
std::string accepted(Knob knob);
const char* to_string(Source source);  // "default", "environment", "API"

}  // namespace ocltensor::config
