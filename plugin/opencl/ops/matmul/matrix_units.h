// Whether a kernel for matrix units may run: the device, the settings, and a test of each kernel,
// once per driver, against exact sums.
#pragma once

#include <atomic>

#include "ops/op_call.h"

namespace ocltensor::opencl {

// Why no such kernel runs on this device or under these settings, or nullptr.
const char* refuse_matrix_units(const OpCall& call);

// What is known of one kernel on one device. Zero-initialised: nothing.
struct Proof {
  enum State : uint8_t { Unknown, Right, Wrong };
  std::atomic<uint8_t> state{Unknown};
};

// Is the kernel of `source` and `defines` right? The first time, `test` runs it, unless the cache
// on disk says that it has passed with this driver; it returns what was wrong, or an empty text. A
// wrong kernel, or one that does not compile, is logged as a warning and not used any more.
bool is_proven(const OpCall& call, Proof& proof, const Source& source, const Defines& defines,
               std::string (*test)(const OpCall& call, const void* what), const void* what);

}  // namespace ocltensor::opencl
