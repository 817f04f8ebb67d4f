// What the family offers.
#include "ops/family.h"

#include "random.h"

namespace ocltensor::opencl::random {

Family family() {
  return {{random_operators(), permute_operators(), rejection_operators()}, {random_algorithms}};
}

}  // namespace ocltensor::opencl::random
