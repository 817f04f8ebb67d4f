// Configurations: the numbers that an algorithm may run with instead of those of its rule, such as
// the sizes of a tile; which of them is the fastest on a device is found by measuring.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ocltensor::opencl {

class Algorithm;

// The names of a configuration's numbers: "rows", "panels".
using ParameterNames = std::array<const char*, 6>;

// Empty: what the algorithm's rule says. Copied for every choice, so it allocates nothing.
class Configuration {
 public:
  Configuration() = default;
  Configuration(std::initializer_list<int64_t> numbers) {
    for (const int64_t n : numbers) numbers_[count_++] = static_cast<int16_t>(n);
  }
  explicit Configuration(std::span<const int64_t> numbers)
      : count_(static_cast<uint8_t>(std::min(numbers.size(), numbers_.size()))) {
    for (size_t i = 0; i < count_; ++i) numbers_[i] = static_cast<int16_t>(numbers[i]);
  }
  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }
  int64_t operator[](size_t i) const { return numbers_[i]; }
  friend bool operator==(const Configuration&, const Configuration&) = default;

 private:
  std::array<int16_t, std::tuple_size_v<ParameterNames>> numbers_{};
  uint8_t count_ = 0;
};
using Configurations = std::vector<Configuration>;

// What runs: an algorithm with a configuration.
struct Choice {
  const Algorithm* algorithm = nullptr;
  Configuration configuration{};
  friend bool operator==(const Choice&, const Choice&) = default;
};

// "matmul.packed", "matmul.packed/rows:64/panels:2".
std::string text_of(const Choice& choice);
// The choice that a text names, among the algorithms; empty where it names none of them, or
// other parameters than the algorithm has.
std::optional<Choice> choice_of(std::span<const Algorithm* const> algorithms,
                                std::string_view text);

}  // namespace ocltensor::opencl
