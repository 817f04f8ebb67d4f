// What a group of checks or a case came to: said by the process that ran it, heard by the report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ocltensor/dtype.h"

namespace ocltensor::conformance {

struct Event {
  enum class Kind : uint8_t {
    Passed,    // a case of an operator
    Declined,  // a case; text: the reason
    NotRun,    // a case that the budget or an earlier crash left out
    Failed,    // a case; text: what is wrong, arguments: of the call
    Check,     // a group of checks has ended
    Stop,      // nothing more can be tested; text: why
    Done       // the process has said everything
  };
  Kind kind = Kind::Done;
  // Of cases.
  std::string op;
  DType dtype = DType::Float32;
  uint64_t seed = 0;
  std::string text, arguments;
  size_t task = 0, tasks = 0;  // which one of how many
  double spent = 0;            // processor seconds of the operator part so far
  // Of groups.
  int checks = 0;
  std::vector<std::string> failures, notes;
};

using Sink = std::function<void(const Event&)>;

// One line without its end, and back.
std::string to_line(const Event& event);
Event from_line(const std::string& line);

}  // namespace ocltensor::conformance
