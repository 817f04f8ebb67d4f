// What the family offers.
#include "ops/family.h"

#include "sort.h"

namespace ocltensor::opencl::sort {

Family family() {
  return {{sort_operators(), search_operators(), order_statistic_operators()},
          {sort_algorithms, search_algorithms, order_statistic_algorithms}};
}

}  // namespace ocltensor::opencl::sort
