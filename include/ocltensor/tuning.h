// Tuning: fits kernels to a device by measuring, once. Of each class of shapes every algorithm is
// run with every configuration (sizes of tiles, numbers of pieces) that suits the device, compared
// with the rule's choice, and timed; what is faster by a margin is kept on disk, and chosen from
// then on. The program ocltensor-tune does this with a bar; a program's own shapes are tuned by
// the setting OCLTENSOR_TUNE=full (or quick) while they run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ocltensor/device.h"

namespace ocltensor::tuning {

// A problem of the backend's table.
struct Problem {
  uint32_t number;
  std::string family, dtype;  // "matmul", "float32"
  bool quick;                 // one of the few that are tuned even if time is short
  double operations;          // multiplications and additions
  std::string text;           // "512 x 768 x 768 NT"
};
// Those that are worth tuning on a device; empty if its backend has nothing to tune.
OCLTENSOR_API std::vector<Problem> problems(Device device);

// What has been found for a class of shapes. A choice is an algorithm's id with its configuration:
// "matmul.packed/rows:64/panels:2". Times in microseconds.
struct Class {
  Device device;
  std::string family, shapes;
  std::string rule, best;
  double rule_time, best_time;
  uint32_t tried, wrong;  // choices; wrong: the results differed, or it failed
  bool complete;          // false: stop() came before its last choice
};
struct Progress {
  std::string family, shapes, choice;
  uint32_t index, count;        // of the choice under way, and of all
  double rule_time, best_time;  // so far; 0: not known yet
  uint32_t classes;             // tuned since start()
};

// Begins anew: results() and progress() are empty, and stop() no longer holds.
OCLTENSOR_API void start(Device device);
enum class Effort : uint8_t {
  Quick,  // a few configurations of each algorithm
  Full    // all of them
};
// Measures what is missing of a problem's class of shapes, and returns when that is done. Errors of
// the operator (such as TB_UNSUPPORTED) are thrown.
OCLTENSOR_API void tune(Device device, const Problem& problem, Effort effort);
// From another thread: tune() ends after its current choice, keeps what it has measured, and does
// nothing until start().
OCLTENSOR_API void stop(Device device);
OCLTENSOR_API Progress progress(Device device);
OCLTENSOR_API std::vector<Class> results(Device device);

// The file that keeps the measurements of a device; empty without a cache folder.
OCLTENSOR_API std::string measurements_file(Device device);
// The same as a file for other machines with such a device (OCLTENSOR_TUNED_FILES).
OCLTENSOR_API std::string export_measurements(Device device);

}  // namespace ocltensor::tuning
