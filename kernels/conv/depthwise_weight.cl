// Weight gradient with few channels in a group, for GPUs. A work-group takes a (small channel, big channel of
// its group) pair, a piece of the positions of all images, and with WINDOW 0 one tap. The sums of its
// work-items are combined in local memory. A second kernel adds the pieces in their order.
// Defines: as depthwise.h; PARTIAL (1: writes sums as [piece][pair][tap] in the accumulator's type).
#include "depthwise.h"

#define ITEMS 256
#if WINDOW
#define TAPS (WINDOW * WINDOW)
#else
#define TAPS 1
#endif
#define COMBINED_AT_ONCE (TAPS < 8 ? TAPS : 8)  // taps combined at once

typedef struct {
  int small, big;  // channels, counted through all groups
} Pair;
INLINE Pair pair_of(uint i, const ConvParams p) {
  Pair pair;
  pair.small = i / (uint)p.big_channels;
  pair.big = i - (uint)pair.small * (uint)p.big_channels +
             (uint)pair.small / (uint)p.small_channels * (uint)p.big_channels;
  return pair;
}

INLINE void store_weight(__global void *weight_base, ulong weight_offset, uint pair, uint tap, acc_t v,
                         const ConvParams p) {
  const uint small = pair / (uint)p.big_channels, big = pair - small * (uint)p.big_channels;
  const uint ky = tap / (uint)p.window[2], kx = tap - ky * (uint)p.window[2];
  STORE(TYPE, AT(TYPE, weight_base, weight_offset),
        small * p.weight_strides[0] + big * p.weight_strides[1] + ky * p.weight_strides[3] +
            kx * p.weight_strides[4],
        TO(TYPE, v));
}

// Adds one strip's products to the sums of all taps.
INLINE void add_strip(acc_t sum[TAPS], __global const T *big, __global const T *small, const Strip at,
                      int tap, const ConvParams p) {
  const int left = (int)p.out[1] - at.y;  // rows past the map: 0 times an infinity is NaN
  acc_t d[ROWS];
  UNROLL for (int t = 0; t < ROWS; ++t)
    d[t] = LOAD(TYPE, small,
                (at.y + min(t, left - 1)) * (int)p.small_strides[3] + at.x * (int)p.small_strides[4]);
#if WINDOW
  int column[PLACES];
  bool inside[PLACES];
  const int y = place_window(at, p, column, inside);
  UNROLL for (int r = 0; r < (ROWS - 1) * STRIDE + WINDOW; ++r) {
    item_t v[WINDOW];
    LOAD_ROW(v, WINDOW, big, y + r, p.in[1], p.big_strides[3], column, inside)
    UNROLL for (int t = 0; t < ROWS; ++t) {
      const int ky = r - t * STRIDE;
      if (ky >= 0 && ky < WINDOW && t < left)
        UNROLL for (int kx = 0; kx < WINDOW; ++kx)
          sum[ky * WINDOW + kx] = fma(v[kx], d[t], sum[ky * WINDOW + kx]);
    }
  }
#else
  const int ky = tap / (int)p.window[2], kx = tap - ky * (int)p.window[2];
  const int x = (int)(at.x * p.stride[2] - p.padding[2] + kx * p.dilation[2]);
  if (!is_inside(x, p.in[2])) return;
  UNROLL for (int t = 0; t < ROWS; ++t) {
    const int y = (int)((at.y + t) * p.stride[1] - p.padding[1] + ky * p.dilation[1]);
    if (t < left && is_inside(y, p.in[1]))
      sum[0] = fma(LOAD(TYPE, big, y * p.big_strides[3] + x * p.big_strides[4]), d[t], sum[0]);
  }
#endif
}

// Grid: pairs * ITEMS, pieces, taps (WINDOW 0) or 1. `strips`: the number of strips in a piece.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void depthwise_weight(__global void *weight_base, ulong weight_offset, __global const void *big_base,
                               ulong big_offset, __global const void *small_base, ulong small_offset,
                               const uint strips, const ConvParams p) {
  __local acc_t shared[COMBINED_AT_ONCE][ITEMS];
  const uint id = get_local_id(0), index = get_group_id(0), piece = get_group_id(1), z = get_group_id(2);
  const Pair pair = pair_of(index, p);
  __global const T *big = AT_CONST(TYPE, big_base, big_offset) + pair.big * p.big_strides[1];
  __global const T *small = AT_CONST(TYPE, small_base, small_offset) + pair.small * p.small_strides[1];
  acc_t sum[TAPS];
  UNROLL for (int i = 0; i < TAPS; ++i) sum[i] = 0;
  const uint blocks = (uint)((p.out[1] + ROWS - 1) / ROWS);
  const uint end = min((uint)p.batch * blocks * (uint)p.out[2], (piece + 1) * strips);
  for (uint i = piece * strips + id; i < end; i += ITEMS) {
    const uint block = i / (uint)p.out[2], n = block / blocks;
    Strip at;
    at.x = i - block * (uint)p.out[2];
    at.y = (block - n * blocks) * ROWS;
    add_strip(sum, big + n * p.big_strides[0], small + n * p.small_strides[0], at, z, p);
  }
  UNROLL for (int first = 0; first < TAPS; first += COMBINED_AT_ONCE) {
    UNROLL for (int i = 0; i < COMBINED_AT_ONCE; ++i) if (first + i < TAPS) shared[i][id] = sum[first + i];
    for (uint far = ITEMS / 2; far > 0; far /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (id < far)
        UNROLL for (int i = 0; i < COMBINED_AT_ONCE; ++i)
          if (first + i < TAPS) shared[i][id] += shared[i][id + far];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < COMBINED_AT_ONCE && first + id < TAPS) {
      const uint tap = z + first + id;
#if PARTIAL
      const uint taps = (uint)(p.window[1] * p.window[2]);
      ((__global acc_t *)((__global char *)weight_base +
                          weight_offset))[((long)piece * get_num_groups(0) + index) * taps + tap] =
          shared[id][0];
#else
      store_weight(weight_base, weight_offset, index, tap, shared[id][0], p);
#endif
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

// weight = the sums of all pieces. Grid: pairs * taps.
__kernel void depthwise_weight_sum(__global void *weight_base, ulong weight_offset,
                                   __global const void *sums_base, ulong sums_offset, const uint pairs,
                                   const uint pieces, const ConvParams p) {
  const uint taps = (uint)(p.window[1] * p.window[2]), i = get_global_id(0), pair = i / taps;
  if (pair >= pairs) return;
  __global const acc_t *from = (__global const acc_t *)((__global const char *)sums_base + sums_offset) + i;
  acc_t sum = 0;
  for (uint piece = 0; piece < pieces; ++piece) sum += from[(long)piece * pairs * taps];
  store_weight(weight_base, weight_offset, pair, i - pair * taps, sum, p);
}
