// What the family offers.
#include "ops/family.h"

#include "loss.h"

namespace ocltensor::opencl::loss {

Family family() {
  return {{loss_operators()},
          {loss_algorithms, ctc_loss_algorithms, multilabel_margin_loss_algorithms,
           nll_loss_algorithms}};
}

}  // namespace ocltensor::opencl::loss
