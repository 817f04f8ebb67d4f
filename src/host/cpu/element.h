// Moving elements of any dtype to and from chunks of double (floating types) or int64_t (integers
// and bool): the only place of the CPU backend that knows how elements are stored.
#pragma once

#include <cstdint>

#include "ocltensor/dtype.h"

namespace ocltensor::cpu {

// True if the CPU backend computes with this dtype in double, else in int64_t.
constexpr bool computes_in_double(DType t) { return is_floating(t) || is_float8(t); }

// `stride` is in elements and may be 0 or negative. Floating values become integers by truncation
// (out of range: the lowest int64), everything becomes bool by comparison with 0, wide integers
// narrow modulo 2^n, doubles are rounded once (16-bit floats: by way of float32, as ATen does).
void load(double* to, const void* from, DType type, int64_t stride, int64_t count);
void load(int64_t* to, const void* from, DType type, int64_t stride, int64_t count);
void store(void* to, DType type, int64_t stride, const double* from, int64_t count);
void store(void* to, DType type, int64_t stride, const int64_t* from, int64_t count);

// Rounds to what `type` can hold: the value after a store and a load.
double rounded(double value, DType type);
int64_t rounded(int64_t value, DType type);

}  // namespace ocltensor::cpu
