// Algorithms on a driver whose compiler may end the process: their programs are made before
// anything of a call is enqueued, and what the compiler dies of is left out.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>

#include "call/algorithm.h"

namespace ocltensor::opencl {

// Those of one list. Thread-safe.
class CarefulChoices {
 public:
  // Identifies a call's problem; 0 where the compiler is trusted, which costs one load. `describe`
  // returns a text that tells problems apart.
  template <typename Describe>
  static uint64_t key_of(const OpCall& call, const Describe& describe) {
    if (!call.device().programs().is_careful()) [[likely]]
      return 0;
    return hash(call, describe());
  }
  // Why the compiler leaves an algorithm out of a problem with this key, or nullptr.
  const char* refusal(uint64_t key, const Algorithm& algorithm);
  // Has builders compile what `run` needs; it is called at most once, with its commands dropped.
  // Returns false if a program does not compile, with a warning: refusal() knows it then. Of an
  // algorithm that is the last resort, the compiler's Error is thrown.
  bool prepare(uint64_t key, const OpCall& call, const Algorithm& algorithm,
               const std::function<void()>& run);

 private:
  static uint64_t hash(const OpCall& call, const std::string& problem);
  static uint64_t key_of(uint64_t problem, const Algorithm& algorithm) {
    return problem ^ reinterpret_cast<uintptr_t>(&algorithm) * 0x9e3779b97f4a7c15;
  }

  std::mutex mutex_;
  std::unordered_map<uint64_t, bool> is_refused_;  // by key_of(); those that have been prepared
};

}  // namespace ocltensor::opencl
