// A quantised weight in kernels: its bytes, scales and zeros, and what is loaded of them. weight_formats.h
// makes numbers of the bytes, a unit at a time: UNIT elements of a row, in vectors, each SPAN of which have a
// scale.
//   value = element * scale (+ offset, where OFFSETS is 1)
// Defines, from a format's row in src/base/weight_formats.def: FORMAT, UNIT, LOADS, UPPER_LOADS, SPAN,
// ALTERNATING, OFFSETS, CODED, FIFTH_BITS, FLAT, GIVEN_CODES; from the weight at hand: SCALE_TYPE, ZERO_TYPE,
// ALIGNED (loads of the bytes lie at its multiples), WHOLE (rows, or a flat layout, are of whole units),
// BYTE_ZEROS (zeros are whole numbers of 8 bits). CPU_STYLE; for GPUs PAIRS (weight_pairs.h), for matrix
// units, or BYTES (weight_bytes.h).
#ifndef OCLTENSOR_QUANTISED_H
#define OCLTENSOR_QUANTISED_H
#ifndef PAIRS
#define PAIRS 0
#endif
#ifndef BYTES
#define BYTES 0
#endif
#include "float8.h"
#include "quantised_params.h"

// Loops over an array of single elements: with indices that are not constants GPUs keep it in memory.
#if CPU_STYLE
#define EACH_ELEMENT ROLLED
#else
#define EACH_ELEMENT UNROLL
#endif

#define VECTORS (UNIT / 16)
#define SPANS (UNIT / SPAN)
#define SPAN_VECTORS (SPAN / 16)

// RUN elements are made numbers at once, of as many bytes: CPU drivers have wide vectors, work-items of GPUs
// take a word at a time, and so few registers.
#if CPU_STYLE
#define RUN 16
typedef uint4 Words;
typedef float16 Numbers;
#else
#define RUN 4
typedef uint Words;
#if PAIRS
typedef uint2 Numbers;
#elif BYTES
typedef uint Numbers;
#else
typedef float4 Numbers;
#endif
#endif
#define RUNS (UNIT / RUN)

// A unit as it was loaded: 16 bytes LOADS times, with a scale and an offset for each span.
typedef struct {
  Words words[LOADS * 16 / RUN];
#if FIFTH_BITS
  uint fifth;
#endif
  float scale[SPANS], offset[SPANS], zero;
} Packed;

typedef struct {
  __global const uchar *bytes;
  __global const STYPE(SCALE_TYPE) *scale;
  __global const STYPE(ZERO_TYPE) *zero;
#if CODED && !CPU_STYLE
  __local const float *codes;
#endif
  long k, pitch, end, scale_row, zero_row;
  int shift, tile, scale_group, zero_group;
} Weight;

#define WEIGHT_PARAMETERS                                                                                 \
  __global const void *weight_base, ulong weight_offset, __global const void *scale_base,                 \
      ulong scale_offset, __global const void *zero_base, ulong zero_offset
#define WEIGHT_ARGUMENTS weight_base, weight_offset, scale_base, scale_offset, zero_base, zero_offset

INLINE Weight weight_of(WEIGHT_PARAMETERS, const QuantisedParams p) {
  Weight w;
  w.bytes = AT_CONST(u8, weight_base, weight_offset);
  w.scale = AT_CONST(SCALE_TYPE, scale_base, scale_offset);
  w.zero = AT_CONST(ZERO_TYPE, zero_base, zero_offset);
  w.k = p.k;
  w.pitch = p.pitch;
  w.end = p.end;
  w.shift = (int)p.shift;
  w.tile = (int)p.tile;
  w.scale_row = p.scale_row;
  w.scale_group = (int)p.scale_group;
  w.zero_row = p.zero_row;
  w.zero_group = (int)p.zero_group;
  return w;
}

// CPU drivers ask for what comes a page later: processors' own loads ahead end where a page does. The address
// may be behind the end.
#if CPU_STYLE && defined(__clang__)
#define LOAD_AHEAD(p) __builtin_prefetch((const void *)((ulong)(p) + 4096))
#else
#define LOAD_AHEAD(p)
#endif

// 16 bytes; what is behind the end is 0.
INLINE uchar16 bytes16(const Weight w, long at) {
#if !WHOLE
  if (at + 16 > w.end) {
    uchar lane[16];
    EACH_ELEMENT for (int i = 0; i < 16; ++i) lane[i] = at + i < w.end ? w.bytes[at + i] : 0;
    return vload16(0, lane);
  }
#endif
  __global const uchar *p = w.bytes + at;
  LOAD_AHEAD(p);
#if CPU_STYLE || ALIGNED == 1
  return vload16(0, p);
#elif ALIGNED >= 16
  return as_uchar16(*(__global const uint4 *)p);
#elif ALIGNED >= 4
  __global const uint *q = (__global const uint *)p;
  return as_uchar16((uint4)(q[0], q[1], q[2], q[3]));
#else
  __global const ushort *q = (__global const ushort *)p;
  return as_uchar16((ushort8)(q[0], q[1], q[2], q[3], q[4], q[5], q[6], q[7]));
#endif
}
// 16 bytes as number i of the unit's; of bytes with bits of several units those from `low` on.
INLINE void load_bits(const Weight w, long at, int low, int i, Packed *to) {
  const uint4 words = as_uint4(bytes16(w, at)) >> (uint)low;
#if CPU_STYLE
  to->words[i] = words;
#else
  vstore4(words, i, to->words);
#endif
}
INLINE void load_words(const Weight w, long at, int i, Packed *to) { load_bits(w, at, 0, i, to); }
// Of blocks, which begin at even addresses.
INLINE uint word_at(const Weight w, long at) {
#if ALIGNED >= 4
  return *(__global const uint *)(w.bytes + at);
#else
  __global const ushort *p = (__global const ushort *)(w.bytes + at);
  return p[0] | (uint)p[1] << 16;
#endif
}
INLINE float half_from(__global const uchar *p) {
#if CPU_STYLE  // PoCL 3.1 converts single ones with branches
  const ushort4 bits = (ushort4)(*(__global const ushort *)p);
  return vload_half4(0, (const half *)&bits).x;
#else
  return vload_half(0, (__global const half *)p);
#endif
}
INLINE float half_at(const Weight w, long at) { return half_from(w.bytes + at); }

// Of scales and zeros apart, those of element k of row n. Rows have less than 2^31 elements and groups are as
// close (hosts check), so that devices of 32 bits take one product.
INLINE float scale_at(const Weight w, long n, long k) {
#if FLAT
  return LOAD(SCALE_TYPE, w.scale, ((n * w.k + k) >> w.shift) * w.scale_group);
#else
  return LOAD(SCALE_TYPE, w.scale, n * w.scale_row + (long)((int)k >> w.shift) * w.scale_group);
#endif
}
INLINE float zero_at(const Weight w, long n, long k) {
  return LOAD(ZERO_TYPE, w.zero, n * w.zero_row + (long)((int)k >> w.shift) * w.zero_group);
}

// ---- Numbers of codes. CPU drivers choose among constants by the bits of the numbers; GPUs look them up in
// local memory, whose banks hold the 16 codes side by side.
#define CODES_nf4                                                                                         \
  -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f,        \
      -0.18477343022823334f, -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f,     \
      0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,              \
      0.7229568362236023f, 1.0f
#define FP4_THIRDS(sign)                                                                                  \
  sign 0.0f, sign 0.005208333333333333f, sign 0.6666666666666666f, sign 1.0f, sign 0.3333333333333333f,   \
      sign 0.5f, sign 0.16666666666666666f, sign 0.25f
#define CODES_fp4 FP4_THIRDS(), FP4_THIRDS(-)
#define CODES_iq4_nl                                                                                      \
  -127.0f, -104.0f, -83.0f, -65.0f, -49.0f, -35.0f, -22.0f, -10.0f, 1.0f, 13.0f, 25.0f, 38.0f, 53.0f,     \
      69.0f, 89.0f, 113.0f
#define CODES_iq4_xs CODES_iq4_nl
#if CODED
#if GIVEN_CODES
#define CODE_OF(w, i) ((float)LOAD(ZERO_TYPE, (w).zero, (i) * (w).zero_group))
#else
__constant float kCodes[16] = {CAT(CODES_, FORMAT)};
#define CODE_OF(w, i) kCodes[i]
#endif
#if CPU_STYLE
INLINE Numbers codes(const Weight w, Words words, int at) {
  const int16 bits = convert_int16(as_uchar16(words >> at & 0x0f0f0f0fu));
  float16 v[8];
  UNROLL for (int i = 0; i < 8; ++i)
    v[i] = select((float16)(CODE_OF(w, 2 * i)), (float16)(CODE_OF(w, 2 * i + 1)), bits << 31);
  UNROLL for (int i = 0; i < 4; ++i) v[i] = select(v[2 * i], v[2 * i + 1], bits << 30);
  UNROLL for (int i = 0; i < 2; ++i) v[i] = select(v[2 * i], v[2 * i + 1], bits << 29);
  return select(v[0], v[1], bits << 28);
}
#else
INLINE float4 code_floats(const Weight w, Words words, int at) {
  const uchar4 place = as_uchar4((at == 0 ? words << 2 : words >> (at - 2)) & 0x3c3c3c3cu);
  __local const char *table = (__local const char *)w.codes;
#define CODE(place) (*(__local const float *)(table + (place)))
  return (float4)(CODE(place.x), CODE(place.y), CODE(place.z), CODE(place.w));
}
#endif
#endif
// For GPUs, in a kernel whose work-groups have at least 16 items: the table, once `w` is made.
#if CODED && !CPU_STYLE
#define SHARE_CODES(w)                                                                \
  __local float shared_codes[16];                                                            \
  if (get_local_id(0) < 16) shared_codes[get_local_id(0)] = CODE_OF(w, get_local_id(0));         \
  barrier(CLK_LOCAL_MEM_FENCE);                                                       \
  (w).codes = shared_codes;
#else
#define SHARE_CODES(w)
#endif

// Where element i of the unit's vectors v is: v[i / 16]'s lane i % 16 is the unit's element UNIT_PLACE(i).
#if ALTERNATING
#define UNIT_PLACE(i) ((i) / 32 * 32 + (i) % 16 * 2 + (i) / 16 % 2)
#else
#define UNIT_PLACE(i) (i)
#endif
#include "weight_formats.h"
#define LOAD_PACKED(w, n, k, to) CAT(load_unit_, FORMAT)(w, n, k, to)
#define NUMBERS(w, a, i) CAT(numbers_, FORMAT)(w, a, i)

#if !PAIRS && !BYTES
// The numbers of a unit that begins at element k of row n, without its scales.
INLINE void unit_numbers(const Weight w, long n, long k, Packed *a, float16 *v) {
  LOAD_PACKED(w, n, k, a);
  UNROLL for (int i = 0; i < VECTORS; ++i) {
#if CPU_STYLE
    v[i] = NUMBERS(w, a, i);
#else
    v[i] = (float16)(NUMBERS(w, a, 4 * i), NUMBERS(w, a, 4 * i + 1), NUMBERS(w, a, 4 * i + 2),
                     NUMBERS(w, a, 4 * i + 3));
#endif
  }
}
INLINE void unit_values(const Weight w, long n, long k, float16 *v) {
  Packed a;
  unit_numbers(w, n, k, &a, v);
  UNROLL for (int i = 0; i < VECTORS; ++i) {
    const int span = i / SPAN_VECTORS;
#if OFFSETS && !CPU_STYLE  // the bits of quantised_steps.h
    v[i] = fma(v[i], (float16)(a.scale[span]), (float16)(a.offset[span]));
#elif OFFSETS
    v[i] = v[i] * (float16)(a.scale[span]) + (float16)(a.offset[span]);
#else
    v[i] *= (float16)(a.scale[span]);
#endif
  }
}
#endif
#endif
