// What the family offers.
#include "ops/family.h"

#include "attention.h"

namespace ocltensor::opencl::attention {

Family family() {
  return {
      {attention_operators()},
      {attention_backward_algorithms, attention_forward_algorithms, attention_weights_algorithms}};
}

}  // namespace ocltensor::opencl::attention
