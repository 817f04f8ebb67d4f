// The text of OCLTENSOR_CAPS.
#include "caps.h"

#include <algorithm>
#include <charconv>

namespace ocltensor {
namespace {

enum class CapKind : uint8_t { Flag, Count, Bytes };

struct CapRow {
  const char* name;
  CapKind kind;
  uint64_t low;
};
constexpr CapRow kCaps[] = {
#define OCLTENSOR_CAP(id, name, kind, low, meaning) {name, CapKind::kind, low},
#define OCLTENSOR_CAPS_PROFILE(...)
#include "base/caps.def"
#undef OCLTENSOR_CAPS_PROFILE
#undef OCLTENSOR_CAP
};

struct Profile {
  const char* name;
  const char* caps;
  const char* title;  // of a class of devices, or empty
  const char* alike;  // parts of the names of its devices, with | between
};
constexpr Profile kProfiles[] = {
#define OCLTENSOR_CAP(...)
#define OCLTENSOR_CAPS_PROFILE(name, caps, title, alike) {name, caps, title, alike},
#include "base/caps.def"
#undef OCLTENSOR_CAPS_PROFILE
#undef OCLTENSOR_CAP
};

// A whole number, for bytes also with a factor: 32K.
std::optional<uint64_t> parse_most(const CapRow& row, std::string_view text) {
  constexpr std::string_view kFactors = "KMG";
  int shift = 0;
  if (row.kind == CapKind::Bytes && !text.empty())
    if (const size_t factor = kFactors.find(text.back()); factor != std::string_view::npos) {
      shift = 10 * (static_cast<int>(factor) + 1);
      text.remove_suffix(1);
    }
  uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value > (UINT64_MAX >> shift) || (row.kind == CapKind::Flag && value > 1))
    return std::nullopt;
  value <<= shift;
  return value < row.low ? std::nullopt : std::optional(value);
}

bool add(std::string_view text, bool by_profile, std::vector<CapLimit>& limits);

bool add_item(std::string_view item, bool by_profile, std::vector<CapLimit>& limits) {
  const size_t equals = item.find('=');
  if (equals == std::string_view::npos) {
    for (const Profile& profile : kProfiles)
      if (profile.name == item) return add(profile.caps, true, limits);
    return false;
  }
  for (const CapRow& row : kCaps) {
    if (row.name != item.substr(0, equals)) continue;
    const auto most = parse_most(row, item.substr(equals + 1));
    if (most) limits.push_back({static_cast<Cap>(&row - kCaps), *most, by_profile});
    return most.has_value();
  }
  return false;
}

bool add(std::string_view text, bool by_profile, std::vector<CapLimit>& limits) {
  while (true) {
    const size_t comma = text.find(',');
    if (!add_item(text.substr(0, comma), by_profile, limits)) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

bool names_one_of(std::string_view device, std::string_view parts) {
  while (!parts.empty()) {
    const size_t end = std::min(parts.find('|'), parts.size());
    if (device.find(parts.substr(0, end)) != std::string_view::npos) return true;
    parts.remove_prefix(std::min(end + 1, parts.size()));
  }
  return false;
}

}  // namespace

const char* name(Cap cap) { return kCaps[static_cast<size_t>(cap)].name; }

std::optional<std::vector<CapLimit>> parse_caps(std::string_view text) {
  std::vector<CapLimit> limits;
  if (text.empty() || add(text, false, limits)) return limits;
  return std::nullopt;
}

std::string profile_of(std::string_view device) {
  for (const Profile& profile : kProfiles)
    if (names_one_of(device, profile.alike))
      return std::string(profile.name) + ", " + profile.title;
  return {};
}

std::string caps_names() {
  std::string text;
  for (const CapRow& row : kCaps) (text += text.empty() ? "" : ", ") += row.name;
  const char* separator = "; profiles: ";
  for (const Profile& profile : kProfiles) {
    (text += separator) += profile.name;
    separator = ", ";
  }
  return text;
}

}  // namespace ocltensor
