// Numbers of quantised weights as pairs of 16-bit numbers, for matrix units: a run's elements 0 and 2 in one
// word, 1 and 3 in the next, which is how masks take two bytes of a word at once. Included by
// weight_formats.h where PAIRS is 1; who includes that brings pair_from(low, high), which rounds two floats,
// add_to_pairs(a, b), permute_bytes(a, b, which) and and_or(a, b, c). Defines: TYPE f16 or bf16; those of
// quantised.h; ZEROS (the format subtracts zeros).
#ifndef OCLTENSOR_WEIGHT_PAIRS_H
#define OCLTENSOR_WEIGHT_PAIRS_H

#define PAIR_BITS_f16 10
#define PAIR_BITS_bf16 7
#define PAIR_BITS CAT(PAIR_BITS_, TYPE)  // digits behind the point
#define PAIR_EXPONENT(power) (((power) + (PAIR_BITS == 10 ? 15u : 127u)) << PAIR_BITS)
#define PAIR_WORD(power) (PAIR_EXPONENT(power) << 16 | PAIR_EXPONENT(power))

// Numbers of few bits are the first digits of one whose exponent is theirs, and so larger by a constant,
// BIAS, which holds what their format subtracts, too, but for zeros. Sums of x take both away: bias_of()
// times the scale is a part of the offset.
#define BIAS_int8 0
#define BIAS_int8_zeros 0
#define BIAS_e4m3 0
#define BIAS_e5m2 0
#define BIAS_int4 16
#define BIAS_int4_signed 24
#define BIAS_int4_tiles 24
#define BIAS_nf4 0
#define BIAS_fp4 0
#define BIAS_codes 0
#define BIAS_q8_0 0
#define BIAS_q4_0 24
#define BIAS_q4_1 16
#define BIAS_q5_0 48
#define BIAS_q5_1 32
#define BIAS_q2_k 4
#define BIAS_q3_k 12
#define BIAS_q4_k 16
#define BIAS_q5_k 32
#define BIAS_q6_k 96
#define BIAS_iq4_nl 0
#define BIAS_iq4_xs 0
#define BIAS CAT(BIAS_, FORMAT)
INLINE float bias_of(const Packed *a) { return ZEROS ? BIAS + a->zero : BIAS; }

INLINE float2 floats_of_pair(uint pair) {
#if PAIR_BITS == 7
  return as_float2((uint2)(pair << 16, pair & 0xffff0000u));
#else
  return vload_half2(0, (const half *)&pair);
#endif
}
INLINE float4 floats_of(Numbers v) {
  const float2 even = floats_of_pair(v.x), odd = floats_of_pair(v.y);
  return (float4)(even.x, odd.x, even.y, odd.y);
}
INLINE Numbers pairs_of(float4 v) { return (uint2)(pair_from(v.x, v.z), pair_from(v.y, v.w)); }

// 2^bits and the `bits` bits from `at` on of each byte.
INLINE Numbers biased(uint w, int at, int bits) {
  const int left = PAIR_BITS - bits - at;
  const uint mask = ((1u << bits) - 1) << (PAIR_BITS - bits), both = mask << 16 | mask;
  const uint even = left >= 0 ? w << left : w >> -left, odd = left >= 8 ? w << (left - 8) : w >> (8 - left);
  return (uint2)(and_or(even, both, PAIR_WORD(bits)), and_or(odd, both, PAIR_WORD(bits)));
}
INLINE Numbers bits_less(Words w, int at, int bits, int minus) { return biased(w, at, bits); }
INLINE Numbers nibbles_less(Words w, int at, float minus) { return biased(w, at, 4); }
INLINE float4 signed_floats(Words w) {  // the last digits of 2^23 and of 128 more than the number
  const uint u = w ^ 0x80808080u, above = 0x4b000000u;
  return as_float4((uint4)(permute_bytes(u, above, 0x7440), permute_bytes(u, above, 0x7441),
                           permute_bytes(u, above, 0x7442), permute_bytes(u, above, 0x7443))) -
         (0x1p23f + 128);
}
INLINE Numbers signed_bytes(Words w) {
#if PAIR_BITS > 8
  const uint u = w ^ 0x80808080u, less = pair_from(-1152, -1152);  // of 1024 and the byte
  return (uint2)(add_to_pairs((u & 0x00ff00ffu) | PAIR_WORD(10), less),
                 add_to_pairs((u >> 8 & 0x00ff00ffu) | PAIR_WORD(10), less));
#else
  return pairs_of(signed_floats(w));
#endif
}
INLINE Numbers signed_bytes_less(Words w, float minus) { return signed_bytes(w); }
INLINE Numbers e4m3_values(Words w) { return pairs_of(e4m3_floats(w)); }
INLINE Numbers e5m2_values(Words w) { return pairs_of(e5m2_floats(w)); }
#if CODED
INLINE Numbers codes(const Weight w, Words words, int at) { return pairs_of(code_floats(w, words, at)); }
#endif
#endif
