// Whether the memory that a call writes is disjoint from all other memory of its lists.
#pragma once

#include <vector>

#include "tensor_backend/plugin.h"

namespace ocltensor::opencl::multi_tensor {

// Memory that a call uses, [begin, end).
struct Used {
  tb_address begin, end;
  bool written;
};

// Whether no range that is written overlaps any other one. Reorders `used`.
bool are_disjoint(std::vector<Used>& used);

}  // namespace ocltensor::opencl::multi_tensor
