// The settings that operators and the choice of algorithms depend on, in a form that a call reads
// without a lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/config_generation.h"
#include "base/name_patterns.h"

namespace ocltensor::opencl {

struct Provider;

// OCLTENSOR_FP16_REDUCTION and OCLTENSOR_BF16_REDUCTION.
struct ReducedSums {
  bool reduced;  // partial sums may have the type of the result
  bool split;    // sums may be split over K
};

// OCLTENSOR_TUNE.
enum class Tuning : uint8_t {
  Off,
  Record,  // notes which classes of shapes could be tuned
  Quick,   // measures a few configurations of each algorithm
  Full,    // all of them
};

struct Policy {
  bool tuned, deterministic, benchmark, immediate, allow_tf32, allow_int8_activations,
      prefer_portable;
  bool check_values;  // kernels report invalid indices and targets
  int64_t verbose, benchmark_limit;
  ReducedSums fp16, bf16;
  std::vector<const Provider*> disabled_providers;
  bool keep;  // measurements are kept on disk
  Tuning tuning;
  NamePatterns operations, algorithms;

  bool default_choice;  // no algorithm to print, to measure or to leave out
  bool use_measured;    // choose by earlier measurements
  bool plain;           // no operator to print, to decline or to check

  bool is_enabled(const Provider& provider) const {
    return std::find(disabled_providers.begin(), disabled_providers.end(), &provider) ==
           disabled_providers.end();
  }
};

namespace detail {
extern std::atomic<const Policy*> current_policy;
extern std::atomic<uint64_t> policy_generation;
const Policy& read_policy();
}  // namespace detail

// The policy in force. Lives as long as the process: one is kept for every combination of values
// that was ever set. Throws Error(TB_E_INVALID) for a bad value of the environment.
inline const Policy& policy() {
  if (detail::policy_generation.load(std::memory_order_acquire) == config::generation()) [[likely]]
    return *detail::current_policy.load(std::memory_order_acquire);
  return detail::read_policy();
}

}  // namespace ocltensor::opencl
