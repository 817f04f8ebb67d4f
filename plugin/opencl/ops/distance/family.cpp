// What the family offers.
#include "ops/family.h"

#include "distance.h"

namespace ocltensor::opencl::distance {

Family family() { return {{distance_operators()}, {distance_algorithms}}; }

}  // namespace ocltensor::opencl::distance
