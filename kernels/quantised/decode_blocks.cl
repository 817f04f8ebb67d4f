// Products of one or two rows of x (ROWS) with a weight in GGUF's blocks of 256 elements, for CPU
// drivers: a block's scales are made numbers at once, and its elements 16 at a time, each of which is
// multiplied with x before the next ones are made. A work-item takes `per_item` rows of the weight, one after
// the other, as they lie in memory: of several at once processors would not load ahead. Defines: those of
// quantised_x.h.
#include "quantised_x.h"

#define BLOCK 256
#define BLOCK_VECTORS (BLOCK / 16)
#define PARTS 2                  // sums of a row, which do not wait for each other
#define KEPT_BLOCKS (64 / ROWS)  // of x
#define KEPT_ROWS 64             // of the weight, whose sums are kept meanwhile

// ---- The formats: BYTES_<format> of a block; scales_<format> gives the scale of each 16 elements, and what
// is added to each of them; numbers16_<format> makes vector i of the block numbers.
INLINE uchar16 bytes_at(__global const uchar *p) { return vload16(0, p); }
INLINE float16 twice(float8 v) { return v.s0011223344556677; }

#define BYTES_q2_k 84
#define BYTES_q3_k 110
#define BYTES_q4_k 144
#define BYTES_q5_k 176
#define BYTES_q6_k 210

INLINE float2 halves_at(__global const uchar *p) {
  const ushort4 halves = (ushort4)(vload2(0, (__global const ushort *)p), (ushort2)(0));
  return vload_half4(0, (const half *)&halves).xy;
}
// Of 128 elements 32 bytes have two bits of each of four vectors' pairs.
INLINE uchar16 two_bits16(__global const uchar *from, int i) {
  return bytes_at(from + 32 * (i / 8) + 16 * (i % 2)) >> (uchar16)(i % 8 / 2 * 2) & (uchar16)(3);
}

// A byte for 16 elements: 4 bits of their scale, 4 of their minimum.
INLINE void scales_q2_k(__global const uchar *block, float16 *scale, float16 *offset) {
  const uchar16 both = bytes_at(block);
  const float2 d = halves_at(block + 80);
  *scale = convert_float16(both & (uchar16)(15)) * d.x;
  *offset = convert_float16(both >> (uchar16)(4)) * -d.y;
}
INLINE float16 numbers16_q2_k(__global const uchar *block, int i) {
  return convert_float16(two_bits16(block + 16, i));
}

// 6 bits of each of 16 scales, less 32: 4 bits in the halves of 8 bytes, 2 in a quarter of 4. Elements are
// numbers of 3 bits less 4.
INLINE void scales_q3_k(__global const uchar *block, float16 *scale, float16 *offset) {
  const uchar8 low = vload8(0, block + 96);
  const uchar4 high = vload4(0, block + 104);
  const uchar16 four = (uchar16)(low & (uchar8)(15), low >> (uchar8)(4));
  const uchar16 two = (uchar16)(high, high >> (uchar4)(2), high >> (uchar4)(4), high >> (uchar4)(6));
  const uchar16 bits = four | (two & (uchar16)(3)) << (uchar16)(4);
  *scale = (convert_float16(bits) - 32) * half_from(block + 108);
  *offset = *scale * -4;
}
INLINE float16 numbers16_q3_k(__global const uchar *block, int i) {
  const uchar16 upper = bytes_at(block + 16 * (i % 2)) >> (uchar16)(i / 2) & (uchar16)(1);
  return convert_float16(two_bits16(block + 32, i) | upper << (uchar16)(2));
}

// 6 bits of each of 8 scales and minima: of the first four the low ones of 4 bytes each, of the others 4
// bits in the last four bytes and 2 at the top of the first ones.
INLINE void scales_of_32(__global const uchar *block, float16 *scale, float16 *offset) {
  const uint8 words = convert_uint8(vload8(0, (__global const ushort *)block));  // 2 halves, 12 bytes
  const uint a = words.s2 | words.s3 << 16, b = words.s4 | words.s5 << 16, c = words.s6 | words.s7 << 16;
  const uint2 scales = (uint2)(a & 0x3f3f3f3f, (c & 0x0f0f0f0f) | (a >> 2 & 0x30303030));
  const uint2 least = (uint2)(b & 0x3f3f3f3f, (c >> 4 & 0x0f0f0f0f) | (b >> 2 & 0x30303030));
  const float2 d = halves_at(block);
  *scale = twice(convert_float8(as_uchar8(scales)) * d.x);
  *offset = twice(convert_float8(as_uchar8(least)) * -d.y);
}
INLINE uchar16 nibble16(__global const uchar *from, int i) {
  const uchar16 bytes = bytes_at(from + 32 * (i / 4) + 16 * (i % 2));
  return i / 2 % 2 == 0 ? bytes & (uchar16)(15) : bytes >> (uchar16)(4);
}

INLINE void scales_q4_k(__global const uchar *block, float16 *scale, float16 *offset) {
  scales_of_32(block, scale, offset);
}
INLINE float16 numbers16_q4_k(__global const uchar *block, int i) {
  return convert_float16(nibble16(block + 16, i));
}

INLINE void scales_q5_k(__global const uchar *block, float16 *scale, float16 *offset) {
  scales_of_32(block, scale, offset);
}
INLINE float16 numbers16_q5_k(__global const uchar *block, int i) {
  const uchar16 upper = bytes_at(block + 16 + 16 * (i % 2)) >> (uchar16)(i / 2) & (uchar16)(1);
  return convert_float16(nibble16(block + 48, i) | upper << (uchar16)(4));
}

// Elements are numbers less 32.
INLINE void scales_q6_k(__global const uchar *block, float16 *scale, float16 *offset) {
  *scale = convert_float16(as_char16(bytes_at(block + 192))) * half_from(block + 208);
  *offset = *scale * -32;
}
INLINE float16 numbers16_q6_k(__global const uchar *block, int i) {
  const int part = i / 8, quarter = i % 8 / 2, at = 16 * (i % 2);
  const uchar16 four = bytes_at(block + 64 * part + 32 * (quarter % 2) + at);
  const uchar16 two = bytes_at(block + 128 + 32 * part + at) >> (uchar16)(2 * quarter) & (uchar16)(3);
  const uchar16 low = quarter < 2 ? four & (uchar16)(15) : four >> (uchar16)(4);
  return convert_float16(low | two << (uchar16)(4));
}

// ---- Products
// x beside blocks [first, first + count), and its sums over each 16 elements.
INLINE void prepare_blocks(SCRATCH float16 *of_x, SCRATCH float16 *x_sums, __global const STYPE(TYPE) *x,
                           long first, int count, const QuantisedParams p) {
  for (int b = 0; b < count; ++b)
    for (int m = 0; m < ROWS; ++m) {
      __global const STYPE(TYPE) *from = x + min((long)m, p.m - 1) * p.x_row + (first + b) * BLOCK;
      float sums[BLOCK_VECTORS];
      for (int i = 0; i < BLOCK_VECTORS; ++i) {
        const float16 v = convert_float16(LOAD16(TYPE, from, 16 * i));
        of_x[(b * ROWS + m) * BLOCK_VECTORS + i] = v;
        sums[i] = horizontal_sum(v);
      }
      x_sums[b * ROWS + m] = vload16(0, sums);
    }
}

// Adds the products of a block with x. Scales are single numbers in memory, which are broadcast from there.
INLINE void add_block(float16 sum[PARTS][ROWS], __global const uchar *block, SCRATCH const float16 *of_x,
                      SCRATCH const float16 *x_sums) {
  float16 scales, offset;
  UNROLL for (int i = 0; i < CAT(BYTES_, FORMAT); i += 64) LOAD_AHEAD(block + i);
  CAT(scales_, FORMAT)(block, &scales, &offset);
  float scale[BLOCK_VECTORS];
  vstore16(scales, 0, scale);
  UNROLL for (int m = 0; m < ROWS; ++m) sum[1][m] = fma(offset, x_sums[m], sum[1][m]);
  UNROLL for (int s = 0; s < BLOCK_VECTORS; s += SPAN / 16) {
    const int part = s / (SPAN / 16) % PARTS;
    float16 products[ROWS];
    UNROLL for (int i = s; i < s + SPAN / 16; ++i) {
      const float16 v = CAT(numbers16_, FORMAT)(block, i);
      UNROLL for (int m = 0; m < ROWS; ++m) {
        const float16 x = of_x[m * BLOCK_VECTORS + i];
        products[m] = i == s ? v * x : fma(v, x, products[m]);
      }
    }
    UNROLL for (int m = 0; m < ROWS; ++m) sum[part][m] = fma((float16)(scale[s]), products[m], sum[part][m]);
  }
}

// The same of `count` blocks, from `block` on, with the sums of a row that were kept.
INLINE void add_blocks(SCRATCH float16 *sums, bool is_first, __global const uchar *block, int count,
                       SCRATCH const float16 *of_x, SCRATCH const float16 *x_sums) {
  float16 sum[PARTS][ROWS];
  UNROLL for (int m = 0; m < ROWS; ++m) {
    sum[0][m] = is_first ? (float16)(0) : sums[m];
    sum[1][m] = (float16)(0);
  }
  for (int b = 0; b < count; ++b)
    add_block(sum, block + b * CAT(BYTES_, FORMAT), of_x + b * ROWS * BLOCK_VECTORS, x_sums + b * ROWS);
  UNROLL for (int m = 0; m < ROWS; ++m) sums[m] = sum[0][m] + sum[1][m];
}

ONE_ITEM __kernel void decode(__global void *out_base, ulong out_offset, __global const void *x_base,
                              ulong x_offset, __global const void *weight_base, ulong weight_offset,
                              __global const void *scale_base, ulong scale_offset,
                              __global const void *zero_base, ulong zero_offset,
                              __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  SCRATCH float16 of_x[KEPT_BLOCKS * ROWS * BLOCK_VECTORS], x_sums[KEPT_BLOCKS * ROWS];
  SCRATCH float16 sums[KEPT_ROWS * ROWS];
  const Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  __global const STYPE(TYPE) *x = AT_CONST(TYPE, x_base, x_offset);
  const long n0 = get_global_id(0) * p.per_item, n1 = min((long)p.n, n0 + p.per_item);
  const long blocks = p.k / BLOCK;
  for (long start = n0; start < n1; start += KEPT_ROWS) {
    const long end = min(n1, start + KEPT_ROWS);
    for (long first = 0; first < blocks; first += KEPT_BLOCKS) {
      const int count = (int)min((long)KEPT_BLOCKS, blocks - first);
      if (start == n0 || blocks > KEPT_BLOCKS) prepare_blocks(of_x, x_sums, x, first, count, p);
      for (long n = start; n < end; ++n)
        add_blocks(sums + (n - start) * ROWS, first == 0,
                   w.bytes + n * w.pitch + first * CAT(BYTES_, FORMAT), count, of_x, x_sums);
    }
    ROLLED for (long n = start; n < end; ++n)
      ROLLED for (int m = 0; m < min((long)ROWS, (long)p.m); ++m) {
        float t = blocks == 0 ? 0 : horizontal_sum(sums[(n - start) * ROWS + m]);
        t = finished(t, w, n, x + m * p.x_row, bias_base, bias_offset, p);
        STORE(TYPE, AT(TYPE, out_base, out_offset), m * p.n + n, t);
      }
  }
}
