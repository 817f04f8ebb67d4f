// Runs a case on a backend: places tensors between sentinels, calls the operator, and reports
// everything that a caller could hold against it.
#pragma once

#include <vector>

#include "backend.h"
#include "case.h"
#include "draw.h"

namespace ocltensor::testing {

struct Outcome {
  tb_status supports = TB_OK;
  tb_status status = TB_OK;
  uint32_t reason = 0;
  std::string message;
  std::vector<HostTensor> outs;         // outputs, then the arguments of Case::mutates
  std::vector<std::string> violations;  // damaged sentinels, changed inputs, disagreement
};

// `layouts` gives the layouts of outputs; nullptr: contiguous. Throws only where the backend fails
// outside the operator (memory, copies).
Outcome execute(const Backend& backend, const Case& c, const std::vector<TensorSpec>& specs,
                Draw* layouts);

std::string reason_name(uint32_t reason);

}  // namespace ocltensor::testing
