// How formats of weights are kept: load_<format> loads a unit's bytes, which begin at element k of row n,
// with a scale for each span and an offset where the format has some; numbers_<format> makes its run i (RUN
// elements) numbers. Included by quantised.h; the table is src/base/weight_formats.def. Blocks of GGUF:
// ggml's ggml-common.h describes them.
#ifndef OCLTENSOR_WEIGHT_FORMATS_H
#define OCLTENSOR_WEIGHT_FORMATS_H

#define LOADS_UNIT(format) INLINE void CAT(load_, format)(const Weight w, long n, long k, Packed *to)
#define NUMBERS_OF(format) INLINE Numbers CAT(numbers_, format)(const Weight w, const Packed *a, int i)

// The words of run i of the 16 bytes that were loaded as number `load`, and the vector that run i is in.
#define WORDS(a, load, i) ((a)->words[(load) * 16 / RUN + (i) % (16 / RUN)])
#define VECTOR_OF(i) ((i) / (16 / RUN))
// Of steps that turn the words (quantised_x.h): those that turn as one; the others turn as one, too.
#ifndef TURNED
#define TURNED 0
#endif
#if LOADS == 6
#define TURNING_LOADS 4
#else
#define TURNING_LOADS LOADS
#endif
#define LOW(words) ((words) & 0x0f0f0f0fu)
#define HIGH(words) ((words) >> 4 & 0x0f0f0f0fu)

// ---- Numbers of bytes and their halves
#if CPU_STYLE
INLINE Numbers signed_bytes(Words w) { return convert_float16(as_char16(w)); }
INLINE Numbers bytes_less(Words w, int minus) {
  return convert_float16(as_char16(as_uchar16(w) - (uchar16)(minus)));
}
INLINE Numbers signed_bytes_less(Words w, float minus) { return signed_bytes(w) - (Numbers)(minus); }
INLINE Numbers nibbles(Words w, int at) { return convert_float16(as_uchar16(w >> at & 0x0f0f0f0fu)); }
INLINE Numbers nibbles_less_8(Words w, int at) { return bytes_less(w >> at & 0x0f0f0f0fu, 8); }
INLINE Numbers nibbles_less(Words w, int at, float minus) { return nibbles(w, at) - (Numbers)(minus); }
// The exponent and the digits of a number of 8 bits stand at the right place of a float; all ones are NaN.
INLINE Numbers e4m3_values(Words words) {
  const uint16 bits = convert_uint16(as_uchar16(words)), magnitude = bits & 0x7f;
  const float16 normal = as_float16((magnitude << 20) + (120u << 23));
  const float16 tiny = as_float16((magnitude << 20) + (121u << 23)) - 0x1p-6f;
  float16 v = select(normal, tiny, as_int16(magnitude - 8u));
  v = select(v, (float16)(NAN), as_int16(0x7eu - magnitude));
  return as_float16(as_uint16(v) | (bits & 0x80u) << 24);
}
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
#if PAIRS
#include "weight_pairs.h"
#else
INLINE Numbers signed_bytes(Words w) { return fields(w, 0xff, 0, 0x80, 128); }
INLINE Numbers signed_bytes_less(Words w, float minus) { return signed_bytes(w) - minus; }
INLINE Numbers bytes_less(Words w, int minus) { return fields(w, 0xff, 0, 0, minus); }
INLINE Numbers nibbles(Words w, int at) { return fields(w, 0x0f, at, 0, 0); }
INLINE Numbers nibbles_less_8(Words w, int at) { return fields(w, 0x0f, at, 0, 8); }
INLINE Numbers nibbles_less(Words w, int at, float minus) {
#if BYTE_ZEROS
  return fields(w, 0x0f, at, 0, minus);
#else
  return nibbles(w, at) - minus;
#endif
}
INLINE Numbers e4m3_values(Words words) { return e4m3_floats(words); }
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
  load_int8(w, n, k, to);
  to->zero = zero_at(w, n, k);
}
NUMBERS_OF(int8_zeros) { return signed_bytes_less(WORDS(a, VECTOR_OF(i), i), a->zero); }

LOADS_UNIT(e4m3) { load_int8(w, n, k, to); }
NUMBERS_OF(e4m3) { return e4m3_values(WORDS(a, VECTOR_OF(i), i)); }

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
NUMBERS_OF(int4_signed) { return nibbles_less_8(WORDS(a, 0, i) ^ 0x88888888u, 4 * VECTOR_OF(i)); }

LOADS_UNIT(int4_tiles) {
  const int t = w.tile, column = (int)k;
  const long row = ((n >> 3) * (w.k >> t) << (t + 2)) + ((n & 7) << (t - 1));
  load_words(w, row + ((long)(column >> t) << (t + 2)) + ((column & ((1 << t) - 1)) >> 1), 0, to);
  to->scale[0] = scale_at(w, n, k);
  to->offset[0] = zero_at(w, n, k);
}
NUMBERS_OF(int4_tiles) { return nibbles_less_8(WORDS(a, 0, i), 4 * VECTOR_OF(i)); }

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
NUMBERS_OF(q4_0) { return nibbles_less_8(WORDS(a, 0, i), 4 * VECTOR_OF(i)); }

#if SPANS == 2  // others have no place for its scales
// Of 64 elements the first half is in the low nibbles. Scales and minima of 32 have 6 bits: of the first four
// the low ones of 4 bytes each, of the others 4 bits in the last four bytes and 2 at the top of the first
// ones.
LOADS_UNIT(q4_k) {
  const long at = n * w.pitch + k / 256 * 144;
  const int chunk = (int)(k % 256) / 64;
  UNROLL for (int i = 0; i < 2; ++i) load_words(w, at + 16 + 32 * chunk + 16 * i, i, to);
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
NUMBERS_OF(q4_k) { return nibbles(WORDS(a, VECTOR_OF(i) % 2, i), VECTOR_OF(i) / 2 * 4); }
#endif

// Of 128 elements: 64 bytes of low nibbles, 32 with two upper bits of four elements each, 8 scales.
LOADS_UNIT(q6_k) {
  const long at = n * w.pitch + k / 256 * 210;
  const int part = (int)(k % 256) / 128;
  UNROLL for (int i = 0; i < 4; ++i) load_words(w, at + 64 * part + 16 * i, i, to);
  UNROLL for (int i = 0; i < 2; ++i) load_words(w, at + 128 + 32 * part + 16 * i, 4 + i, to);
  const float d = half_at(w, at + 208);
  vstore8(d * convert_float8(vload8(0, (__global const char *)w.bytes + at + 192 + 8 * part)), 0, to->scale);
}
NUMBERS_OF(q6_k) {
  const int quarter = VECTOR_OF(i) / 2, half_of = VECTOR_OF(i) % 2;  // of 32 elements, of 16
  const Words four = WORDS(a, TURNED ? 0 : quarter % 2 * 2 + half_of, i);
  const Words top = WORDS(a, 4 + (TURNED ? 0 : half_of), i);
  const Words two = quarter < 2 ? top << (4 - 2 * quarter) : top >> (2 * quarter - 4);
  return bytes_less((quarter < 2 ? LOW(four) : HIGH(four)) | (two & 0x30303030u), 32);
}
#endif
