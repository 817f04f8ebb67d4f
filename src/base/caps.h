// OCLTENSOR_CAPS: limits below what devices have, so that one device can stand for others in tests.
// Device-free: the text and its names; a plugin applies the limits to what a driver answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ocltensor {

enum class Cap : uint8_t {
#define OCLTENSOR_CAP(id, ...) id,
#define OCLTENSOR_CAPS_PROFILE(...)
#include "base/caps.def"
#undef OCLTENSOR_CAPS_PROFILE
#undef OCLTENSOR_CAP
};

struct CapLimit {
  Cap cap;
  uint64_t most;
  bool by_profile = false;  // a device that has less than a profile's limit keeps what it has
};

const char* name(Cap cap);

// "small-gpu,local_memory=16K": limits in the text's order. Nothing if a name or a value is wrong.
std::optional<std::vector<CapLimit>> parse_caps(std::string_view text);

// The names of capabilities and profiles, for messages.
std::string caps_names();

}  // namespace ocltensor
