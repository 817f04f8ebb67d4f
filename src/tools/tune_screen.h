// What ocltensor-tune prints: a line that is overwritten on terminals, a line per problem
// elsewhere, and a table at the end.
#pragma once

#include <ocltensor/tuning.h>

#include <chrono>
#include <string>
#include <vector>

namespace ocltensor {

class TuneScreen {
 public:
  // `problems`: how many there are.
  explicit TuneScreen(size_t problems);
  // Problem number `done` is under way.
  void show(size_t done, const tuning::Problem& problem, const tuning::Progress& progress);
  // It has ended: what was found of its classes, or why it was not tuned.
  void finish(const tuning::Problem& problem, const std::vector<tuning::Class>& found,
              const std::string& failure);
  void clear();  // the line

 private:
  std::string time_left(size_t done) const;

  const size_t problems_;
  const bool terminal_;
  const std::chrono::steady_clock::time_point begin_;
};

// Per family: how much faster the choices are than the rule's.
void print_table(const std::vector<tuning::Class>& classes);

}  // namespace ocltensor
