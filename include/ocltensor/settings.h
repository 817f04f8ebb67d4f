// Run-time settings (the OCLTENSOR_* variables and a backend's switches), and fallback counts.
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

// By the environment variable's name, or the name of a switch of a loaded backend. Takes effect in
// the host and in every backend, loaded or loaded later. TB_E_INVALID names the accepted range.
OCLTENSOR_API void set_setting(std::string_view name, std::string_view value);
OCLTENSOR_API std::string get_setting(std::string_view name);
OCLTENSOR_API std::vector<Setting> settings();
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
