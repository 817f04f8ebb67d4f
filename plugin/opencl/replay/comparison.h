// Compares what a replay computed with what the capture had: bit by bit, and where bits differ, as
// numbers of the tensor's type.
#pragma once

#include "ocltensor/dtype.h"
#include "replayer.h"

namespace ocltensor::replay {

struct Tensor {
  const capture_file::Result* result;
  std::string name;  // "addmm.out"
  DType dtype;
  int64_t elements = 0;
  int64_t different = 0;  // elements, in any bit
  double error = 0;       // the largest difference; infinite where only one is NaN or infinite
  double magnitude = 0;   // the largest finite captured number
  double epsilons = 0;    // error / (magnitude * epsilon of the type)
  bool right = true;
};

struct Verdict {
  std::vector<Tensor> tensors;
  uint64_t written_bytes = 0;    // of buffers that commands could write
  uint64_t different_bytes = 0;  // of the written bytes
  uint64_t unknown_bytes = 0;    // of these, those outside of tensors: scratch and freed memory
  bool bit_equal = true;
  bool right = true;
};

struct Rules {
  bool exact = false;      // every bit must be equal
  double tolerance = 512;  // epsilons of the type, relative to the tensor's largest number
};

// To be called after Replayer::run().
Verdict compare(const capture_file::Capture& capture, Replayer& replayer, const Rules& rules,
                const Progress& progress);

}  // namespace ocltensor::replay
