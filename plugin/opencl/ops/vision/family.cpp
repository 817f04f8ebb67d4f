// What the family offers.
#include "ops/family.h"

#include "vision.h"

namespace ocltensor::opencl::vision {

Family family() {
  return {{kNmsOperators, kRoiOperators, kDeformOperators},
          {deform_algorithms, deform_backward_algorithms, nms_algorithms, roi_algorithms,
           roi_backward_algorithms}};
}

}  // namespace ocltensor::opencl::vision
