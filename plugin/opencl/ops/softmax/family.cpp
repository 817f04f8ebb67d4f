// What the family offers.
#include "ops/family.h"

#include "softmax.h"

namespace ocltensor::opencl::softmax {

Family family() { return {{softmax_operators()}, {softmax_algorithms}}; }

}  // namespace ocltensor::opencl::softmax
