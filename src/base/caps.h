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

// The profile of the class to which a device of this name belongs, and the class: "gfx906, AMD Vega
// 20 (Radeon VII, MI50)". Empty if no description has it.
std::string profile_of(std::string_view device);

// The names of capabilities and profiles, for messages.
std::string caps_names();

}  // namespace ocltensor
