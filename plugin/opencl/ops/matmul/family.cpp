// What the family offers.
#include "ops/family.h"

#include "matmul.h"

namespace ocltensor::opencl::matmul {

Family family() {
  return {{matmul_operators(), matmul_grouped_operators()},
          {matmul_algorithms, matmul_grouped_algorithms}};
}

}  // namespace ocltensor::opencl::matmul
