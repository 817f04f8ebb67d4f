// What the family offers.
#include "ops/family.h"

#include "index.h"

namespace ocltensor::opencl::index {

Family family() {
  return {{move_operators(), scatter_operators(), advanced_operators(), select_operators(),
           kHistogramOperators},
          {accumulation_algorithms, histogram_algorithms, index_move_algorithms,
           index_put_algorithms, selection_algorithms}};
}

}  // namespace ocltensor::opencl::index
