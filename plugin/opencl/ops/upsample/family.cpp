// What the family offers.
#include "ops/family.h"

#include "upsample.h"

namespace ocltensor::opencl::upsample {

Family family() {
  return {{upsample_operators(), resample_operators()}, {upsample_algorithms, resample_algorithms}};
}

}  // namespace ocltensor::opencl::upsample
