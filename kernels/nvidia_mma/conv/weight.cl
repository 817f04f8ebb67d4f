// The gradient of a convolution's weights on matrix units by mma.sync: rows are channels of the small map,
// columns are the big map's channels of every tap, ordered by tap, then by channel, and the terms are the
// pixels of the small map. A line of an operand is a pixel: the small map's lie in memory one after the
// other; those of the big map are gathered, chunks of 16 bytes of adjacent channels where the pixel meets the
// item's tap. Both maps' channels are neighbours, the big map's padded with zeros to whole chunks.
// Defines: those of mma_tile.h and mma.h (neither operand is ALONG_K); PARTIAL (1: the pixels are divided
// into pieces of p.steps buffers, whose sums are written as floats for split_k_sum.cl).
#include "conv_implicit_weight_params.h"
#include "mma_lines.h"
#include "mma_results.h"

typedef struct {
  Chunks small;
  ConvImplicitWeightParams p;
  __global const char *big;  // the item's channels of pixel (0, 0) of the first image
  int line, chunk;           // its first line of a buffer, and its chunk of a line
  bool exists;               // its columns do
  int tap[2];                // where pixel (0, 0) of the small map meets its tap
  int image[COPIES(0, BN)], y[COPIES(0, BN)], x[COPIES(0, BN)];  // the pixels of its lines
  int ahead[3];              // images, rows and columns from a buffer's lines to those of the next
} Operands;

INLINE __global const char *big_chunk(const Operands *o, int i, int *bytes) {
  const int y = o->y[i] * (int)o->p.pixel_step[0] + o->tap[0],
            x = o->x[i] * (int)o->p.pixel_step[1] + o->tap[1];
  const bool inside = o->exists && o->image[i] < (int)o->p.images && (uint)y < (uint)o->p.rows &&
                      (uint)x < (uint)o->p.columns;
  *bytes = inside ? CHUNK : 0;
  return o->big + (inside ? o->image[i] * o->p.big_image +
                                (y * (int)o->p.big_row + x * (int)o->p.big_column)
                          : 0) * ELEMENT_BYTES;
}
// `ahead` is less than a row and less than a map: at most one carry each.
INLINE void go_on(Operands *o) {
  UNROLL for (int i = 0; i < COPIES(0, BN); ++i) {
    o->x[i] += o->ahead[2];
    o->y[i] += o->ahead[1];
    o->image[i] += o->ahead[0];
    if (o->x[i] >= (int)o->p.row_pixels) o->x[i] -= (int)o->p.row_pixels, ++o->y[i];
    if (o->y[i] >= (int)o->p.map_rows) o->y[i] -= (int)o->p.map_rows, ++o->image[i];
  }
}

#define WHOLE_BUFFERS(o) 0  // windows reach beyond the map
#if ASYNC
INLINE void copy_operands(__local uchar *tiles, uint to, Operands *o, bool whole) {
  copy_lines(tiles, to, &o->small, 0, BM, whole);
  if (HAS_COPY(o, 0, BN)) {
    UNROLL for (int i = 0; i < COPIES(0, BN); ++i) {
      int bytes;
      __global const char *from = big_chunk(o, i, &bytes);
      copy_chunk(tiles, to + A_BYTES + PLACE_OF(o, i, 0, BN), from, bytes);
    }
  }
  go_on(o);
}
#else
INLINE void read_operands(Held *held, Operands *o) {
  read_lines(held->a, &o->small, 0, BM);
  UNROLL for (int i = 0; i < COPIES(0, BN); ++i) {
    int bytes;
    __global const char *from = big_chunk(o, i, &bytes);
    held->b[i] = load_whole_chunk(from, bytes != 0);
  }
  go_on(o);
}
INLINE void write_operands(__local uchar *tiles, uint to, const Held *held, const Operands *o) {
  write_lines(tiles, to, held->a, &o->small, 0, BM);
  if (!HAS_COPY(o, 0, BN)) return;
  UNROLL for (int i = 0; i < COPIES(0, BN); ++i)
    store_chunk(tiles, to + A_BYTES + PLACE_OF(o, i, 0, BN), held->b[i]);
}
#endif
#include "mma_loop.h"

// Of p, `channels` are the padded ones, `steps` the buffers of a work-group, and columns of the target are
// neighbours.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void weight_mma(__global void *target_base, ulong target_offset, __global const void *small_base,
                         ulong small_offset, __global const void *big_base, ulong big_offset,
                         const ConvImplicitWeightParams p) {
  __local uchar tiles[TILE_BYTES] __attribute__((aligned(128)));
  const int item = get_local_id(0), warp = item >> 5, lane = item & 31;
  const int m0 = get_group_id(1) * BM, n0 = get_group_id(0) * BN, m = (int)p.m, n = (int)p.n;
  const int row = warp / WARPS_N * WM, column = warp % WARPS_N * WN;
  const int row_pixels = (int)p.row_pixels, map_pixels = (int)p.map_rows * row_pixels;
  const int pixels = (int)p.images * map_pixels, all = (pixels + BK - 1) / BK;
  const int first = (int)get_group_id(2) * (int)p.steps, count = min((int)p.steps, all - first);

  Operands o;
  o.small = chunks_of((__global const char *)small_base + small_offset, p.small_column, 0, BM, m0, m,
                      first * BK, pixels);
  o.p = p;
  o.line = item / CHUNKS(0, BN);
  o.chunk = item % CHUNKS(0, BN);
  const int at = n0 + o.chunk * CHUNK_ELEMENTS, tap = at / (int)p.channels, r = tap / (int)p.tap_columns;
  o.exists = at < n;
  o.big = (__global const char *)big_base + big_offset + (at - tap * (int)p.channels) * ELEMENT_BYTES;
  o.tap[0] = (int)p.first[0] + r * (int)p.tap_step[0];
  o.tap[1] = (int)p.first[1] + (tap - r * (int)p.tap_columns) * (int)p.tap_step[1];
  UNROLL for (int i = 0; i < COPIES(0, BN); ++i) {
    const int pixel = first * BK + o.line + i * PACE(0, BN), in_map = pixel % map_pixels;
    o.image[i] = pixel / map_pixels;
    o.y[i] = in_map / row_pixels;
    o.x[i] = in_map % row_pixels;
  }
  o.ahead[0] = BK / map_pixels;
  o.ahead[1] = BK % map_pixels / row_pixels;
  o.ahead[2] = BK % map_pixels % row_pixels;
  float4 sums[FRAGMENTS_N][FRAGMENTS_M];
  sum_along_k(tiles, sums, o, count, row, column);

  __global result_t *target =
      (__global result_t *)((__global char *)target_base + target_offset) + get_group_id(2) * p.piece;
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i)
    UNROLL_ON_DEVICE for (int low = 0; low < 2; ++low) {
      const int y = m0 + row + i * 16 + low * 8 + (lane >> 2);
      float2 v[FRAGMENTS_N];
      UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) v[j] = low ? sums[j][i].zw : sums[j][i].xy;
      store_row(tiles, target + y * p.target_m + n0 + column, 1, y < m ? n - n0 - column : 0, v, FRAGMENTS_N);
    }
}
