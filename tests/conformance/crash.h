// What the kit is trying, kept where it outlives a crash: the signal handler prints it, and the
// process that watches this one reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ocltensor/dtype.h"

namespace ocltensor::conformance {

// Of a group of checks: its title, and the step with the rule that it is about.
void set_current(const std::string& group, const std::string& what);

// Of an operator's case: its place among all cases of the run, too.
inline constexpr size_t kNoTask = ~size_t{0};
struct CurrentTask {
  size_t index = kNoTask;
  char op[96] = {};
  DType dtype = DType::Float32;
  uint64_t seed = 0;
};
void set_current_task(const CurrentTask& task);

CurrentTask current_task();
std::string current_what();

// Moves the record to memory that processes forked from now on share with this one.
void share_current();
void install_crash_handler();
// "SIGSEGV", or "signal 31".
std::string signal_name(int number);

}  // namespace ocltensor::conformance
