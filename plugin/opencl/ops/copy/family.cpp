// What the family offers.
#include "ops/family.h"

#include "copy.h"

namespace ocltensor::opencl::copy {

Family family() { return {{copy_operators(), kCreateOperators, kPadOperators}, {copy_algorithms}}; }

}  // namespace ocltensor::opencl::copy
