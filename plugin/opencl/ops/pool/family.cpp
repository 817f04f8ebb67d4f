// What the family offers.
#include "ops/family.h"

#include "pool.h"

namespace ocltensor::opencl::pool {

Family family() {
  return {{pool_operators(), kFractionalOperators},
          {pool_average_algorithms, pool_fractional_algorithms, pool_max_algorithms,
           pool_max_backward_algorithms}};
}

}  // namespace ocltensor::opencl::pool
