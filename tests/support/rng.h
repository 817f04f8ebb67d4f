// A small seeded random engine whose numbers are the same on every machine and compiler.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ocltensor::testing {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  // SplitMix64 (Steele, Lea, Flood 2014): one addition and a finaliser per number.
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Both ends included.
  int64_t range(int64_t low, int64_t high) {
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    const uint64_t offset = span == 0 ? next() : next() % span;
    return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53;
  }
  bool chance(double p) { return uniform(0, 1) < p; }
  template <typename List>
  const auto& pick(const List& list) {
    return *(std::begin(list) + range(0, static_cast<int64_t>(std::size(list)) - 1));
  }
  template <typename T>
  void shuffle(std::vector<T>& list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[static_cast<size_t>(range(0, static_cast<int64_t>(i) - 1))]);
  }

 private:
  uint64_t state_;
};

}  // namespace ocltensor::testing
