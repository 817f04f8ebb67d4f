// Reading, checking and keeping the settings of config.def.
#include "config.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "caps.h"
#include "log.h"
#include "name_patterns.h"
#include "ocltensor/error.h"

namespace ocltensor::config {
namespace detail {
std::atomic<int8_t> flags[kKnobCount] = {
#define OCLTENSOR_KNOB(...) -1,
#include "config.def"
#undef OCLTENSOR_KNOB
};
}  // namespace detail

namespace {

struct Row {
  const char* name;
  Kind kind;
  const char* default_value;
  double low, high;
  const char* accepted;
  const char* meaning;
};

constexpr Row kRows[kKnobCount] = {
#define OCLTENSOR_KNOB(id, name, kind, default_value, low, high, accepted, meaning) \
  {name, Kind::kind, default_value, low, high, accepted, meaning},
#include "config.def"
#undef OCLTENSOR_KNOB
};

struct MaskBit {
  Knob knob;
  int64_t bit;
  std::string_view name;
};
constexpr MaskBit kMaskBits[] = {
#define OCLTENSOR_MASK_BIT(id, bit, name) {Knob::id, bit, name},
#include "masks.def"
#undef OCLTENSOR_MASK_BIT
};

constexpr const char* kLevels[] = {"trace", "debug", "info", "warning", "error", "off"};

struct Slot {
  std::string text;
  double number = 0;
  Source source = Source::Default;
  bool loaded = false;
};

// Guards `slots`; leaked, because threads may log while the process ends.
struct State {
  std::mutex mutex;
  Slot slots[kKnobCount];
  std::atomic<uint64_t> generation{1};
};
State& state() {
  static State& s = *new State;
  return s;
}

const Row& row(Knob knob) { return kRows[static_cast<int>(knob)]; }

// What every setting's name begins with: it would make all names similar.
constexpr std::string_view kPrefix = "OCLTENSOR_";

std::vector<std::string> short_names() {
  std::vector<std::string> names;
  for (const Row& r : kRows) names.emplace_back(std::string_view(r.name).substr(kPrefix.size()));
  return names;
}

const char* environment(const char* name) { return secure_getenv(name); }

std::optional<double> parse_number(const std::string& text, bool integer) {
  if (text.empty() || text.find_first_of(" \t\n") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const double value = integer ? static_cast<double>(std::strtoll(text.c_str(), &end, 0))
                               : std::strtod(text.c_str(), &end);
  if (errno != 0 || *end != 0 || !std::isfinite(value)) return std::nullopt;
  return value;
}

Knob knob_of(const Row& row) { return static_cast<Knob>(&row - kRows); }

int64_t known_bits(const Row& row) {
  int64_t all = 0;
  for (const MaskBit& bit : kMaskBits)
    if (bit.knob == knob_of(row)) all |= bit.bit;
  return all;
}

// "operators,copies": the sum of the bits.
std::optional<double> parse_names(const Row& row, std::string_view text) {
  int64_t mask = 0;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    int64_t found = 0;
    for (const MaskBit& bit : kMaskBits)
      if (bit.knob == knob_of(row) && bit.name == word) found = bit.bit;
    if (found == 0) return std::nullopt;
    mask |= found;
    if (comma == std::string_view::npos) return static_cast<double>(mask);
    text.remove_prefix(comma + 1);
  }
}

std::optional<double> parse_level(std::string_view text) {
  if (text == "warn") text = "warning";
  for (int i = 0; i < 6; ++i)
    if (text == kLevels[i]) return i;
  return std::nullopt;
}

// True if `text` is empty or one of the words of a text such as "cpu or gpu".
bool is_choice(std::string_view accepted, std::string_view text) {
  constexpr std::string_view kOr = " or ";
  while (!text.empty()) {
    const size_t end = accepted.find(kOr);
    if (accepted.substr(0, end) == text) return true;
    if (end == std::string_view::npos) return false;
    accepted.remove_prefix(end + kOr.size());
  }
  return true;
}

bool all_absolute(std::string_view text) {
  while (!text.empty()) {
    const size_t colon = text.find(':');
    if (text[0] != '/') return false;
    text = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  }
  return true;
}

// The number that a text stands for (0 for kinds without a number); nothing if the row refuses the
// text.
std::optional<double> parse(const Row& row, const std::string& text) {
  std::optional<double> value;
  switch (row.kind) {
    case Kind::Mask:
      value = parse_number(text, true);
      if (!value) return parse_names(row, text);
      if ((static_cast<int64_t>(*value) & ~known_bits(row)) != 0) return std::nullopt;
      break;
    case Kind::Bool:
    case Kind::Count: value = parse_number(text, true); break;
    case Kind::AutoRatio:
      if (text == "auto") return -1;
      [[fallthrough]];
    case Kind::Ratio: value = parse_number(text, false); break;
    case Kind::Level: return parse_level(text);
    case Kind::Choice: return is_choice(row.accepted, text) ? std::optional(0.0) : value;
    case Kind::Caps: return parse_caps(text) ? std::optional(0.0) : value;
    case Kind::Text: return 0;
    case Kind::AbsolutePath: return text.empty() || text[0] == '/' ? std::optional(0.0) : value;
    case Kind::AbsolutePaths: return all_absolute(text) ? std::optional(0.0) : value;
  }
  if (value && (*value < row.low || *value > row.high)) return std::nullopt;
  return value;
}

[[noreturn]] void refuse(const Row& row, std::string_view text, const char* where) {
  fail(TB_E_INVALID, "{}='{}' ({}) is not valid: expected {}", row.name, text, where,
       accepted(knob_of(row)));
}

void publish(int index, double number) {
  if (kRows[index].kind == Kind::Bool)
    detail::flags[index].store(number != 0, std::memory_order_relaxed);
}

// The setting's slot, read on first use. The caller holds the mutex. An unset or empty variable
// means the default.
Slot& load(Knob knob) {
  const int index = static_cast<int>(knob);
  Slot& slot = state().slots[index];
  if (slot.loaded) return slot;
  const char* text = environment(kRows[index].name);
  const bool given = text != nullptr && *text != 0;
  const std::string value = given ? text : kRows[index].default_value;
  const std::optional<double> number = parse(kRows[index], value);
  if (!number) refuse(kRows[index], value, "environment");
  slot = {value, *number, given ? Source::Environment : Source::Default, true};
  publish(index, *number);
  return slot;
}

Slot get(Knob knob) {
  const std::lock_guard lock(state().mutex);
  return load(knob);
}

}  // namespace

bool detail::read_bool(Knob knob) { return get(knob).number != 0; }
int64_t get_int(Knob knob) { return static_cast<int64_t>(get(knob).number); }
double get_double(Knob knob) { return get(knob).number; }
std::string get_string(Knob knob) { return get(knob).text; }

double low_watermark_ratio(bool unified_memory) {
  double low = get_double(Knob::LowWatermarkRatio);
  const double high = get_double(Knob::HighWatermarkRatio);
  if (low < 0) low = unified_memory ? 1.4 : 1.0;
  return high > 0 && low > high ? high : low;
}

std::string cache_folder() {
  if (std::string folder = get_string(Knob::CacheDir); !folder.empty()) return folder;
  if (const char* base = environment("XDG_CACHE_HOME"); base != nullptr && base[0] == '/')
    return std::string(base) + "/ocltensor";
  if (const char* home = environment("HOME"); home != nullptr && home[0] == '/')
    return std::string(home) + "/.cache/ocltensor";
  return {};
}

char* loader_variable(const char* name) { return secure_getenv(name); }

void set_driver_variable(const char* name, const char* value) { (void)setenv(name, value, 1); }

std::string driver_files() {
  const char* given = environment("OCL_ICD_VENDORS");
  return given != nullptr && *given != 0 ? given : "/etc/OpenCL/vendors";
}

void set(Knob knob, std::string_view text) {
  const std::string value(text);
  const std::optional<double> number = parse(row(knob), value);
  if (!number) refuse(row(knob), text, "API");
  const std::lock_guard lock(state().mutex);
  state().slots[static_cast<int>(knob)] = {value, *number, Source::Api, true};
  publish(static_cast<int>(knob), *number);
  state().generation.fetch_add(1, std::memory_order_release);
}

void set(std::string_view name, std::string_view text) {
  for (int i = 0; i < kKnobCount; ++i)
    if (name == kRows[i].name) return set(static_cast<Knob>(i), text);
  const std::string near = near_settings(name);
  fail(TB_E_INVALID, "there is no setting named '{}'{}", name,
       near.empty() ? "; ocltensor-info lists them" : near);
}

void reset() {
  const std::lock_guard lock(state().mutex);
  for (int i = 0; i < kKnobCount; ++i) {
    state().slots[i] = {};
    detail::flags[i].store(-1, std::memory_order_relaxed);
  }
  state().generation.fetch_add(1, std::memory_order_release);
}

void validate() {
  for (int i = 0; i < kKnobCount; ++i) get(static_cast<Knob>(i));
}

std::vector<KnobState> list() {
  std::vector<KnobState> result;
  const std::lock_guard lock(state().mutex);
  for (int i = 0; i < kKnobCount; ++i) {
    const Row& r = kRows[i];
    const Slot& slot = state().slots[i];
    KnobState s{r.name, r.kind, r.default_value, r.accepted, r.meaning, slot.text, slot.source};
    if (!slot.loaded) {
      const char* text = environment(r.name);
      const bool given = text != nullptr && *text != 0;
      s.value = given ? text : r.default_value;
      s.source = given ? Source::Environment : Source::Default;
    }
    result.push_back(std::move(s));
  }
  return result;
}

std::vector<std::pair<std::string, std::string>> misspelt_variables() {
  const std::vector<std::string> known = short_names();
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable(*entry, std::string_view(*entry).find('='));
    if (!variable.starts_with(kPrefix)) continue;
    if (const std::string* meant = misspelt(variable.substr(kPrefix.size()), known))
      found.emplace_back(variable, std::string(kPrefix) + *meant);
  }
  return found;
}

void warn_of_misspelt_variables() {
  static const bool warned = [] {
    for (const auto& [variable, meant] : misspelt_variables())
      logging::warning("settings", "{} is set, which is no setting; did you mean {}?", variable,
                       meant);
    return true;
  }();
  (void)warned;
}

std::string near_settings(std::string_view name) {
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  const std::vector<std::string> known = short_names();
  std::string text;
  for (const std::string& near : near_names(name, known))
    text += (text.empty() ? "; did you mean " : " or ") + std::string(kPrefix) + near;
  return text.empty() ? text : text + "?";
}

uint64_t generation() { return state().generation.load(std::memory_order_acquire); }

const char* name(Knob knob) { return row(knob).name; }

std::string accepted(Knob knob) {
  std::string text = row(knob).accepted;
  if (row(knob).kind == Kind::Caps) return text + "; names: " + caps_names();
  const char* separator = ", or names joined by commas: ";
  for (const MaskBit& bit : kMaskBits) {
    if (bit.knob != knob) continue;
    (text += separator) += bit.name;
    separator = ", ";
  }
  return text;
}

const char* to_string(Source source) {
  constexpr const char* kNames[] = {"default", "environment", "API"};
  return kNames[static_cast<int>(source)];
}

}  // namespace ocltensor::config
