// Words of the texts by which switches are set and reports are asked for.
#pragma once

#include <algorithm>
#include <charconv>
#include <string_view>

#include "ocltensor/error.h"
#include "runtime/device/device.h"

namespace ocltensor::opencl {

// Takes a word from the front of `text`.
inline std::string_view next_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

inline size_t number_of(std::string_view word) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  check(error == std::errc() && end == word.data() + word.size(), "'{}' is not a number", word);
  return number;
}

// A device by its index; the first one for an empty text.
inline Device& device_of_text(std::string_view text) {
  return device(static_cast<int>(text.empty() ? 0 : number_of(text)));
}

}  // namespace ocltensor::opencl
