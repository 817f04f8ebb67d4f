// The list of case descriptors.
#include "cases.h"

namespace ocltensor::testing {

const FamilyCases* find_cases(std::string_view family) {
  static const FamilyCases* const kAll[] = {
#define OCLTENSOR_FAMILY(name) &name##_cases(),
#include "base/families.def"
#undef OCLTENSOR_FAMILY
  };
  for (const FamilyCases* cases : kAll)
    if (family == cases->family) return cases;
  return nullptr;
}

}  // namespace ocltensor::testing
