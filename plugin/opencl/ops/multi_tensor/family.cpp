// What the family offers.
#include "ops/family.h"

#include "multi_tensor.h"

namespace ocltensor::opencl::multi_tensor {

Family family() {
  return {{cat_operators(), foreach_operators(), optimizer_operators(), amp_operators()},
          {cat_algorithms, multi_tensor_algorithms}};
}

}  // namespace ocltensor::opencl::multi_tensor
