// What the family offers.
#include "ops/family.h"

#include "scan.h"

namespace ocltensor::opencl::scan {

Family family() {
  return {{scan_operators()},
          {scan_algorithms, scan_extremes_algorithms, scan_products_algorithms}};
}

}  // namespace ocltensor::opencl::scan
