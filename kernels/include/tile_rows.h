// Parts of the matrix kernels for CPU drivers: partial vectors, packing of B, and how a tile of 8 rows and 32
// columns is ended and stored; tile_sweep.h puts them together. B_TYPE is the type of B, RESULT that of what
// is stored; panels and sums are float.
// Everything must be inlined: PoCL 3.1 miscompiles calls that take or keep arrays of float16.
#ifndef OCLTENSOR_TILE_ROWS_H
#define OCLTENSOR_TILE_ROWS_H
#define VECTORS  // of formulas
#include "epilogue.h"
#include "transpose.h"

#define TILE_ROWS 8
#define PANEL 32      // columns of a panel: two vectors
#define K_BLOCK 256   // rows of a panel that stay in the caches

#define LOAD_FLOATS(A, p, i) convert_float16(LOAD16(A, p, i))

// Loads n (0 to 16) elements; the rest is zero.
INLINE float16 load_part(__global const STYPE(B_TYPE) *p, int n) {
  if (n >= 16) return LOAD_FLOATS(B_TYPE, p, 0);
  float lane[16];
  vstore16((float16)(0), 0, lane);
  ROLLED for (int i = 0; i < n; ++i) lane[i] = LOAD(B_TYPE, p, i);
  return vload16(0, lane);
}

// Packs `rows` x `columns` (at most PANEL) of b into a panel [rows][PANEL]. The other columns hold arbitrary
// finite values or copies; their results are never stored.
INLINE void pack_b(SCRATCH float16 *panel, __global const STYPE(B_TYPE) *b, long row, long col, int rows,
                   int columns) {
  if (col == 1) {
    if (columns >= PANEL) {
      for (int k = 0; k < rows; ++k) {
        panel[2 * k] = LOAD_FLOATS(B_TYPE, b, k * row);
        panel[2 * k + 1] = LOAD_FLOATS(B_TYPE, b, k * row + 16);
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
        UNROLL for (int i = 0; i < 16; ++i)
          r[i] = LOAD_FLOATS(B_TYPE, b, (16 * v + min(i, count - 1)) * col + k);
        transpose16(r);
        UNROLL for (int i = 0; i < 16; ++i) panel[2 * (k + i) + v] = r[i];
      }
    ROLLED for (; k < rows; ++k) {
      float lane[16];
      ROLLED for (int i = 0; i < 16; ++i)
        lane[i] = LOAD(B_TYPE, b, k * row + (16 * v + min(i, count - 1)) * col);
      panel[2 * k + v] = vload16(0, lane);
    }
  }
}

// The length of equal blocks of k, at most K_BLOCK.
INLINE int block_length(long k) {
  const long blocks = (k + K_BLOCK - 1) / K_BLOCK;
  return min((long)K_BLOCK, ((k + blocks - 1) / blocks + 15) / 16 * 16);
}

// n (1 to 16) neighbours in a row of self or of scales, whose columns are `col` apart.
#define LOAD_ROW(NAME, A)                                             \
  INLINE float16 NAME(__global const STYPE(A) *s, long col, int n) {  \
    if (col == 1 && n >= 16) return LOAD_FLOATS(A, s, 0);             \
    if (col == 0) return (float16)(LOAD(A, s, 0));                    \
    float lane[16];                                                   \
    vstore16((float16)(0), 0, lane);                                  \
    ROLLED for (int i = 0; i < n; ++i) lane[i] = LOAD(A, s, i * col); \
    return vload16(0, lane);                                          \
  }
LOAD_ROW(load_self, SELF_TYPE)
#ifdef SCALE_TYPE
LOAD_ROW(load_scales, SCALE_TYPE)
#endif

END_OF_VECTORS(float16)
#ifdef SCALE_TYPE
#define SCALED_ROW(v, m, n, count, e)                                                          \
  (scaled_float16(v, e) *                                                                      \
   load_scales((e).scales + (m) * (e).scale_row + (n) * (e).scale_column, (e).scale_column, count))
#else
#define SCALED_ROW(v, m, n, count, e) scaled_float16(v, e)
#endif
#ifdef EXPRESSION
#define FORMULA16(v) formula16(v, 0, 0, 0, 0, 0, 0, 0)
#else
#define FORMULA16(v) (v)
#endif
// count (1 to 16) neighbours of row m, from column n on, but for the formula.
INLINE float16 linear_end(float16 sum, long m, long n, int count, bool adds_self, const Epilogue e) {
  const float16 v = SCALED_ROW(sum, m, n, count, e);
  if (!adds_self) return v;
  return with_self_float16(
      v, load_self(e.self + m * e.self_row + n * e.self_column, e.self_column, count), e);
}
INLINE float16 ended_row(float16 sum, long m, long n, int count, const Epilogue e) {
  return FORMULA16(linear_end(sum, m, n, count, e.adds_self, e));
}
// How the sums of a block of k end: the first block's with self, the last one's with the formula, and all but
// the first are added to what is in the result.
typedef struct {
  Epilogue end;
  bool first, last;
} BlockEnd;

INLINE float16 load_c(__global const STYPE(RESULT) *c, int n) {
  if (n >= 16) return LOAD_FLOATS(RESULT, c, 0);
  float lane[16];
  vstore16((float16)(0), 0, lane);
  ROLLED for (int i = 0; i < n; ++i) lane[i] = LOAD(RESULT, c, i);
  return vload16(0, lane);
}

INLINE void store_c(float16 v, __global STYPE(RESULT) *c, int n) {
  if (n >= 16) return STORE16(RESULT, c, 0, v);
  float lane[16];
  vstore16(v, 0, lane);
  ROLLED for (int i = 0; i < n; ++i) STORE(RESULT, c, i, lane[i]);
}

// Ends a tile's sums and stores them: c is the tile's place, at row m and column n.
INLINE void store_tile(float16 sum[TILE_ROWS][2], __global STYPE(RESULT) *c, long c_row, long m, long n,
                       int rows, int columns, const BlockEnd b) {
  const Epilogue e = b.end;
  const bool adds_self = b.first && e.adds_self;
  __global const STYPE(SELF_TYPE) *self = e.self + m * e.self_row + n * e.self_column;
  if (rows == TILE_ROWS && columns >= PANEL && !(adds_self && e.self_column != 1)) {
    UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v)
      sum[i][v] = SCALED_ROW(sum[i][v], m + i, n + 16 * v, 16, e);
    if (adds_self) {
      UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v)
        sum[i][v] = with_self_float16(sum[i][v], LOAD_FLOATS(SELF_TYPE, self, i * e.self_row + 16 * v), e);
    } else if (!b.first) {
      UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v)
        sum[i][v] += LOAD_FLOATS(RESULT, c, i * c_row + 16 * v);
    }
    if (b.last)
      UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v)
        sum[i][v] = FORMULA16(sum[i][v]);
    UNROLL for (int i = 0; i < TILE_ROWS; ++i) UNROLL for (int v = 0; v < 2; ++v)
      STORE16(RESULT, c, i * c_row + 16 * v, sum[i][v]);
    return;
  }
  float edge[TILE_ROWS * PANEL];  // rolled loops: unrolled they cost seconds of compilation
  UNROLL for (int i = 0; i < TILE_ROWS; ++i)
    UNROLL for (int v = 0; v < 2; ++v) vstore16(sum[i][v], 2 * i + v, edge);
  ROLLED for (int i = 0; i < rows; ++i)
    ROLLED for (int v = 0; v < 2; ++v) {
      const int count = clamp(columns - 16 * v, 0, 16);
      if (count == 0) continue;
      float16 x = linear_end(vload16(2 * i + v, edge), m + i, n + 16 * v, count, adds_self, e);
      if (!b.first) x += load_c(c + i * c_row + 16 * v, count);
      store_c(b.last ? FORMULA16(x) : x, c + i * c_row + 16 * v, count);
    }
}
#endif
