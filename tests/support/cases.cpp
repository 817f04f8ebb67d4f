// The list of case descriptors.
#include "cases.h"

namespace ocltensor::testing {

const FamilyCases* find_cases(std::string_view family) {
  static const FamilyCases* const kAll[] = {
      &kPointwiseCases,   &kCopyCases, &kReduceCases,   &kScanCases,     &kMatmulCases,
      &kConvCases,        &kPoolCases, &kUpsampleCases, &kNormCases,     &kSoftmaxCases,
      &kAttentionCases,   &kLossCases, &kIndexCases,    &kSortCases,     &kRandomCases,
      &kMultiTensorCases, &kFftCases,  &kLinalgCases,   &kSamplingCases, &kDistanceCases,
      &kSparseCases,      &kRnnCases,  &kVisionCases};
  for (const FamilyCases* cases : kAll)
    if (family == cases->family) return cases;
  return nullptr;
}

}  // namespace ocltensor::testing
