// Run-time settings (the OCLTENSOR_* variables and the backends' switches), and counts of
// fallbacks. Every function is thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ocltensor/api.h"

namespace ocltensor {

struct Setting {
  std::string name, value, default_value, accepted, meaning;
  std::string source;  // "default", "environment" or "API"
};

// `name` is an environment variable's, or that of a switch of a loaded backend. The value holds in
// the host and in every backend, also in those loaded later. Error TB_E_INVALID for an unknown
// name, and for a bad value with the accepted range.
OCLTENSOR_API void set_setting(std::string_view name, std::string_view value);
OCLTENSOR_API std::string get_setting(std::string_view name);  // TB_E_INVALID: unknown name
OCLTENSOR_API std::vector<Setting> settings();                 // the OCLTENSOR_* variables
// TB_E_INVALID for the first environment variable with a bad value.
OCLTENSOR_API void validate_settings();

struct FallbackCount {
  std::string name;  // "add.out"
  uint64_t count;
};
// Operators that ran on the CPU because a device declined them, most frequent first.
OCLTENSOR_API std::vector<FallbackCount> fallback_counts();
OCLTENSOR_API void reset_fallback_counts();

}  // namespace ocltensor
