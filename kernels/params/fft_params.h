// Parameters of the FFT kernels: transforms of `length` along the middle of [outer, length, inner].
#ifndef OCLTENSOR_FFT_PARAMS_H
#define OCLTENSOR_FFT_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 count, per_item;  // butterflies or elements, and how many a work-item of a CPU driver takes
  tk_i64 length, inner;
  // of the middle dimension in memory; about half of `length` for a Hermitian spectrum
  tk_i64 in_length, out_length;
  tk_i64 done;                   // product of the radices of earlier passes
  tk_i32 low_bits;               // bits of an exponent that the low part of the table of roots covers
  float sign;                    // 1: forward, -1: inverse
  tk_u64 scale;                  // of results: bits of a PART
} FftParams;
#endif
