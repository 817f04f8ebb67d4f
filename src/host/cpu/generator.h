// Random number generators of the CPU backend.
#pragma once

#include <mutex>

#include "tensor_backend/plugin.h"

namespace ocltensor::cpu {

class Generator {
 public:
  struct State {
    uint64_t seed;
    uint64_t offset;
  };
  explicit Generator(uint64_t seed) : state_{seed, 0} {}
  State get() const;
  void set(State state);
  // Reserves the blocks that hold `words` numbers; returns the state to draw them from.
  State take(uint64_t words);

 private:
  mutable std::mutex mutex_;
  State state_;
};

// NULL is the device's default generator.
Generator& generator_of(tb_generator generator);
const tb_generator_api* generator_api();

}  // namespace ocltensor::cpu
