// A product that is made only if a word in memory has a value: two ways to a result are enqueued,
// and an earlier kernel chooses between them without the host.
#pragma once

#include "matmul.h"

namespace ocltensor::opencl {

struct Guard {
  tb_address word = 0;  // of a uint; 0: no guard
  uint32_t value = 0;
};

// elements.cpp: float32 by portable tiles, if the word has the value.
void run_portable_tiles(const OpCall& call, const MatmulProblem& problem, const Guard& guard);

}  // namespace ocltensor::opencl
