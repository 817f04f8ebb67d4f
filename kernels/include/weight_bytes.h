// Numbers of quantised weights as bytes, four in a word, for products of bytes. Included by weight_formats.h
// where BYTES is 1. Defines: those of quantised.h; ZEROS (the format subtracts zeros).
#ifndef OCLTENSOR_WEIGHT_BYTES_H
#define OCLTENSOR_WEIGHT_BYTES_H

// What the format subtracts from a number of few bits; zeros are subtracted besides.
#define BIAS_int8 0
#define BIAS_int8_zeros 0
#define BIAS_int4 0
#define BIAS_int4_signed 8
#define BIAS_int4_tiles 8
#define BIAS_q8_0 0
#define BIAS_q4_0 8
#define BIAS_q4_1 0
#define BIAS_q5_0 16
#define BIAS_q5_1 0
#define BIAS_q2_k 0
#define BIAS_q3_k 4
#define BIAS_q4_k 0
#define BIAS_q5_k 0
#define BIAS_q6_k 32
#define BIAS CAT(BIAS_, FORMAT)
INLINE float bias_of(const Packed *a) { return ZEROS ? BIAS + a->zero : BIAS; }
INLINE float4 floats_of(Numbers v) { return convert_float4(as_char4(v)); }

INLINE Numbers signed_bytes(Words w) { return w; }
INLINE Numbers signed_bytes_less(Words w, float minus) { return w; }
INLINE Numbers bits_less(Words w, int at, int bits, int minus) {
  return w >> at & ((1u << bits) - 1) * 0x01010101u;
}
INLINE Numbers nibbles_less(Words w, int at, float minus) { return bits_less(w, at, 4, 0); }
#endif
