// What the family offers.
#include "ops/family.h"

#include "norm.h"

namespace ocltensor::opencl::norm {

Family family() {
  return {{norm_operators()},
          {layer_norm_algorithms, layer_norm_backward_algorithms, plane_norm_algorithms,
           plane_norm_backward_algorithms}};
}

}  // namespace ocltensor::opencl::norm
