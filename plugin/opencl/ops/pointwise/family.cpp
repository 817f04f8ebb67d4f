// What the family offers.
#include "ops/family.h"

#include "ops/elementwise/elementwise.h"
#include "pointwise.h"

namespace ocltensor::opencl::pointwise {

Family family() { return {{pointwise_operators()}, {elementwise::pointwise_algorithms}}; }

}  // namespace ocltensor::opencl::pointwise
