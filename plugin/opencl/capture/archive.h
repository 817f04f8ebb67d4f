// Numbers, texts, lists and records as little-endian bytes, and back with every bound checked;
// checksums.
#pragma once

#include <zlib.h>

#include <cstring>
#include <span>
#include <type_traits>

#include "format.h"
#include "ocltensor/error.h"

namespace ocltensor::capture_file {

inline uint32_t crc(std::span<const uint8_t> bytes) {
  return static_cast<uint32_t>(
      crc32_z(crc32_z(0, nullptr, 0), bytes.data(), static_cast<z_size_t>(bytes.size())));
}

template <typename T>
concept Number = std::is_integral_v<T> || std::is_enum_v<T>;

class Encoder {
 public:
  template <typename... T>
  void operator()(T&... values) {
    (put(values), ...);
  }
  std::vector<uint8_t>& bytes() { return bytes_; }

 private:
  template <Number T>
  void put(T& value) {
    // Sign extension may set higher bits; only the low bytes are kept.
    auto bits = static_cast<uint64_t>(value);  // NOLINT(bugprone-signed-char-misuse)
    for (size_t i = 0; i < sizeof(T); ++i, bits >>= 8) bytes_.push_back(static_cast<uint8_t>(bits));
  }
  void put(std::string& text) {
    uint64_t count = text.size();
    put(count);
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  template <typename T>
  void put(std::vector<T>& list) {
    uint64_t count = list.size();
    put(count);
    for (T& item : list) put(item);
  }
  template <typename T, size_t N>
  void put(std::array<T, N>& list) {
    for (T& item : list) put(item);
  }
  template <typename T>
  requires std::is_class_v<T>
  void put(T& record) { fields(*this, record); }

  std::vector<uint8_t> bytes_;
};

// Throws Error(TB_E_INVALID) if the bytes end too early.
class Decoder {
 public:
  explicit Decoder(std::span<const uint8_t> bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }
  template <typename... T>
  void operator()(T&... values) {
    (get(values), ...);
  }

 private:
  const uint8_t* take(uint64_t count) {
    check(count <= rest_.size(), "a record wants {} bytes where {} are left", count, rest_.size());
    const uint8_t* at = rest_.data();
    rest_ = rest_.subspan(count);
    return at;
  }
  template <Number T>
  void get(T& value) {
    const uint8_t* from = take(sizeof(T));
    uint64_t bits = 0;
    for (size_t i = sizeof(T); i-- > 0;) bits = bits << 8 | from[i];
    value = static_cast<T>(bits);
  }
  void get(std::string& text) {
    uint64_t count = 0;
    get(count);
    const uint8_t* from = take(count);
    text.assign(reinterpret_cast<const char*>(from), count);
  }
  void get(std::vector<uint8_t>& list) {
    uint64_t count = 0;
    get(count);
    const uint8_t* from = take(count);
    list.assign(from, from + count);
  }
  template <typename T>
  void get(std::vector<T>& list) {
    uint64_t count = 0;
    get(count);
    // Every item takes at least 8 bytes, so that a false count cannot make this allocate.
    check(count <= rest_.size() / 8, "a list of {} items where {} bytes are left", count,
          rest_.size());
    list.resize(count);
    for (T& item : list) get(item);
  }
  template <typename T, size_t N>
  void get(std::array<T, N>& list) {
    for (T& item : list) get(item);
  }
  template <typename T>
  requires std::is_class_v<T>
  void get(T& record) { fields(*this, record); }

  std::span<const uint8_t> rest_;
};

inline void encode(Encoder& to, Record& record) {
  auto tag = static_cast<uint8_t>(record.index() + 1);
  to(tag);
  std::visit([&](auto& r) { to(r); }, record);
}

template <size_t I = 0>
void decode_as(Decoder& from, size_t index, Record& record) {
  if constexpr (I < std::variant_size_v<Record>) {
    if (index != I) return decode_as<I + 1>(from, index, record);
    from(record.emplace<I>());
  } else {
    fail(TB_E_INVALID, "there is no kind {} of records", index + 1);
  }
}
inline Record decode(Decoder& from) {
  uint8_t tag = 0;
  from(tag);
  Record record;
  decode_as(from, static_cast<size_t>(tag) - 1, record);
  return record;
}

}  // namespace ocltensor::capture_file
