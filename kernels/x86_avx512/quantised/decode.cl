// Products of a few rows of x (ROWS: 1, 2, 4, 8) with a weight of 4 bits, for CPU drivers with AVX-512: 64
// bytes are 16 words, whose nibbles choose among 16 numbers by VPERMPS. A work-item takes `per_item` rows of
// the weight, WIDTH at a time. Defines: those of quantised_x.h; HAS_BIAS; GROUPS (1, 2, 4: of 128 elements),
// ORDER (how a word's nibbles are elements, below), LEAST and FLIPPED (number i is (i ^ FLIPPED) + LEAST;
// CODED: codes), ZEROS (0; 1: subtracted, 2: added).
#include "quantised_x.h"

#define STEP 128
#define WIDTH (ROWS == 1 ? 1 : ROWS == 2 ? 4 : 2)
#define BLOCK_STEPS (16384 / ROWS / STEP)  // steps along k whose x is kept
#define BLOCK_ROWS 64                      // rows of the weight whose sums are kept meanwhile

// Of 128 elements the one in nibble i of word d. ORDER 0: low nibbles first; 1: high ones; 2: blocks of 32,
// first halves in low nibbles.
#if ORDER == 2
#define ELEMENT(d, i) ((d) / 4 * 32 + (i) % 2 * 16 + (d) % 4 * 4 + (i) / 2)
#else
#define ELEMENT(d, i) ((d) * 8 + ((i) ^ ORDER))
#endif

// numbers[lane of nibbles], of the lowest 4 bits of each word: "VPERMPS" in Intel's instruction set
// reference.
INLINE float16 choose(float16 numbers, uint16 nibbles) {
  float16 chosen;
  __asm__("vpermps %2, %1, %0" : "=v"(chosen) : "v"(nibbles), "v"(numbers));
  return chosen;
}
INLINE float16 table(const Weight w) {
  float lane[16];
#if CODED
  UNROLL for (int i = 0; i < 16; ++i) lane[i] = CODE_OF(w, i);
#else
  UNROLL for (int i = 0; i < 16; ++i) lane[i] = (i ^ FLIPPED) + LEAST;
#endif
  return vload16(0, lane);
}

// x beside steps [first, first + count) in the order of words, and its sums over their nibbles.
INLINE void prepare_x(SCRATCH float16 *of_x, SCRATCH float16 *x_sums, __global const STYPE(TYPE) *x,
                      long first, int count, const QuantisedParams p) {
  for (int s = 0; s < count; ++s)
    for (int m = 0; m < ROWS; ++m) {
      float lane[STEP], turned[STEP];
      __global const STYPE(TYPE) *from = x + min((long)m, p.m - 1) * p.x_row + (first + s) * STEP;
      UNROLL for (int i = 0; i < 8; ++i) vstore16(convert_float16(LOAD16(TYPE, from, 16 * i)), i, lane);
      UNROLL for (int i = 0; i < 8; ++i) UNROLL for (int d = 0; d < 16; ++d)
        turned[16 * i + d] = lane[ELEMENT(d, i)];
      float16 sum = (float16)(0);
      UNROLL for (int i = 0; i < 8; ++i) {
        of_x[(s * ROWS + m) * 8 + i] = vload16(i, turned);
        sum += vload16(i, turned);
      }
      x_sums[s * ROWS + m] = sum;
    }
}

// Scales, or zeros, of 128 elements, for each word.
#if GROUPS == 1
#define FOR_WORDS(at, w, n, k) ((float16)(at(w, n, k)))
#elif GROUPS == 2
#define FOR_WORDS(at, w, n, k) ((float16)((float8)(at(w, n, k)), (float8)(at(w, n, (k) + 64))))
#else
#define FOR_WORDS(at, w, n, k)                                                                   \
  ((float16)((float4)(at(w, n, k)), (float4)(at(w, n, (k) + 32)), (float4)(at(w, n, (k) + 64)), \
             (float4)(at(w, n, (k) + 96))))
#endif

// The 64 bytes of 128 elements.
INLINE uint16 words_at(const Weight w, long n, long k) {
#if ORDER == 2
  const long at = (((n >> 3) * (w.k >> 7) + (k >> 7)) << 9) + ((n & 7) << 6);
#else
  const long at = n * w.pitch + (k >> 1);
#endif
  LOAD_AHEAD(w.bytes + at);
  return vload16(0, (__global const uint *)(w.bytes + at));
}

// Adds the products of `count` steps from `first` on to the sums of rows n and the next ones.
INLINE void add_block(SCRATCH float16 *sums, const Weight w, long n, long first, int count,
                      SCRATCH const float16 *of_x, SCRATCH const float16 *x_sums, const QuantisedParams p) {
  const float16 numbers = table(w);
  float16 sum[WIDTH][ROWS];
  UNROLL for (int r = 0; r < WIDTH; ++r) UNROLL for (int m = 0; m < ROWS; ++m)
    sum[r][m] = first == 0 ? (float16)(0) : sums[r * ROWS + m];
  for (int s = 0; s < count; ++s) {
    SCRATCH const float16 *x = of_x + s * ROWS * 8;
    const long k = (first + s) * STEP;
    UNROLL for (int r = 0; r < WIDTH; ++r) {
      const long row = min(n + r, p.n - 1);
      const uint16 words = words_at(w, row, k);
      float16 products[ROWS];
      UNROLL for (int m = 0; m < ROWS; ++m) products[m] = (float16)(0);
      UNROLL for (int i = 0; i < 8; ++i) {
        const float16 v = choose(numbers, words >> (uint16)(4 * i));
        UNROLL for (int m = 0; m < ROWS; ++m) products[m] = fma(v, x[m * 8 + i], products[m]);
      }
      const float16 scale = FOR_WORDS(scale_at, w, row, k);
#if ZEROS
      const float16 zero = FOR_WORDS(zero_at, w, row, k);
#endif
      UNROLL for (int m = 0; m < ROWS; ++m) {
#if ZEROS == 1
        products[m] = fma(-zero, x_sums[s * ROWS + m], products[m]);
#endif
        sum[r][m] = fma(scale, products[m], sum[r][m]);
#if ZEROS == 2
        sum[r][m] = fma(zero, x_sums[s * ROWS + m], sum[r][m]);
#endif
      }
    }
  }
  UNROLL for (int r = 0; r < WIDTH; ++r) UNROLL for (int m = 0; m < ROWS; ++m) sums[r * ROWS + m] = sum[r][m];
}

ONE_ITEM __kernel void decode(__global void *out_base, ulong out_offset, __global const void *x_base,
                              ulong x_offset, __global const void *weight_base, ulong weight_offset,
                              __global const void *scale_base, ulong scale_offset,
                              __global const void *zero_base, ulong zero_offset,
                              __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  SCRATCH float16 of_x[BLOCK_STEPS * ROWS * 8], x_sums[BLOCK_STEPS * ROWS], sums[BLOCK_ROWS * ROWS];
  const Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  __global const STYPE(TYPE) *x = AT_CONST(TYPE, x_base, x_offset);
  const long n0 = get_global_id(0) * p.per_item, n1 = min((long)p.n, n0 + p.per_item);
  const long steps = p.k / STEP;
  for (long start = n0; start < n1; start += BLOCK_ROWS) {
    const long end = min(n1, start + BLOCK_ROWS);
    for (long first = 0; first < steps; first += BLOCK_STEPS) {
      const int count = (int)min((long)BLOCK_STEPS, steps - first);
      if (start == n0 || steps > BLOCK_STEPS) prepare_x(of_x, x_sums, x, first, count, p);
      for (long n = start; n < end; n += WIDTH)
        add_block(sums + (n - start) * ROWS, w, n, first, count, of_x, x_sums, p);
    }
    ROLLED for (long n = start; n < end; ++n)
      ROLLED for (int m = 0; m < min((long)ROWS, (long)p.m); ++m) {
        float t = steps == 0 ? 0 : horizontal_sum(sums[(n - start) * ROWS + m]);
        t = finished(t, w, n, x + m * p.x_row, bias_base, bias_offset, p);
        STORE(TYPE, AT(TYPE, out_base, out_offset), m * p.n + n, t);
      }
  }
}
