// What the family offers.
#include "ops/family.h"

#include "conv.h"

namespace ocltensor::opencl::conv {

Family family() { return {{conv_operators()}, {conv_algorithms}}; }

}  // namespace ocltensor::opencl::conv
