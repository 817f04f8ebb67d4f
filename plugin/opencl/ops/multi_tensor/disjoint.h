// Whether a call may write where it writes: no other tensor of its lists lies there.
#pragma once

#include <vector>

#include "tensor_backend/plugin.h"

namespace ocltensor::opencl::multi_tensor {

// Memory that a call uses, [begin, end).
struct Used {
  tb_address begin, end;
  bool written;
};

// No range that is written overlaps any other one. Reorders `used`.
bool are_disjoint(std::vector<Used>& used);

}  // namespace ocltensor::opencl::multi_tensor
