// What the family offers.
#include "ops/family.h"

#include "sparse.h"

namespace ocltensor::opencl::sparse {

Family family() { return {{sparse_operators()}, {sparse_algorithms}}; }

}  // namespace ocltensor::opencl::sparse
