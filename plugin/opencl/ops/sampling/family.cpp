// What the family offers.
#include "ops/family.h"

#include "sampling.h"

namespace ocltensor::opencl::sampling {

Family family() {
  return {{sampling_operators()}, {sampling_algorithms, sampling_backward_algorithms}};
}

}  // namespace ocltensor::opencl::sampling
