// How formats of weights are kept: load_unit_<format> loads a unit's bytes, which begin at element k of row
// n, with a scale for each span and an offset where the format has some; numbers_<format> makes its run i
// (RUN elements) numbers. Included by quantised.h; the table is src/base/weight_formats.def. Blocks of GGUF:
// ggml's ggml-common.h describes them.
#ifndef OCLTENSOR_WEIGHT_FORMATS_H
#define OCLTENSOR_WEIGHT_FORMATS_H

#define LOADS_UNIT(format) INLINE void CAT(load_unit_, format)(const Weight w, long n, long k, Packed *to)
#define NUMBERS_OF(format) INLINE Numbers CAT(numbers_, format)(const Weight w, const Packed *a, int i)

// The words of run i of the 16 bytes that were loaded as number `load`, and the vector that run i is in.
#define WORDS(a, load, i) ((a)->words[(load) * 16 / RUN + (i) % (16 / RUN)])
#define VECTOR_OF(i) ((i) / (16 / RUN))
#define UPPER (LOADS - UPPER_LOADS)  // the first load of upper bits
#ifndef TURNED
#define TURNED 0
#endif
#define LOW(words) ((words) & 0x0f0f0f0fu)
#define HIGH(words) ((words) >> 4 & 0x0f0f0f0fu)

// ---- Numbers of bytes and their halves
#if CPU_STYLE
INLINE Numbers signed_bytes(Words w) { return convert_float16(as_char16(w)); }
// `bits` bits of each byte from `at` on, 7 at most, less `minus`.
INLINE Numbers bits_less(Words w, int at, int bits, int minus) {
  const uint mask = ((1u << bits) - 1) * 0x01010101u;
  return convert_float16(as_char16(as_uchar16(w >> at & mask) - (uchar16)(minus)));
}
INLINE Numbers signed_bytes_less(Words w, float minus) { return signed_bytes(w) - (Numbers)(minus); }
INLINE Numbers nibbles_less(Words w, int at, float minus) {
  return bits_less(w, at, 4, 0) - (Numbers)(minus);
}
// The exponent and the digits of a number of 8 bits stand at the right place of a float. Exponents of 0 have
// no first digit; numbers from `endless` on are infinite or NaN.
INLINE Numbers float8_values(Words words, uint digits, uint bias, uint endless) {
  const uint16 bits = convert_uint16(as_uchar16(words)), magnitude = bits & 0x7f;
  const uint16 placed = magnitude << (23 - digits);
  const uint least = (128 - bias) << 23;
  const float16 normal = as_float16(placed + ((127 - bias) << 23));
  const float16 tiny = as_float16(placed + least) - as_float(least);
  float16 v = select(normal, tiny, as_int16(magnitude - (1u << digits)));
  v = select(v, as_float16(placed | 0x7f800000u), as_int16(endless - 1 - magnitude));
  return as_float16(as_uint16(v) | (bits & 0x80u) << 24);
}
INLINE Numbers e4m3_values(Words words) { return float8_values(words, 3, 7, 0x7f); }
INLINE Numbers e5m2_values(Words words) { return float8_values(words, 2, 15, 0x7c); }
#else
// Bits `at` and so on of a word are the last digits of a float whose digits begin with 2^(23 - at): what is
// above that is the number. Devices convert slower than they mask and subtract. `minus` is a whole number.
INLINE float field(uint w, uint mask, int at, uint flipped, float minus) {
  const uint exponent = (uint)(150 - at) << 23;
  return as_float((w & mask << at) ^ (exponent | flipped << at)) - (as_float(exponent) + minus);
}
INLINE float4 fields(uint w, uint mask, int at, uint flipped, float minus) {
  const uint upper = w >> 16;
  return (float4)(field(w, mask, at, flipped, minus), field(w, mask, at + 8, flipped, minus),
                  field(upper, mask, at, flipped, minus), field(upper, mask, at + 8, flipped, minus));
}
// The exponent and the digits of a number of 8 bits stand at the right place of a half, whose exponents are
// 2^8 smaller; all ones are NaN.
INLINE float2 e4m3_pair(uint bytes) {  // bits 0 to 7 and 16 to 23
  const uint magnitude = bytes & 0x007f007fu, nan = magnitude + 0x00010001u & 0x00800080u;
  const uint halves = (magnitude | nan) << 7 | (bytes & 0x00800080u) << 8;
  return vload_half2(0, (const half *)&halves) * 0x1p8f;
}
INLINE float4 e4m3_floats(Words words) {
  const float2 even = e4m3_pair(words), odd = e4m3_pair(words >> 8);
  return (float4)(even.x, odd.x, even.y, odd.y);
}
INLINE float2 e5m2_pair(uint bytes) {  // the upper halves of half floats
  const uint halves = (bytes & 0x00ff00ffu) << 8;
  return vload_half2(0, (const half *)&halves);
}
INLINE float4 e5m2_floats(Words words) {
  const float2 even = e5m2_pair(words), odd = e5m2_pair(words >> 8);
  return (float4)(even.x, odd.x, even.y, odd.y);
}
#if PAIRS
#include "weight_pairs.h"
#elif BYTES
#include "weight_bytes.h"
#else
INLINE Numbers signed_bytes(Words w) { return fields(w, 0xff, 0, 0x80, 128); }
INLINE Numbers signed_bytes_less(Words w, float minus) { return signed_bytes(w) - minus; }
INLINE Numbers bits_less(Words w, int at, int bits, int minus) {
  return fields(w, (1u << bits) - 1, at, 0, minus);
}
INLINE Numbers nibbles_less(Words w, int at, float minus) {
#if BYTE_ZEROS
  return fields(w, 0x0f, at, 0, minus);
#else
  return fields(w, 0x0f, at, 0, 0) - minus;
#endif
}
INLINE Numbers e4m3_values(Words words) { return e4m3_floats(words); }
INLINE Numbers e5m2_values(Words words) { return e5m2_floats(words); }
#if CODED
INLINE Numbers codes(const Weight w, Words words, int at) { return code_floats(w, words, at); }
#endif
#endif
#endif

LOADS_UNIT(int8) {
  UNROLL for (int i = 0; i < 2; ++i) load_words(w, n * w.pitch + k + 16 * i, i, to);
  to->scale[0] = scale_at(w, n, k);
}
NUMBERS_OF(int8) { return signed_bytes(WORDS(a, VECTOR_OF(i), i)); }

LOADS_UNIT(int8_zeros) {
  load_unit_int8(w, n, k, to);
  to->zero = zero_at(w, n, k);
}
NUMBERS_OF(int8_zeros) { return signed_bytes_less(WORDS(a, VECTOR_OF(i), i), a->zero); }

#if !BYTES
LOADS_UNIT(e4m3) { load_unit_int8(w, n, k, to); }
NUMBERS_OF(e4m3) { return e4m3_values(WORDS(a, VECTOR_OF(i), i)); }

LOADS_UNIT(e5m2) { load_unit_int8(w, n, k, to); }
NUMBERS_OF(e5m2) { return e5m2_values(WORDS(a, VECTOR_OF(i), i)); }
#endif

LOADS_UNIT(int4) {
  load_words(w, n * w.pitch + (k >> 1), 0, to);
  to->scale[0] = scale_at(w, n, k);
  to->zero = zero_at(w, n, k);
}
NUMBERS_OF(int4) { return nibbles_less(WORDS(a, 0, i), 4 * VECTOR_OF(i), a->zero); }

LOADS_UNIT(int4_signed) {
  load_words(w, n * w.pitch + (k >> 1), 0, to);
  to->scale[0] = scale_at(w, n, k);
  to->offset[0] = zero_at(w, n, k);
}
NUMBERS_OF(int4_signed) { return bits_less(WORDS(a, 0, i) ^ 0x88888888u, 4 * VECTOR_OF(i), 4, 8); }

LOADS_UNIT(int4_tiles) {
  const int t = w.tile, column = (int)k;
  const long row = ((n >> 3) * (w.k >> t) << (t + 2)) + ((n & 7) << (t - 1));
  load_words(w, row + ((long)(column >> t) << (t + 2)) + ((column & ((1 << t) - 1)) >> 1), 0, to);
  to->scale[0] = scale_at(w, n, k);
  to->offset[0] = zero_at(w, n, k);
}
NUMBERS_OF(int4_tiles) { return bits_less(WORDS(a, 0, i), 4 * VECTOR_OF(i), 4, 8); }

#if CODED
#define CODED_FORMAT(format)                                                                        \
  LOADS_UNIT(format) {                                                                              \
    load_words(w, (n * w.k + k) >> 1, 0, to);                                                       \
    to->scale[0] = scale_at(w, n, k);                                                               \
  }                                                                                                 \
  NUMBERS_OF(format) { return codes(w, WORDS(a, 0, i), 4 - 4 * VECTOR_OF(i)); }
CODED_FORMAT(nf4)
CODED_FORMAT(fp4)
CODED_FORMAT(codes)

LOADS_UNIT(iq4_nl) {
  const long at = n * w.pitch + k / 32 * 18;
  load_words(w, at + 2, 0, to);
  to->scale[0] = half_at(w, at);
}
NUMBERS_OF(iq4_nl) { return codes(w, WORDS(a, 0, i), 4 * VECTOR_OF(i)); }

// Scales less 32: 2 bits of each in a number of 16 bits, then 4 bits, two in a byte.
LOADS_UNIT(iq4_xs) {
  const long at = n * w.pitch + k / 256 * 136;
  const int part = (int)(k % 256) / 32;
  load_words(w, at + 8 + 16 * part, 0, to);
  const uint upper = word_at(w, at) >> 16, lower = word_at(w, at + 4);
  const int scale = (lower >> 4 * part & 15) | (upper >> 2 * part & 3) << 4;
  to->scale[0] = half_at(w, at) * (scale - 32);
}
NUMBERS_OF(iq4_xs) { return codes(w, WORDS(a, 0, i), 4 * VECTOR_OF(i)); }
#endif

LOADS_UNIT(q8_0) {
  const long at = n * w.pitch + k / 32 * 34;
  UNROLL for (int i = 0; i < 2; ++i) load_words(w, at + 2 + 16 * i, i, to);
  to->scale[0] = half_at(w, at);
}
NUMBERS_OF(q8_0) { return signed_bytes(WORDS(a, VECTOR_OF(i), i)); }

LOADS_UNIT(q4_0) {
  const long at = n * w.pitch + k / 32 * 18;
  load_words(w, at + 2, 0, to);
  to->scale[0] = half_at(w, at);
}
NUMBERS_OF(q4_0) { return bits_less(WORDS(a, 0, i), 4 * VECTOR_OF(i), 4, 8); }

LOADS_UNIT(q4_1) {
  const long at = n * w.pitch + k / 32 * 20;
  load_words(w, at + 4, 0, to);
  to->scale[0] = half_at(w, at);
  to->offset[0] = half_at(w, at + 2);
}
NUMBERS_OF(q4_1) { return bits_less(WORDS(a, 0, i), 4 * VECTOR_OF(i), 4, 0); }

#if FIFTH_BITS
// Bit i of the word is that of element i, and becomes bit 4 of its byte.
INLINE Words five_bits(const Packed *a, int i) {
#if CPU_STYLE
  const uint4 upper = (uint4)(a->fifth >> 16 * i) >> (uint4)(0, 4, 8, 12) & 15u;
#else
  const uint upper = a->fifth >> 4 * i & 15u;
#endif
  return LOW(WORDS(a, 0, i) >> 4 * VECTOR_OF(i)) | (upper * 0x02040810u & 0x10101010u);
}

LOADS_UNIT(q5_0) {
  const long at = n * w.pitch + k / 32 * 22;
  load_words(w, at + 6, 0, to);
  to->fifth = word_at(w, at + 2);
  to->scale[0] = half_at(w, at);
}
NUMBERS_OF(q5_0) { return bits_less(five_bits(a, i), 0, 5, 16); }

LOADS_UNIT(q5_1) {
  const long at = n * w.pitch + k / 32 * 24;
  load_words(w, at + 8, 0, to);
  to->fifth = word_at(w, at + 4);
  to->scale[0] = half_at(w, at);
  to->offset[0] = half_at(w, at + 2);
}
NUMBERS_OF(q5_1) { return bits_less(five_bits(a, i), 0, 5, 0); }
#endif

#if SPANS == 4  // others have no place for their scales
// 32 bytes have two lower bits of four elements each, of two chunks of 64. They are loaded for either.
INLINE void load_two_bits(const Weight w, long at, int chunk, Packed *to) {
  UNROLL for (int i = 0; i < 2; ++i) load_bits(w, at + 32 * (chunk / 2) + 16 * i, 4 * (chunk % 2), i, to);
}

// A byte for 16 elements: 4 bits of their scale, 4 of their minimum.
LOADS_UNIT(q2_k) {
  const long at = n * w.pitch + k / 256 * 84;
  const int chunk = (int)(k % 256) / 64;
  load_two_bits(w, at + 16, chunk, to);
  const uint parts = word_at(w, at + 4 * chunk);
  const float d = half_at(w, at + 80), least = -half_at(w, at + 82);
  vstore4(d * convert_float4(as_uchar4(LOW(parts))), 0, to->scale);
  vstore4(least * convert_float4(as_uchar4(HIGH(parts))), 0, to->offset);
}
NUMBERS_OF(q2_k) {
  return bits_less(WORDS(a, TURNED ? 0 : VECTOR_OF(i) % 2, i), VECTOR_OF(i) / 2 * 2, 2, 0);
}

// 32 bytes with the third bits of 8 elements each come first. Of 16 scales less 32 there are 8 bytes with 4
// bits of two, then 4 with 2 bits of four.
LOADS_UNIT(q3_k) {
  const long at = n * w.pitch + k / 256 * 110;
  const int chunk = (int)(k % 256) / 64;
  load_two_bits(w, at + 32, chunk, to);
  UNROLL for (int i = 0; i < 2; ++i) load_bits(w, at + 16 * i, 2 * chunk, UPPER + i, to);
  const uint low = word_at(w, at + 96 + 4 * (chunk % 2)) >> 4 * (chunk / 2);
  const uint scales = LOW(low) | (word_at(w, at + 104) >> 2 * chunk & 0x03030303u) << 4;
  vstore4(half_at(w, at + 108) * (convert_float4(as_uchar4(scales)) - 32.0f), 0, to->scale);
}
NUMBERS_OF(q3_k) {
  const int upper = VECTOR_OF(i) / 2, half_of = TURNED ? 0 : VECTOR_OF(i) % 2;  // of 64 elements, of 32
  const Words two = WORDS(a, half_of, i) >> 2 * upper, third = WORDS(a, UPPER + half_of, i) << (2 - upper);
  return bits_less((two & 0x03030303u) | (third & 0x04040404u), 0, 3, 4);
}
#endif

#if SPANS == 2  // others have no place for its scales
// Scales and minima of 32 elements, of a chunk of 64, have 6 bits: of the first four the low ones of 4 bytes
// each, of the others 4 bits in the last four bytes and 2 at the top of the first ones.
INLINE void load_k_scales(const Weight w, long at, int chunk, Packed *to) {
  // Two neighbours at once.
  __global const ushort *pair = (__global const ushort *)(w.bytes + at + 4) + chunk % 2;
  const uint a = pair[0], b = pair[2], c = pair[4];
  const uint s = chunk < 2 ? a & 0x3f3f : (c & 0x0f0f) | (a >> 2 & 0x3030);
  const uint m = chunk < 2 ? b & 0x3f3f : (c >> 4 & 0x0f0f) | (b >> 2 & 0x3030);
  const float d = half_at(w, at), least = -half_at(w, at + 2);
  to->scale[0] = d * (s & 0xff);
  to->scale[1] = d * (s >> 8);
  to->offset[0] = least * (m & 0xff);
  to->offset[1] = least * (m >> 8);
}

// Of 64 elements the first half is in the low nibbles.
LOADS_UNIT(q4_k) {
  const long at = n * w.pitch + k / 256 * 144;
  const int chunk = (int)(k % 256) / 64;
  UNROLL for (int i = 0; i < 2; ++i) load_words(w, at + 16 + 32 * chunk + 16 * i, i, to);
  load_k_scales(w, at, chunk, to);
}
NUMBERS_OF(q4_k) { return bits_less(WORDS(a, VECTOR_OF(i) % 2, i), VECTOR_OF(i) / 2 * 4, 4, 0); }

// As q4_k, whose nibbles come behind 32 bytes with the fifth bits of 8 elements each, two of a chunk.
LOADS_UNIT(q5_k) {
  const long at = n * w.pitch + k / 256 * 176;
  const int chunk = (int)(k % 256) / 64;
  UNROLL for (int i = 0; i < 2; ++i) {
    load_words(w, at + 48 + 32 * chunk + 16 * i, i, to);
    load_bits(w, at + 16 + 16 * i, 2 * chunk, UPPER + i, to);
  }
  load_k_scales(w, at, chunk, to);
}
NUMBERS_OF(q5_k) {
  const int upper = VECTOR_OF(i) / 2, half_of = TURNED ? 0 : VECTOR_OF(i) % 2;  // of 64 elements, of 32
  const Words four = LOW(WORDS(a, half_of, i) >> 4 * upper);
  const Words fifth = WORDS(a, UPPER + half_of, i) << (4 - upper);
  return bits_less(four | (fifth & 0x10101010u), 0, 5, 0);
}
#endif

// Of 128 elements: 64 bytes of low nibbles, 32 with two upper bits of four elements each, 8 scales.
LOADS_UNIT(q6_k) {
  const long at = n * w.pitch + k / 256 * 210;
  const int part = (int)(k % 256) / 128;
  UNROLL for (int i = 0; i < 4; ++i) load_words(w, at + 64 * part + 16 * i, i, to);
  UNROLL for (int i = 0; i < 2; ++i) load_words(w, at + 128 + 32 * part + 16 * i, UPPER + i, to);
  const float d = half_at(w, at + 208);
  vstore8(d * convert_float8(vload8(0, (__global const char *)w.bytes + at + 192 + 8 * part)), 0, to->scale);
}
NUMBERS_OF(q6_k) {
  const int quarter = VECTOR_OF(i) / 2, half_of = VECTOR_OF(i) % 2;  // of 32 elements, of 16
  const Words four = WORDS(a, TURNED ? 0 : quarter % 2 * 2 + half_of, i);
  const Words top = WORDS(a, UPPER + (TURNED ? 0 : half_of), i);
  const Words two = quarter < 2 ? top << (4 - 2 * quarter) : top >> (2 * quarter - 4);
  return bits_less((quarter < 2 ? LOW(four) : HIGH(four)) | (two & 0x30303030u), 0, 6, 32);
}
#endif
