// The defines of kernels/matrix_units/include/matrix_unit.h.
#pragma once

#include "kernels/defines.h"
#include "runtime/program/defines.h"
#include "units.h"

namespace ocltensor::opencl::matrix_units {

// `fragment` is that of a unit which has several.
inline void set_unit(Defines& d, const Architecture& a, bool emulated, int64_t fragment,
                     Kind kind) {
  d.set(define::UNIT, static_cast<int64_t>(a.unit)).set(define::GENERATION, a.generation);
  d.set(define::FRAGMENT, fragment).set(define::EMULATED, emulated);
  d.type(define::TYPE, type_of(kind));
}

}  // namespace ocltensor::opencl::matrix_units
