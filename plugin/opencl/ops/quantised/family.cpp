// What the family offers.
#include "ops/family.h"

#include "quantised.h"

namespace ocltensor::opencl::quantised {

Family family() { return {{product_operators(), unpack_operators()}, {quantised_algorithms}}; }

}  // namespace ocltensor::opencl::quantised
