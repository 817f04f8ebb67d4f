// What the family offers.
#include "ops/family.h"

#include "reduction.h"

namespace ocltensor::opencl::reduce {

Family family() {
  return {{reduce_operators()}, {reduction_algorithms, variance_algorithms, arg_algorithms}};
}

}  // namespace ocltensor::opencl::reduce
