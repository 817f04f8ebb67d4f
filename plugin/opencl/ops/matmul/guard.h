// A product that is made only if a word in memory has a value: two ways to a result are enqueued,
// and an earlier kernel chooses between them without the host.
#pragma once

#include <optional>

#include "matmul.h"

namespace ocltensor::opencl::matmul {

// The word needs no initial value: no other call of this process has the same value, and if memory
// held it by chance, the plain kernel would do the work, whose result is right, too.
struct Guard {
  tb_address word = 0;  // of a uint; 0: no guard
  uint32_t value = 0;
  MemoryRange memory() const { return {word, 0, sizeof value}; }
  // A kernel's argument that exists only if there is a guard.
  template <typename T>
  std::optional<T> given(T argument) const {
    return word == 0 ? std::nullopt : std::optional<T>(argument);
  }
};
// guard.cpp: a value that no other call in this process has.
uint32_t next_guard_value();

// sgemm.cpp: float32 by portable tiles, if the word has the value.
void run_portable_tiles(const OpCall& call, const Problem& problem, const Guard& guard);
// The same of groups.
void run_portable_groups(const OpCall& call, const GroupedProblem& problem, const Guard& guard);

}  // namespace ocltensor::opencl::matmul
