// Products of a few rows of x (ROWS: 1, 2, 4, 8), as bytes, with a quantised weight of whole numbers, for
// GPUs. `prepare` makes bytes of x (int8_x.h), a block of 32 an item, in the order of the weight's runs; in
// `decode` SHARE neighbours of a work-group share a row of the weight, of which each takes COLS, TEAMS apart,
// a unit at a time. Defines: those of quantised_x.h, int8_dots.h and weight_bytes.h; ITEMS, SHARE, COLS.
#define BYTES 1
#define TURNED 0
#include "quantised_x.h"
#include "int8_dots.h"
#include "int8_x.h"

#define TEAMS (ITEMS / SHARE)
#define RESULTS (TEAMS * COLS * ROWS)
#define UNIT_BLOCKS (UNIT / X_BLOCK)
#define BLOCK_WORDS (X_BLOCK / 4)

// Of a block: its scale, and the sums of its halves' bytes.
typedef struct {
  float scale;
  int sums[2];
  int unused;
} XBlock;

// of_x: [row][block] of bytes, then the same of XBlock.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void prepare(__global void *of_x_base, ulong of_x_offset, __global const void *x_base,
                      ulong x_offset, const QuantisedParams p) {
  const uint block = get_global_id(0), row = get_group_id(1), blocks = (uint)p.pieces;
  if (block >= blocks) return;
  __global uint *words = (__global uint *)((__global char *)of_x_base + of_x_offset);
  __global XBlock *parts = (__global XBlock *)(words + (ulong)p.m * blocks * BLOCK_WORDS);
  __global const STYPE(TYPE) *x = AT_CONST(TYPE, x_base, x_offset) + row * p.x_row;
  const long first = (long)block * X_BLOCK;
  float v[X_BLOCK];
  uint most = 0;
  UNROLL for (int i = 0; i < X_BLOCK; ++i) {
    const int at = UNIT_PLACE(i);
    v[i] = first + at < p.k ? (float)LOAD(TYPE, x, first + at) : 0;
    most = max(most, as_uint(v[i]) & MAGNITUDE);
  }
  const ByteScale s = byte_scale(most);
  int sums[2] = {0, 0};
  UNROLL for (int w = 0; w < BLOCK_WORDS; ++w) {
    uint word = 0;
    UNROLL for (int i = 0; i < 4; ++i) {
      const uint byte = as_uint(fma(v[4 * w + i] * s.first, s.second, ROUNDING)) & 0xff;
      sums[w / 4] += (char)byte;
      word |= byte << (8 * i);
    }
    words[(row * (ulong)blocks + block) * BLOCK_WORDS + w] = word;
  }
  const XBlock part = {s.scale, {sums[0], sums[1]}, 0};
  parts[row * (ulong)blocks + block] = part;
}

// Adds a unit's products with a row of x, from its block on.
INLINE float add_unit(float sum, const Weight w, const Packed *a, __global const uint4 *words,
                      __global const XBlock *parts) {
  uint of_x[RUNS];
  UNROLL for (int i = 0; i < RUNS / 4; ++i) vstore4(words[i], i, of_x);
  UNROLL for (int s = 0; s < SPANS; ++s) {
    const XBlock part = parts[s * SPAN / X_BLOCK];
    int products = 0;
    UNROLL for (int i = s * SPAN / 4; i < (s + 1) * SPAN / 4; ++i)
      products = add_dots(NUMBERS(w, a, i), of_x[i], products);
    const int bytes = SPAN == X_BLOCK ? part.sums[0] + part.sums[1] : part.sums[s % 2];
    float v = products - BIAS * bytes;
#if ZEROS
    v = fma(-a->zero, (float)bytes, v);
#endif
    sum = fma(a->scale[s] * part.scale, v, sum);
#if OFFSETS
    sum = fma(a->offset[s] * part.scale, (float)bytes, sum);
#endif
  }
  return sum;
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void decode(__global void *out_base, ulong out_offset, __global const void *of_x_base,
                     ulong of_x_offset, __global const void *x_base, ulong x_offset,
                     __global const void *weight_base, ulong weight_offset, __global const void *scale_base,
                     ulong scale_offset, __global const void *zero_base, ulong zero_offset,
                     __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  __local float sums[SHARE * RESULTS];  // [item of a row][row of x][row of the weight]
  const Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  __global const STYPE(TYPE) *x = AT_CONST(TYPE, x_base, x_offset);
  const uint blocks = (uint)p.pieces, id = get_local_id(0), place = id % SHARE, team = id / SHARE;
  __global const uint *words = (__global const uint *)((__global const char *)of_x_base + of_x_offset);
  __global const XBlock *parts = (__global const XBlock *)(words + (ulong)p.m * blocks * BLOCK_WORDS);
  const long n0 = (long)get_group_id(0) * (TEAMS * COLS);
  const int units = (int)((p.k + UNIT - 1) / UNIT);
  float sum[ROWS][COLS];
  UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int j = 0; j < COLS; ++j) sum[m][j] = 0;
  for (int u = place; u < units; u += SHARE) {
    Packed a[COLS];
    UNROLL for (int j = 0; j < COLS; ++j)
      LOAD_PACKED(w, min(n0 + team + j * TEAMS, p.n - 1), (long)u * UNIT, &a[j]);
    UNROLL for (int m = 0; m < ROWS; ++m) {
      const ulong block = min((ulong)m, (ulong)p.m - 1) * blocks + u * UNIT_BLOCKS;
      UNROLL for (int j = 0; j < COLS; ++j)
        sum[m][j] = add_unit(sum[m][j], w, &a[j], (__global const uint4 *)(words + block * BLOCK_WORDS),
                             parts + block);
    }
  }
  UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int j = 0; j < COLS; ++j)
    sums[place * RESULTS + (m * COLS + j) * TEAMS + team] = sum[m][j];
  ROLLED for (uint far = SHARE / 2; far > 0; far /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < far * RESULTS; i += ITEMS) sums[i] += sums[i + far * RESULTS];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint i = id; i < RESULTS; i += ITEMS) {
    const long m = i / (TEAMS * COLS), row = n0 + i % (TEAMS * COLS);
    if (m >= p.m || row >= p.n) continue;
    const float t = finished(sums[i], w, row, x + m * p.x_row, bias_base, bias_offset, p);
    STORE(TYPE, AT(TYPE, out_base, out_offset), m * p.n + row, t);
  }
}
