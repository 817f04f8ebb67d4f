// What a family of operators offers, and the families of base/families.def, each of which says it
// in its family.cpp.
#pragma once

#include <span>
#include <vector>

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl {

struct Family {
  std::vector<std::span<const OpEntry>> operators;
  // Its lists of algorithms; a list enters reports at its first use.
  std::vector<const AlgorithmFamily& (*)()> algorithms;
};

#define OCLTENSOR_FAMILY(name) \
  namespace name {             \
  Family family();             \
  }
#include "base/families.def"
#undef OCLTENSOR_FAMILY

// All of them. Made anew at each call: not for a launch.
inline std::vector<Family> all_families() {
  return {
#define OCLTENSOR_FAMILY(name) name::family(),
#include "base/families.def"
#undef OCLTENSOR_FAMILY
  };
}

}  // namespace ocltensor::opencl
