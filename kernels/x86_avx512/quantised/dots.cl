// Products of a few rows of x (ROWS: 1, 2, 4, 8) with a quantised weight, for CPU drivers with AVX-512:
// `prepare` makes bytes of x (int8_x.h), in the order in which the weight has its elements; in `decode`
// VPDPBUSD multiplies 64 pairs of bytes and adds each four, and a work-item takes `per_item` rows of the
// weight, WIDTH at a time. Defines: those of quantised_x.h; HAS_BIAS; GROUPS (1, 2, 4: scales of a STEP,
// where they are apart), ZEROS (0; 1: subtracted, 2: added).
#include "quantised_x.h"
#include "int8_x.h"

// ---- The formats. STEP elements are vectors of 64 bytes, each of which is an element plus MINUS. Those of
// a SUM, one or two, have the same scales. Piece i of 16 neighbours, or, if ALTERNATING, of the even or odd
// ones of 32, is the 16 bytes PLACE(i) of the vectors.
#define IN_ORDER(i) (i)
#define BY_HALVES(i) ((i) % 2 * 4 + (i) / 2)  // one half in low nibbles, the other one in high ones
#define BY_CHUNKS(i) ((i) / 8 * 8 + (i) % 4 / 2 * 4 + (i) % 8 / 4 * 2 + (i) % 2)  // the same of 64 elements

#define TRAITS_int8(of) of(64, 128, IN_ORDER)
#define TRAITS_int8_zeros(of) of(64, 128, IN_ORDER)
#define TRAITS_q8_0(of) of(64, 128, IN_ORDER)
#define TRAITS_int4(of) of(128, 0, BY_HALVES)
#define TRAITS_int4_signed(of) of(128, 8, BY_HALVES)
#define TRAITS_int4_tiles(of) of(128, 8, BY_HALVES)
#define TRAITS_q4_0(of) of(128, 8, BY_HALVES)
#define TRAITS_q4_1(of) of(128, 0, BY_HALVES)
#define TRAITS_q4_k(of) of(256, 0, BY_CHUNKS)
#define TRAITS_q5_k(of) of(256, 0, BY_CHUNKS)
#define TRAITS_q6_k(of) of(256, 32, IN_ORDER)
#define STEP_OF(step, minus, place) step
#define MINUS_OF(step, minus, place) minus
#define PLACE_OF(step, minus, place) place
#define STEP CAT(TRAITS_, FORMAT)(STEP_OF)
#define MINUS CAT(TRAITS_, FORMAT)(MINUS_OF)
#define PLACE CAT(TRAITS_, FORMAT)(PLACE_OF)

#define BYTE_VECTORS (STEP / 64)
#define SUMS (STEP == 256 ? 4 : 1)
#define PIECES (STEP / 16)
#define BLOCKS (STEP / X_BLOCK)
#define HAS_SUMS (OFFSETS || ZEROS > 0)

#define WIDTH (ROWS == 1 ? 1 : ROWS == 2 ? 4 : 2)
#define KEPT_STEPS (16384 / ROWS / STEP)  // of x
#define KEPT_ROWS 64                      // of the weight, whose sums are kept meanwhile

// x beside a step, for each row of x: its bytes, in the places of the weight's; the scale of x for each lane
// of a sum; where sums begin, -MINUS times the bytes; sums of x, for each lane of a sum, or for each piece.
typedef struct {
  uint16 bytes[BYTE_VECTORS];
  float16 scale[SUMS];
#if MINUS != 0
  int16 begin[SUMS];
#endif
#if HAS_SUMS
  float16 sums;
#endif
} XStep;

// sum + the products of four neighbours, of bytes from 0 to 255 with those from -128 to 127: "VPDPBUSD" in
// Intel's instruction set reference.
INLINE int16 dots(uint16 bytes, uint16 signed_bytes, int16 sum) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(bytes), "v"(signed_bytes));
  return sum;
}

// ---- x
#define LARGER(a, b) ((a) > (b) ? (a) : (b))
INLINE uint largest16(uint16 v) {
  const uint8 a = LARGER(v.lo, v.hi);
  const uint4 b = LARGER(a.lo, a.hi);
  const uint2 c = LARGER(b.lo, b.hi);
  return LARGER(c.x, c.y);
}
// Elements k to k + 15 of a row; those behind its end are 0.
INLINE float16 x_at(__global const STYPE(TYPE) *x, long k, long end) {
  if (k + 16 <= end) return convert_float16(LOAD16(TYPE, x, k));
  float lane[16];
  ROLLED for (int i = 0; i < 16; ++i) lane[i] = k + i < end ? (float)LOAD(TYPE, x, k + i) : 0;
  return vload16(0, lane);
}
INLINE char16 bytes_of(float16 v, const ByteScale s) {
  return convert_char16(as_int16(fma(v * s.first, (float16)(s.second), (float16)(ROUNDING))));
}

INLINE void prepare_step(__global XStep *to, __global const STYPE(TYPE) *x, long k, long end) {
  char16 pieces[PIECES];
  float scales[BLOCKS];
  UNROLL for (int i = 0; i < BLOCKS; ++i) {
    const float16 a = x_at(x, k + X_BLOCK * i, end), b = x_at(x, k + X_BLOCK * i + 16, end);
    const ByteScale s = byte_scale(largest16(LARGER(as_uint16(a) & MAGNITUDE, as_uint16(b) & MAGNITUDE)));
    const char16 first = bytes_of(a, s), second = bytes_of(b, s);
    scales[i] = s.scale;
    pieces[2 * i] = ALTERNATING ? (char16)(first.even, second.even) : first;
    pieces[2 * i + 1] = ALTERNATING ? (char16)(first.odd, second.odd) : second;
  }
  UNROLL for (int i = 0; i < PIECES; ++i) {
    const int at = PLACE(i), vector = at / 4, lanes = at % 4;
    vstore16(pieces[i], at, (__global char *)to->bytes);
    if (vector < SUMS) vstore4((float4)(scales[i / 2]), at, (__global float *)to->scale);
  }
#if MINUS != 0 || HAS_SUMS
  int16 sums[SUMS];
  UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = (int16)(0);
  UNROLL for (int i = 0; i < BYTE_VECTORS; ++i)
    sums[i * SUMS / BYTE_VECTORS] =
        dots((uint16)(0x01010101u), to->bytes[i], sums[i * SUMS / BYTE_VECTORS]);
#if MINUS != 0
  UNROLL for (int i = 0; i < SUMS; ++i) to->begin[i] = sums[i] * -MINUS;
#endif
#if HAS_SUMS && SUMS == 1
  to->sums = convert_float16(sums[0]) * to->scale[0];
#elif HAS_SUMS
  float of_pieces[PIECES];
  UNROLL for (int i = 0; i < PIECES; ++i) {
    const int at = PLACE(i);
    const int4 four = vload4(at, (const int *)sums);
    of_pieces[i] = (four.x + four.y + four.z + four.w) * scales[i / 2];
  }
  to->sums = vload16(0, of_pieces);
#endif
#endif
}

// ---- The weight: a step's bytes, with the scale of each lane of a sum, and what is added to an element, for
// each lane of the sum, or for each piece.
typedef struct {
  uint16 bytes[BYTE_VECTORS];
  float16 scale[SUMS], offset;
} WeightStep;

#define LOADS_STEP(format) \
  INLINE void CAT(load_step_, format)(const Weight w, long n, long k, int count, WeightStep *to)

// 64 bytes, of which `count` exist.
INLINE uint16 bytes64(__global const uchar *p, int count) {
  LOAD_AHEAD(p);
  if (count >= 64) return vload16(0, (__global const uint *)p);
  uchar lane[64];
  ROLLED for (int i = 0; i < 64; ++i) lane[i] = i < count ? p[i] : 0;
  return vload16(0, (const uint *)lane);
}
// A number for each of GROUPS parts of the lanes; those behind the row's end have the last one.
#define BEFORE(k, i) (count == STEP ? (k) + (i) : min((k) + (i), (k) + count - 1))
#if GROUPS == 1
#define FOR_LANES(at, w, n, k) ((float16)(at(w, n, k)))
#elif GROUPS == 2
#define FOR_LANES(at, w, n, k) \
  ((float16)((float8)(at(w, n, k)), (float8)(at(w, n, BEFORE(k, STEP / 2)))))
#else
#define FOR_LANES(at, w, n, k)                                                               \
  ((float16)((float4)(at(w, n, k)), (float4)(at(w, n, BEFORE(k, STEP / 4))),                 \
             (float4)(at(w, n, BEFORE(k, STEP / 2))), (float4)(at(w, n, BEFORE(k, STEP / 4 * 3)))))
#endif
INLINE void load_parts(const Weight w, long n, long k, int count, WeightStep *to) {
  to->scale[0] = FOR_LANES(scale_at, w, n, k);
#if ZEROS
  to->offset = FOR_LANES(zero_at, w, n, k);
#endif
}

LOADS_STEP(int8) {
  to->bytes[0] = bytes64(w.bytes + n * w.pitch + k, count) ^ 0x80808080u;
  load_parts(w, n, k, count, to);
}
LOADS_STEP(int8_zeros) { load_step_int8(w, n, k, count, to); }

#if STEP == 128
INLINE void split_nibbles(uint16 bytes, WeightStep *to) {
  to->bytes[0] = bytes & 0x0f0f0f0fu;
  to->bytes[1] = bytes >> 4u & 0x0f0f0f0fu;
}
LOADS_STEP(int4) {
  split_nibbles(bytes64(w.bytes + n * w.pitch + (k >> 1), count / 2), to);
  load_parts(w, n, k, count, to);
}
LOADS_STEP(int4_signed) {
  split_nibbles(bytes64(w.bytes + n * w.pitch + (k >> 1), count / 2) ^ 0x88888888u, to);
  load_parts(w, n, k, count, to);
}
LOADS_STEP(int4_tiles) {  // of 128 columns
  const long at = (((n >> 3) * (w.k >> 7) + (k >> 7)) << 9) + ((n & 7) << 6);
  split_nibbles(bytes64(w.bytes + at, 64), to);
  load_parts(w, n, k, count, to);
}
// Four blocks of 16 bytes of nibbles, which begin with one or two numbers of 16 bits; those behind the row's
// end are the last one.
#define BLOCK_AT(i) (block + size * (count == STEP ? (i) : min(i, count / 32 - 1)))
#define HALF_AT(i, at) (*(__global const ushort *)(BLOCK_AT(i) + (at)))
#define HALVES_AT(at) ((ushort4)(HALF_AT(0, at), HALF_AT(1, at), HALF_AT(2, at), HALF_AT(3, at)))
INLINE void load_blocks(const Weight w, long n, long k, int count, int size, WeightStep *to) {
  __global const uchar *block = w.bytes + n * w.pitch + k / 32 * size;
  LOAD_AHEAD(block);
  uint4 words[4];
  UNROLL for (int i = 0; i < 4; ++i) words[i] = vload4(0, (__global const uint *)(BLOCK_AT(i) + size - 16));
  split_nibbles((uint16)((uint8)(words[0], words[1]), (uint8)(words[2], words[3])), to);
  const ushort4 scales = HALVES_AT(0);
  to->scale[0] = vload_half4(0, (const half *)&scales).s0000111122223333;
#if OFFSETS
  const ushort4 offsets = HALVES_AT(2);
  to->offset = vload_half4(0, (const half *)&offsets).s0000111122223333;
#endif
}
LOADS_STEP(q4_0) { load_blocks(w, n, k, count, 18, to); }
LOADS_STEP(q4_1) { load_blocks(w, n, k, count, 20, to); }
#endif

LOADS_STEP(q8_0) {
  __global const uchar *first = w.bytes + n * w.pitch + k / 32 * 34, *second = first + (count < 64 ? 0 : 34);
  LOAD_AHEAD(first);
  const uint16 bytes = (uint16)(vload8(0, (__global const uint *)(first + 2)),
                                vload8(0, (__global const uint *)(second + 2)));
  to->bytes[0] = bytes ^ 0x80808080u;
  const ushort4 halves = (ushort4)(*(__global const ushort *)first, *(__global const ushort *)second, 0, 0);
  const float4 scale = vload_half4(0, (const half *)&halves);
  to->scale[0] = (float16)((float8)(scale.x), (float8)(scale.y));
}

#if STEP == 256
#define SPREAD(v, a, b) ((float16)((float8)((v).a), (float8)((v).b)))
// 6 bits of each of 8 scales and minima, and two numbers of 16 bits: see scales_of_32 of decode_blocks.cl.
INLINE void load_scales_of_32(__global const uchar *block, WeightStep *to) {
  __global const uint *words = (__global const uint *)(block + 4);
  const uint a = words[0], b = words[1], c = words[2];
  const uint2 scales = (uint2)(a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030));
  const uint2 least = (uint2)(b & 0x3f3f3f3f, (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030));
  const ushort4 halves = (ushort4)(vload2(0, (__global const ushort *)block), (ushort2)(0));
  const float4 d = vload_half4(0, (const half *)&halves);
  const float8 s = convert_float8(as_uchar8(scales)) * d.x, m = convert_float8(as_uchar8(least)) * -d.y;
  to->scale[0] = s.s0000000022222222;
  to->scale[1] = s.s1111111133333333;
  to->scale[2] = s.s4444444466666666;
  to->scale[3] = s.s5555555577777777;
  to->offset = m.s0011223344556677;
}
LOADS_STEP(q4_k) {
  __global const uchar *block = w.bytes + n * w.pitch + k / 256 * 144;
  UNROLL for (int i = 0; i < 3; ++i) LOAD_AHEAD(block + 64 * i);
  UNROLL for (int i = 0; i < 2; ++i) {
    const uint16 bytes = vload16(i, (__global const uint *)(block + 16));
    to->bytes[2 * i] = bytes & 0x0f0f0f0fu;
    to->bytes[2 * i + 1] = bytes >> 4u & 0x0f0f0f0fu;
  }
  load_scales_of_32(block, to);
}
// As q4_k, whose nibbles come behind 32 bytes with the fifth bits of 8 elements each, two of 64.
LOADS_STEP(q5_k) {
  __global const uchar *block = w.bytes + n * w.pitch + k / 256 * 176;
  UNROLL for (int i = 0; i < 3; ++i) LOAD_AHEAD(block + 64 * i);
  const uint8 bits = vload8(0, (__global const uint *)(block + 16));
  const uint16 fifth = (uint16)(bits, bits >> 2u);
  UNROLL for (int i = 0; i < 2; ++i) {
    const uint16 bytes = vload16(i, (__global const uint *)(block + 48)), upper = fifth >> (uint)(4 * i);
    to->bytes[2 * i] = (bytes & 0x0f0f0f0fu) | (upper << 4u & 0x10101010u);
    to->bytes[2 * i + 1] = (bytes >> 4u & 0x0f0f0f0fu) | (upper << 3u & 0x10101010u);
  }
  load_scales_of_32(block, to);
}
// Of 128 elements: 64 bytes of low nibbles, 32 with two upper bits of four elements each, 8 scales.
LOADS_STEP(q6_k) {
  __global const uchar *block = w.bytes + n * w.pitch + k / 256 * 210;
  UNROLL for (int i = 0; i < 4; ++i) LOAD_AHEAD(block + 64 * i);
  UNROLL for (int i = 0; i < 2; ++i) {
    const uint16 bytes = vload16(i, (__global const uint *)block);
    const uint8 bits = vload8(i, (__global const uint *)(block + 128));
    const uint16 upper = (uint16)(bits, bits >> 2u);
    to->bytes[2 * i] = (bytes & 0x0f0f0f0fu) | (upper << 4u & 0x30303030u);
    to->bytes[2 * i + 1] = (bytes >> 4u & 0x0f0f0f0fu) | (upper & 0x30303030u);
  }
  const char16 scales = vload16(0, (__global const char *)(block + 192));
  const float16 s = convert_float16(scales) * half_from(block + 208);
  to->scale[0] = s.s0000111122223333;
  to->scale[1] = s.s4444555566667777;
  to->scale[2] = s.s88889999aaaabbbb;
  to->scale[3] = s.sccccddddeeeeffff;
}
#endif

// ---- Products
// Adds those of a step of WIDTH rows from n on, of which `count` elements exist.
INLINE void add_step(float16 sum[WIDTH][ROWS], const Weight w, long n, long k, int count,
                     __global const XStep *x, const QuantisedParams p) {
  UNROLL for (int r = 0; r < WIDTH; ++r) {
    WeightStep a;
    CAT(load_step_, FORMAT)(w, min(n + r, p.n - 1), k, count, &a);
    UNROLL for (int m = 0; m < ROWS; ++m) {
      UNROLL for (int s = 0; s < SUMS; ++s) {
#if MINUS != 0
        int16 products = x[m].begin[s];
#else
        int16 products = (int16)(0);
#endif
        UNROLL for (int i = s * BYTE_VECTORS / SUMS; i < (s + 1) * BYTE_VECTORS / SUMS; ++i)
          products = dots(a.bytes[i], x[m].bytes[i], products);
        float16 v = convert_float16(products) * x[m].scale[s];
#if ZEROS == 1
        v = fma(-a.offset, x[m].sums, v);
#endif
        sum[r][m] = fma(a.scale[s], v, sum[r][m]);
      }
#if HAS_SUMS && ZEROS != 1
      sum[r][m] = fma(a.offset, x[m].sums, sum[r][m]);
#endif
    }
  }
}

// Adds the products of `count` steps from `first` on to the sums of rows n and the next ones.
INLINE void add_steps(SCRATCH float16 *sums, const Weight w, long n, long first, int count,
                      __global const XStep *x, const QuantisedParams p) {
  float16 sum[WIDTH][ROWS];
  UNROLL for (int r = 0; r < WIDTH; ++r) UNROLL for (int m = 0; m < ROWS; ++m)
    sum[r][m] = first == 0 ? (float16)(0) : sums[r * ROWS + m];
  const int whole = (int)min((long)count, p.k / STEP - first);
  for (int s = 0; s < whole; ++s) add_step(sum, w, n, (first + s) * STEP, STEP, x + s * ROWS, p);
#if STEP < 256  // others have no rows that end within a step
  if (whole < count) add_step(sum, w, n, (first + whole) * STEP, (int)(p.k % STEP), x + whole * ROWS, p);
#endif
  UNROLL for (int r = 0; r < WIDTH; ++r) UNROLL for (int m = 0; m < ROWS; ++m) sums[r * ROWS + m] = sum[r][m];
}

// An item takes `pieces` steps of a row; rows behind the last one are this.
ONE_ITEM __kernel void prepare(__global void *of_x_base, ulong of_x_offset, __global const void *x_base,
                               ulong x_offset, const QuantisedParams p) {
  __global XStep *of_x = (__global XStep *)((__global char *)of_x_base + of_x_offset);
  const long m = get_global_id(1), row = min(m, (long)p.m - 1) * p.x_row;
  __global const STYPE(TYPE) *x = AT_CONST(TYPE, x_base, x_offset) + row;
  const long first = get_global_id(0) * p.pieces, end = min(first + p.pieces, (p.k + STEP - 1) / STEP);
  for (long s = first; s < end; ++s) prepare_step(of_x + s * ROWS + m, x, s * STEP, p.k);
}

ONE_ITEM __kernel void decode(__global void *out_base, ulong out_offset, __global const void *of_x_base,
                              ulong of_x_offset, __global const void *x_base, ulong x_offset,
                              __global const void *weight_base, ulong weight_offset,
                              __global const void *scale_base, ulong scale_offset,
                              __global const void *zero_base, ulong zero_offset,
                              __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  SCRATCH float16 sums[KEPT_ROWS * ROWS];
  __global const XStep *of_x = (__global const XStep *)((__global const char *)of_x_base + of_x_offset);
  const Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  __global const STYPE(TYPE) *x = AT_CONST(TYPE, x_base, x_offset);
  const long n0 = get_global_id(0) * p.per_item, n1 = min((long)p.n, n0 + p.per_item);
  const long steps = (p.k + STEP - 1) / STEP;
  for (long start = n0; start < n1; start += KEPT_ROWS) {
    const long end = min(n1, start + KEPT_ROWS);
    for (long first = 0; first < steps; first += KEPT_STEPS) {
      const int count = (int)min((long)KEPT_STEPS, steps - first);
      for (long n = start; n < end; n += WIDTH)
        add_steps(sums + (n - start) * ROWS, w, n, first, count, of_x + first * ROWS, p);
    }
    ROLLED for (long n = start; n < end; ++n)
      ROLLED for (int m = 0; m < min((long)ROWS, (long)p.m); ++m) {
        float t = steps == 0 ? 0 : horizontal_sum(sums[(n - start) * ROWS + m]);
        t = finished(t, w, n, x + m * p.x_row, bias_base, bias_offset, p);
        STORE(TYPE, AT(TYPE, out_base, out_offset), m * p.n + n, t);
      }
  }
}
