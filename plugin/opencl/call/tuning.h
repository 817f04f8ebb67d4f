// Tuning: of a class of shapes, every algorithm with every configuration is run, compared with the
// rule's choice and timed. Another one is taken only where it is faster by a margin, in repeated
// pairs. Asked for by OCLTENSOR_TUNE; a class is tuned when a call meets it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms.h"

namespace ocltensor::opencl {

// Tunes the problem's class as far as that has not been done; returns the best choice now known,
// without an algorithm if none is. `by_rule` is the rule's candidate, `allowed` those that the
// settings and their algorithms permit to measure.
Choice tune(const Question& question, size_t by_rule, const std::vector<size_t>& allowed);
// Notes a class that tune() would have something to do for.
void note_untuned(const Question& question, size_t by_rule, const std::vector<size_t>& allowed);

// A class of shapes that was tuned. Times in microseconds; 0: not measured.
struct TunedClass {
  int device;
  std::string family, problem;
  std::string rule, best;  // choices
  double rule_time, best_time;
  uint32_t tried, wrong;  // choices; wrong: results differed, or it failed
  bool complete;          // nothing was left out because of stop_tuning(), or for want of memory
};
// What tune() is doing: the class, which of its choices, and the times so far.
struct TuningProgress {
  std::string family, problem, choice;
  uint32_t index = 0, count = 0;
  double rule_time = 0, best_time = 0;
  uint32_t classes = 0;  // that have been measured since start_tuning()
  uint32_t untuned = 0;  // that note_untuned() has noted since then
};

// All of these are thread-safe.
void start_tuning();  // forgets what follows, and ends stop_tuning()
void stop_tuning();   // tune() ends after its current choice, and keeps what it has measured
std::vector<TunedClass> tuned_classes();
TuningProgress tuning_progress();

}  // namespace ocltensor::opencl
