// Layer normalisation for GPUs, forward and backward with respect to the input: `lanes` work-items (a power
// of two) share a row. Values are taken relative to a pivot among the row's elements (pivot.h).
// HELD: a row has at most 16 elements per lane, kept in registers; else every sweep reads it again.
//   COMPUTE; X, DY, W (weight and bias), S (saved statistics), OUT; HAS_WEIGHT, HAS_BIAS; GROUP (work-group
//   size); CENTRED: 1, or 0 for the root mean square, which takes no mean and saves none;
//   VEC: adjacent elements that a lane takes at a time: 1; or 16 bytes of them, for HELD rows of one type of
//   16 or 32 bits that start at multiples of 16 bytes
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "element_vectors.h"
#include "lanes.h"
#include "pivot.h"

#define PROLOGUE                                                                          \
  __local T shared[GROUP];                                                                \
  const uint id = get_local_id(0), lanes = lanes_, lane = id % lanes;                     \
  const long r = (long)get_group_id(0) * (GROUP / lanes) + id / lanes;                    \
  const long end = r < rows ? n : 0; /* nothing to do past the last row */                \
  __global const STYPE(X) *x = AT_CONST(X, x_base, x_offset) + r * n;                     \
  __global const STYPE(W) *w = AT_CONST(W, w_base, w_offset);                             \
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset) + r * n;
#ifdef HELD
#define PLACE(k) (((k) / VEC * lanes + lane) * VEC + (k) % VEC)
#define EACH                                                                              \
  UNROLL for (int k = 0; k < 16; ++k) {                                                   \
    const long i = PLACE(k);                                                              \
    if (i < end)
#define LAST }
#define X_OF(i) held[k]
#else
#define EACH for (long i = lane; i < end; i += lanes)
#define LAST
#define X_OF(i) (LOAD(X, x, i) - pivot)
#endif

// TAKE(A, to, from): loads the lane's elements of a row of type A, 0 past the end. PUT: stores them to `out`.
#define TAKE(A, to, from)                                             \
  UNROLL for (int k = 0; k < 16; k += VEC) {                          \
    UNROLL for (int j = 0; j < VEC; ++j) (to)[k + j] = 0;             \
    if (PLACE(k) < end) LOADV(A, from, PLACE(k), (to) + k);           \
  }
#define PUT(from)                          \
  UNROLL for (int k = 0; k < 16; k += VEC) \
    if (PLACE(k) < end) STOREV(OUT, out, PLACE(k), (from) + k);

__attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void layer_norm(
    __global const void *x_base, ulong x_offset, __global const void *w_base, ulong w_offset,
    __global const void *b_base, ulong b_offset, __global void *out_base, ulong out_offset,
    __global void *mean_base, ulong mean_offset, __global void *scale_base, ulong scale_offset, long rows,
    long n, long lanes_, ulong eps_) {
  PROLOGUE
  __global const STYPE(W) *b = AT_CONST(W, b_base, b_offset);
#ifdef HELD
  T held[16];
  TAKE(X, held, x)  // before reading the pivot's elements, which are among these: waits for memory once
#endif
  const T pivot = CENTRED && r < rows ? PIVOT(X, x, 0, n) : (T)0;
  T sum = 0;
#ifdef HELD
  UNROLL for (int k = 0; k < 16; ++k) held[k] -= pivot;
#endif
#if CENTRED
  EACH sum += X_OF(i); LAST
  const T mean = sum_of_lanes(shared, sum, id, lane, lanes, 1) / (T)n;
  sum = 0;
#else
  const T mean = 0;
#endif
  EACH {
    const T d = X_OF(i) - mean;
    sum += d * d;
  } LAST
  const T variance = sum_of_lanes(shared, sum, id, lane, lanes, 1) / (T)n;
  const T scale = (T)1 / sqrt(variance + FROM_BITS(COMPUTE, eps_));
  if (lane == 0 && r < rows) {
    if (CENTRED) STORE(S, AT(S, mean_base, mean_offset), r, pivot + mean);
    STORE(S, AT(S, scale_base, scale_offset), r, scale);
  }
#ifdef HELD
  T factor[16];
#if HAS_WEIGHT
  TAKE(W, factor, w)
#endif
  UNROLL for (int k = 0; k < 16; ++k) held[k] = (held[k] - mean) * scale * (HAS_WEIGHT ? factor[k] : (T)1);
#if HAS_BIAS
  TAKE(W, factor, b)
  UNROLL for (int k = 0; k < 16; ++k) held[k] += factor[k];
#endif
  PUT(held)
#else
  EACH {
    T y = (X_OF(i) - mean) * scale;
    if (HAS_WEIGHT) y *= TO(COMPUTE, LOAD(W, w, i));
    if (HAS_BIAS) y += TO(COMPUTE, LOAD(W, b, i));
    STORE(OUT, out, i, y);
  }
#endif
}

#ifdef HELD
#define G(i) gradient[k]
#define D(i) held[k]
#else
#define G(i) \
  (HAS_WEIGHT ? TO(COMPUTE, LOAD(DY, dy, i)) * TO(COMPUTE, LOAD(W, w, i)) : TO(COMPUTE, LOAD(DY, dy, i)))
#define D(i) (LOAD(X, x, i) - mean)
#endif
__attribute__((reqd_work_group_size(GROUP, 1, 1))) __kernel void layer_norm_backward(
    __global const void *dy_base, ulong dy_offset, __global const void *x_base, ulong x_offset,
    __global const void *w_base, ulong w_offset, __global const void *mean_base, ulong mean_offset,
    __global const void *scale_base, ulong scale_offset, __global void *out_base, ulong out_offset, long rows,
    long n, long lanes_) {
  PROLOGUE
  __global const STYPE(DY) *dy = AT_CONST(DY, dy_base, dy_offset) + r * n;
  const T mean = CENTRED && r < rows ? TO(COMPUTE, LOAD(S, AT_CONST(S, mean_base, mean_offset), r)) : (T)0;
  const T scale = r < rows ? TO(COMPUTE, LOAD(S, AT_CONST(S, scale_base, scale_offset), r)) : (T)0;
#ifdef HELD
  T gradient[16], held[16];
  TAKE(DY, gradient, dy)
  TAKE(X, held, x)
  UNROLL for (int k = 0; k < 16; ++k) held[k] -= mean;
#if HAS_WEIGHT
  {
    T factor[16];
    TAKE(W, factor, w)
    UNROLL for (int k = 0; k < 16; ++k) gradient[k] *= factor[k];
  }
#endif
#endif
  T sum = 0, dot = 0;
  EACH {
    const T g = G(i);
    sum += g;
    dot += g * D(i);
  } LAST
  sum = sum_of_lanes(shared, sum, id, lane, lanes, 1);
  dot = sum_of_lanes(shared, dot, id, lane, lanes, 1);
  const T k1 = CENTRED ? scale * sum / (T)n : (T)0, k2 = scale * scale * scale * dot / (T)n;
#ifdef HELD
  UNROLL for (int k = 0; k < 16; ++k) held[k] = gradient[k] * scale - k1 - held[k] * k2;
  PUT(held)
#else
  EACH STORE(OUT, out, i, G(i) * scale - k1 - D(i) * k2);
#endif
}
