// Parts of the matrix kernels for CPU drivers: partial vectors, packing of B, and how a tile of 8 rows and 32
// columns is stored; tile_sweep.h puts them together. TYPE is the operands' type; panels and sums are float.
// Everything must be inlined: PoCL 3.1 miscompiles calls that take or keep arrays of float16.
#ifndef OCLTENSOR_TILE_ROWS_H
#define OCLTENSOR_TILE_ROWS_H
#include "matmul_params.h"
#include "transpose.h"
#include "types.h"

#define TILE_ROWS 8
#define PANEL 32      // columns of a panel: two vectors
#define K_BLOCK 256   // rows of a panel that stay in the caches

// Loads n (0 to 16) elements; the rest is zero.
INLINE float16 load_part(__global const STYPE(TYPE) *p, int n) {
  if (n >= 16) return LOAD16(TYPE, p, 0);
  float lane[16];
  vstore16((float16)(0), 0, lane);
  ROLLED for (int i = 0; i < n; ++i) lane[i] = LOAD(TYPE, p, i);
  return vload16(0, lane);
}

// Packs `rows` x `columns` (at most PANEL) of b into a panel [rows][PANEL]. The other columns hold arbitrary
// finite values or copies; their results are never stored.
INLINE void pack_b(SCRATCH float16 *panel, __global const STYPE(TYPE) *b, long row, long col, int rows,
                   int columns) {
  if (col == 1) {
    if (columns >= PANEL) {
      for (int k = 0; k < rows; ++k) {
        panel[2 * k] = LOAD16(TYPE, b, k * row);
        panel[2 * k + 1] = LOAD16(TYPE, b, k * row + 16);
      }
    } else {
      ROLLED for (int k = 0; k < rows; ++k)
        ROLLED for (int v = 0; v < 2; ++v)
          panel[2 * k + v] = load_part(b + k * row + 16 * v, clamp(columns - 16 * v, 0, 16));
    }
    return;
  }
  ROLLED for (int v = 0; v < 2; ++v) {
    const int count = clamp(columns - 16 * v, 0, 16);
    int k = 0;
    if (count == 0)
      ROLLED for (; k < rows; ++k) panel[2 * k + v] = (float16)(0);
    if (row == 1)
      for (; k + 16 <= rows; k += 16) {
        float16 r[16];
        UNROLL for (int i = 0; i < 16; ++i) r[i] = LOAD16(TYPE, b, (16 * v + min(i, count - 1)) * col + k);
        transpose16(r);
        UNROLL for (int i = 0; i < 16; ++i) panel[2 * (k + i) + v] = r[i];
      }
    ROLLED for (; k < rows; ++k) {
      float lane[16];
      ROLLED for (int i = 0; i < 16; ++i)
        lane[i] = LOAD(TYPE, b, k * row + (16 * v + min(i, count - 1)) * col);
      panel[2 * k + v] = vload16(0, lane);
    }
  }
}

// The length of equal blocks of k, at most K_BLOCK.
INLINE int block_length(long k) {
  const long blocks = (k + K_BLOCK - 1) / K_BLOCK;
  return min((long)K_BLOCK, ((k + blocks - 1) / blocks + 15) / 16 * 16);
}

// How a tile's sums are stored: c = alpha * sum + beta * s in the first block of k, c += alpha * sum in the
// others.
typedef struct {
  float alpha, beta;
  bool first, add_s;
} Finish;

INLINE float16 load_s(__global const STYPE(TYPE) *s, long col, int n) {
  if (col == 1) return load_part(s, n);
  if (col == 0) return (float16)(LOAD(TYPE, s, 0));
  float lane[16];
  vstore16((float16)(0), 0, lane);
  ROLLED for (int i = 0; i < n; ++i) lane[i] = LOAD(TYPE, s, i * col);
  return vload16(0, lane);
}

INLINE float16 load_c(__global const STYPE(OUT) *c, int n) {
  if (n >= 16) return LOAD16(OUT, c, 0);
  float lane[16];
  vstore16((float16)(0), 0, lane);
  ROLLED for (int i = 0; i < n; ++i) lane[i] = LOAD(OUT, c, i);
  return vload16(0, lane);
}

INLINE void store_c(float16 v, __global STYPE(OUT) *c, int n) {
  if (n >= 16) return STORE16(OUT, c, 0, v);
  float lane[16];
  vstore16(v, 0, lane);
  ROLLED for (int i = 0; i < n; ++i) STORE(OUT, c, i, lane[i]);
}

INLINE void store_tile(float16 sum[TILE_ROWS][2], __global STYPE(OUT) *c, long c_row,
                       __global const STYPE(TYPE) *s, long s_row, long s_col, int rows, int columns,
                       const Finish f) {
  const bool add_s = f.first && f.add_s;
  if (rows == TILE_ROWS && columns >= PANEL && !(add_s && s_col != 1)) {
    UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v) sum[i][v] *= f.alpha;
    if (add_s) {
      UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v)
        sum[i][v] = fma((float16)(f.beta), LOAD16(TYPE, s, i * s_row + 16 * v), sum[i][v]);
    } else if (!f.first) {
      UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v)
        sum[i][v] += LOAD16(OUT, c, i * c_row + 16 * v);
    }
    UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v)
      STORE16(OUT, c, i * c_row + 16 * v, sum[i][v]);
    return;
  }
  float edge[TILE_ROWS * PANEL];  // rolled loops: unrolled they cost seconds of compilation
  UNROLL for (int i = 0; i < TILE_ROWS; ++i)
    UNROLL for (int v = 0; v < 2; ++v) vstore16(sum[i][v], 2 * i + v, edge);
  ROLLED for (int i = 0; i < rows; ++i)
    ROLLED for (int v = 0; v < 2; ++v) {
      const int n = clamp(columns - 16 * v, 0, 16);
      float16 x = vload16(2 * i + v, edge) * f.alpha;
      if (n == 0) continue;
      if (add_s) x = fma((float16)(f.beta), load_s(s + i * s_row + 16 * v * s_col, s_col, n), x);
      else if (!f.first) x += load_c(c + i * c_row + 16 * v, n);
      store_c(x, c + i * c_row + 16 * v, n);
    }
}
#endif
