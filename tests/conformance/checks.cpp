// The list of ABI checks.
#include "checks.h"

namespace ocltensor::conformance {

std::span<const AbiCheck> abi_checks() {
  static const auto& all = *new auto([] {
    std::vector<AbiCheck> list;
    for (const auto part : {kTableChecks, kMemoryChecks, kTransferChecks, kStreamChecks,
                            kGeneratorChecks, kOperatorChecks, kServiceChecks, kGraphChecks})
      list.insert(list.end(), part.begin(), part.end());
    return list;
  }());
  return all;
}

}  // namespace ocltensor::conformance
