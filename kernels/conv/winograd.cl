// Convolution with a window of 3 x 3 and stride 1 for CPU drivers, by Winograd's F(4 x 4, 3 x 3): a tile of
// 4 x 4 outputs is the inverse transform of 36 products, of the transformed tile of 6 x 6 inputs and the
// transformed window, which are sums over the input channels (winograd.h).
// Vectors hold 16 tiles. Defines: TYPE (of y, w and bias).
#define NUMBER float16
#define PACKED SCRATCH
#include "conv_weights.h"
#define SELF_TYPE TYPE
#include "epilogue.h"
END_OF_VECTORS(float16)
#include "winograd.h"

#define POINTS 36
#define LANES 16
#define CHANNELS 32     // output channels of a block
#define INPUTS 16       // input channels whose windows are transformed at a time
// Distances of points in memory: odd numbers of cache lines, as one item writes all points in turn.
#define WINDOW_POINT(p) ((p).blocks * (p).inputs * CHANNELS + 16)
#define INPUT_POINT(p) ((p).inputs * 2 + 1)
// Vectors of a block of tiles: the last block may have but one.
#define HALVES(block, p) ((p).first_tile + (block) * 2 * LANES + LANES < (p).segments ? 2 : 1)

// Transforms the windows of a block of output channels as [point][8 channels][input][8].
// Grid: blocks, runs of input channels.
ONE_ITEM __kernel void transform_windows(__global void *u_base, ulong u_offset, __global const void *w_base,
                                         ulong w_offset, const ConvRowsParams p) {
  SCRATCH float16 packed[INPUTS * 9 * 2];
  const long n0 = get_global_id(0) * CHANNELS, c0 = get_global_id(1) * INPUTS;
  const long c1 = min((long)p.inputs, c0 + INPUTS);
  pack_weights(packed, AT_CONST(TYPE, w_base, w_offset) + p.w_start, p.w_end - p.w_start, n0, c0 * 9, c1 * 9,
               p);
  __global float *u = AT(f32, u_base, u_offset) + get_global_id(0) * 4 * p.inputs * 8;
  const long eighth = p.inputs * 8;
  for (long c = c0; c < c1; ++c)
    ROLLED for (int v = 0; v < 2; ++v) {
      SCRATCH const float16 *w = packed + (c - c0) * 18 + v;
      __global float *to = u + 2 * v * eighth + c * 8;
      float16 h[3][6];
      UNROLL for (int x = 0; x < 3; ++x) transform_three(h[x], w[2 * x], w[6 + 2 * x], w[12 + 2 * x]);
      ROLLED for (int i = 0; i < 6; ++i) {
        float16 t[6];
        transform_three(t, h[0][i], h[1][i], h[2][i]);
        UNROLL for (int j = 0; j < 6; ++j, to += WINDOW_POINT(p)) {
          vstore8(t[j].lo, 0, to);
          vstore8(t[j].hi, 0, to + eighth);
        }
      }
    }
}

typedef struct {
  long image, y, x;  // of its first output
} Tile;
INLINE Tile tile(long t, const ConvRowsParams p) {
  const long across = (p.width + 3) / 4, down = (p.height + 3) / 4, row = t / across, image = row / down;
  const Tile at = {image, (row - image * down) * 4, (t - row * across) * 4};
  return at;
}

// The six columns of a row of 16 tiles; reads two more.
INLINE void load_columns(float16 r[6], __global const float *x, const long *at) {
  float16 f[8], g[8];
  UNROLL for (int i = 0; i < 8; ++i) f[i] = (float16)(vload8(0, x + at[2 * i]), vload8(0, x + at[2 * i + 1]));
  UNROLL for (int i = 0; i < 4; ++i) {
    g[i] = (float16)(f[2 * i].even, f[2 * i + 1].even);
    g[i + 4] = (float16)(f[2 * i].odd, f[2 * i + 1].odd);
  }
  UNROLL for (int i = 0; i < 4; ++i) {
    f[i] = (float16)(g[2 * i].even, g[2 * i + 1].even);
    f[i + 4] = (float16)(g[2 * i].odd, g[2 * i + 1].odd);
  }
  r[0] = (float16)(f[0].even, f[1].even);
  r[1] = (float16)(f[2].even, f[3].even);
  r[2] = (float16)(f[4].even, f[5].even);
  r[3] = (float16)(f[6].even, f[7].even);
  r[4] = (float16)(f[0].odd, f[1].odd);
  r[5] = (float16)(f[2].odd, f[3].odd);
}

// Transforms the inputs of a block of 32 tiles as [block][point][input][32]; the padded map reaches past the
// last tile of a row and column. Grid: blocks of tiles, runs of per_item input channels.
ONE_ITEM __kernel void transform_inputs(__global void *v_base, ulong v_offset, __global void *word_base,
                                        ulong word_offset, __global const void *x_base, ulong x_offset,
                                        const ConvRowsParams p) {
  const long block = get_global_id(0), c0 = get_global_id(1) * p.per_item;
  const long c1 = min((long)p.inputs, c0 + p.per_item);
  if (p.first_tile == 0 && block == 0 && c0 == 0) *AT(u32, word_base, word_offset) = 0;
  for (int half_block = 0; half_block < HALVES(block, p); ++half_block) {
    long at[LANES];
    ROLLED for (int i = 0; i < LANES; ++i) {
      const Tile t = tile(min(p.first_tile + block * 2 * LANES + half_block * LANES + i, p.segments - 1), p);
      at[i] = t.image * p.x_image + t.y * p.x_row + t.x;
    }
    for (long c = c0; c < c1; ++c) {
      __global const float *x = AT_CONST(f32, x_base, x_offset) + p.x_start + c * p.x_channel;
      __global float16 *v = (__global float16 *)AT(f32, v_base, v_offset) +
                            block * POINTS * INPUT_POINT(p) + c * 2 + half_block;
      float16 h[6][6];
      ROLLED for (int i = 0; i < 6; ++i) {
        float16 r[6];
        load_columns(r, x + i * p.x_row, at);
        transform_six(h[i], r[0], r[1], r[2], r[3], r[4], r[5]);
      }
      ROLLED for (int j = 0; j < 6; ++j) {
        float16 t[6];
        transform_six(t, h[0][j], h[1][j], h[2][j], h[3][j], h[4][j], h[5][j]);
        UNROLL for (int i = 0; i < 6; ++i) v[(i * 6 + j) * INPUT_POINT(p)] = t[i];
      }
    }
  }
}

// One point: 16 * VECTORS tiles of 8 output channels, summed over the inputs, to m[channel][point][32].
#define DEFINE_SUM_PRODUCTS(NAME, VECTORS)                                                                 \
  INLINE void NAME(SCRATCH float16 *m, __global const float *u, __global const float16 *v,                 \
                   const long inputs) {                                                                    \
    float16 sum[8][VECTORS];                                                                               \
    UNROLL for (int i = 0; i < 8; ++i) UNROLL for (int j = 0; j < VECTORS; ++j) sum[i][j] = (float16)(0);  \
    for (long k = 0; k < inputs; ++k, v += 2, u += 8)                                                      \
      UNROLL for (int i = 0; i < 8; ++i) UNROLL for (int j = 0; j < VECTORS; ++j)                          \
          sum[i][j] = fma((float16)(u[i]), v[j], sum[i][j]);                                               \
    UNROLL for (int i = 0; i < 8; ++i) UNROLL for (int j = 0; j < VECTORS; ++j)                            \
        m[i * POINTS * 2 + j] = sum[i][j];                                                                 \
  }
DEFINE_SUM_PRODUCTS(sum_products, 2)
DEFINE_SUM_PRODUCTS(sum_half, 1)

// Where the outputs of 16 tiles lie, and how many of them exist.
typedef struct {
  long at[LANES];
  int rows[LANES], columns[LANES];
  bool whole;  // all of them are 4 x 4, and four columns are one vector in memory
} Outputs;
INLINE Outputs outputs_of(long first, const ConvRowsParams p) {
  Outputs to;
  to.whole = sizeof(STYPE(TYPE)) == 4 && p.y_col == 1;
  ROLLED for (int i = 0; i < LANES; ++i) {
    const Tile t = tile(min(first + i, p.segments - 1), p);
    to.at[i] = t.image * p.y_image + t.y * p.y_row + t.x * p.y_col;
    to.rows[i] = first + i < p.segments ? (int)min(4L, p.height - t.y) : 0;
    to.columns[i] = (int)min(4L, p.width - t.x);
    to.whole = to.whole && to.rows[i] == 4 && to.columns[i] == 4;
  }
  return to;
}

// Stores row `row` of 16 tiles, r[column].
INLINE void store_tiles(float16 r[4], __global STYPE(TYPE) *y, const Outputs *to, int row,
                        const ConvRowsParams p) {
  float16 t[4];
  UNROLL for (int round = 0; round < 2; ++round) {
    UNROLL for (int i = 0; i < 2; ++i) {
      t[2 * i] = INTERLEAVE_LOW(r[i], r[i + 2]);
      t[2 * i + 1] = INTERLEAVE_HIGH(r[i], r[i + 2]);
    }
    UNROLL for (int i = 0; i < 4; ++i) r[i] = t[i];
  }
  y += row * p.y_row;
  if (to->whole) {
    __global float *f = (__global float *)y;
    UNROLL for (int k = 0; k < 4; ++k) {
      vstore4(r[k].lo.lo, 0, f + to->at[4 * k]);
      vstore4(r[k].lo.hi, 0, f + to->at[4 * k + 1]);
      vstore4(r[k].hi.lo, 0, f + to->at[4 * k + 2]);
      vstore4(r[k].hi.hi, 0, f + to->at[4 * k + 3]);
    }
    return;
  }
  float lane[4 * LANES];
  UNROLL for (int i = 0; i < 4; ++i) vstore16(r[i], i, lane);
  ROLLED for (int k = 0; k < LANES; ++k)
    if (row < to->rows[k])
      ROLLED for (int i = 0; i < to->columns[k]; ++i)
        STORE(TYPE, y, to->at[k] + i * p.y_col, lane[4 * k + i]);
}

// The outputs of 32 channels of 32 tiles. Sets the word to `value` if one of them is not finite: infinities
// spread through the transforms, so that all of it must be computed otherwise.
ONE_ITEM __kernel void multiply(__global void *y_base, ulong y_offset, __global void *word_base,
                                ulong word_offset, __global const void *u_base, ulong u_offset,
                                __global const void *v_base, ulong v_offset, __global const void *bias_base,
                                ulong bias_offset, const uint value, const ConvRowsParams p) {
  SCRATCH float16 m[CHANNELS * POINTS * 2];
  const long block = get_global_id(p.channels_inner ? 1 : 0);
  const long n0 = get_global_id(p.channels_inner ? 0 : 1) * CHANNELS;
  const long channels = min((long)CHANNELS, p.outputs - n0);
  const int halves = HALVES(block, p);
  __global const float *u = AT_CONST(f32, u_base, u_offset) + n0 * p.inputs;
  __global const float16 *v =
      (__global const float16 *)AT_CONST(f32, v_base, v_offset) + block * POINTS * INPUT_POINT(p);
  for (int point = 0; point < POINTS; ++point, u += WINDOW_POINT(p), v += INPUT_POINT(p))
    for (int i = 0; i < channels; i += 8) {
      SCRATCH float16 *to = m + (i * POINTS + point) * 2;
      if (halves == 2) sum_products(to, u + i * p.inputs, v, p.inputs);
      else sum_half(to, u + i * p.inputs, v, p.inputs);
    }
  __global STYPE(TYPE) *y = AT(TYPE, y_base, y_offset) + p.y_start + n0 * p.y_channel;
  const Epilogue end = epilogue_of_bias(p.add_bias != 0, bias_base, bias_offset, p.bias);
  float16 finite = (float16)(0.0f);
  for (int half_block = 0; half_block < halves; ++half_block) {
    const Outputs to = outputs_of(p.first_tile + (block * 2 + half_block) * LANES, p);
    for (int o = 0; o < channels; ++o) {
      SCRATCH const float16 *from = m + o * POINTS * 2 + half_block;
      const float16 self = (float16)(self_at(n0 + o, 0, end));
      float16 h[6][4];
      ROLLED for (int j = 0; j < 6; ++j)
        sums_of_four(h[j], from[2 * j], from[12 + 2 * j], from[24 + 2 * j], from[36 + 2 * j],
                         from[48 + 2 * j], from[60 + 2 * j]);
      ROLLED for (int i = 0; i < 4; ++i) {
        float16 r[4];
        sums_of_four(r, h[0][i], h[1][i], h[2][i], h[3][i], h[4][i], h[5][i]);
        UNROLL for (int j = 0; j < 4; ++j) {
          finite = fma(r[j], (float16)(0.0f), finite);
          r[j] = ended_float16(r[j], self, end);
        }
        store_tiles(r, y + o * p.y_channel, &to, i, p);
      }
    }
  }
  float lane[LANES], all = 0;
  vstore16(finite, 0, lane);
  ROLLED for (int i = 0; i < LANES; ++i) all += lane[i];
  if (!(all == 0)) *AT(u32, word_base, word_offset) = value;
}
