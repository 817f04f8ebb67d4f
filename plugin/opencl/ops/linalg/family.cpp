// What the family offers.
#include "ops/family.h"

#include "linalg.h"

namespace ocltensor::opencl::linalg {

Family family() {
  return {{cholesky_operators(), lu_operators(), qr_operators(), svd_operators(), eigh_operators(),
           eig_operators(), ldl_operators()},
          {linalg_algorithms, lu_algorithms, svd_algorithms, eigh_algorithms, eig_algorithms}};
}

}  // namespace ocltensor::opencl::linalg
