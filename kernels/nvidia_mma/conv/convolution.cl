// Convolution, forward or data, as a product on matrix units by mma.sync that gathers its left operand: rows
// are pixels of the target, columns its channels, and the terms are ordered by tap of the window, then by
// channel of the source. A chunk is 16 bytes of adjacent channels of one tap, so the source's channels are
// neighbours, padded with zeros to whole chunks, as they are in the packed weights [m][tap][padded channel].
// Defines: those of mma_tile.h and mma.h (both operands are ALONG_K); ADD_SELF (1: there is a bias); PARTIAL
// (1: the terms are divided into pieces of p.steps buffers, whose sums are written as floats for
// split_k_sum.cl).
#include "conv_implicit_params.h"
#define SELF_TYPE TYPE
#include "epilogue.h"
#include "mma_tile.h"
#include "mma_results.h"

#define LINE_CHUNKS CHUNKS(1, 0)
#define LINE_PACE PACE(1, 0)  // the same for both operands, and so is an item's chunk of a line
#define OUTSIDE (-(1 << 29))

typedef struct {
  ConvImplicitParams p;
  ConvPhase phase;
  int line, channel, r, s;                        // of the item's next chunk: channel and tap
  __global const char *image[COPIES(1, BM)];      // its pixels' images in the source,
  int y[COPIES(1, BM)], x[COPIES(1, BM)];         // and where tap (0, 0) meets them
  __global const char *weight;                    // the first of its lines of weights
  int weights_left;
} Operands;

// The item's chunk `ahead` channels further on.
INLINE void go_on(Operands *o, int ahead) {
  const int channels = (int)o->p.padded_channels, columns = (int)o->phase.taps[1];
  o->channel += ahead;
  while (o->channel >= channels) {
    o->channel -= channels;
    if (++o->s == columns) o->s = 0, ++o->r;
  }
}
INLINE __global const char *pixel_chunk(const Operands *o, int i, int *bytes) {
  const int y = o->y[i] + o->r * (int)o->p.tap_step[0], x = o->x[i] + o->s * (int)o->p.tap_step[1];
  const bool in_map = (uint)y < (uint)o->p.rows && (uint)x < (uint)o->p.columns;
  const bool inside = in_map && o->r < (int)o->phase.taps[0];
  *bytes = inside ? CHUNK : 0;
  return o->image[i] +
         (inside ? y * (int)o->p.source_row + x * (int)o->p.source_column + o->channel : 0) * ELEMENT_BYTES;
}
INLINE __global const char *weight_chunk(const Operands *o, int i, int *bytes) {
  const long pace = o->p.padded_m * ELEMENT_BYTES;  // of a line of weights
  const int tap = (int)o->phase.weight_first + o->r * (int)o->p.weight_step[0] +
                  o->s * (int)o->p.weight_step[1];
  const bool inside = o->r < (int)o->phase.taps[0] && o->weights_left > i * LINE_PACE;
  *bytes = inside ? CHUNK : 0;
  return o->weight + (inside ? i * LINE_PACE * pace +
                                   (tap * (int)o->p.padded_channels + o->channel) * ELEMENT_BYTES
                             : 0);
}
#define PLACE_OF(o, i) place_along_k((o)->line + (i) * LINE_PACE, get_local_id(0) % LINE_CHUNKS)
#define HAS_LINES(o, width) ((width) % LINE_PACE == 0 || (o)->line < (width))

#define WHOLE_BUFFERS(o) 0  // windows reach beyond the map
#if ASYNC
INLINE void copy_operands(__local uchar *tiles, uint to, Operands *o, bool whole) {
  int bytes;
  if (HAS_LINES(o, BM)) {
    UNROLL for (int i = 0; i < COPIES(1, BM); ++i) {
      __global const char *from = pixel_chunk(o, i, &bytes);
      copy_chunk(tiles, to + PLACE_OF(o, i), from, bytes);
    }
  }
  if (HAS_LINES(o, BN)) {
    UNROLL for (int i = 0; i < COPIES(1, BN); ++i) {
      __global const char *from = weight_chunk(o, i, &bytes);
      copy_chunk(tiles, to + A_BYTES + PLACE_OF(o, i), from, bytes);
    }
  }
  go_on(o, BK);
}
#else
INLINE void read_operands(Held *held, Operands *o) {
  int bytes;
  UNROLL for (int i = 0; i < COPIES(1, BM); ++i) {
    __global const char *from = pixel_chunk(o, i, &bytes);
    held->a[i] = load_whole_chunk(from, bytes != 0);
  }
  UNROLL for (int i = 0; i < COPIES(1, BN); ++i) {
    __global const char *from = weight_chunk(o, i, &bytes);
    held->b[i] = load_whole_chunk(from, bytes != 0);
  }
  go_on(o, BK);
}
INLINE void write_operands(__local uchar *tiles, uint to, const Held *held, const Operands *o) {
  if (HAS_LINES(o, BM)) {
    UNROLL for (int i = 0; i < COPIES(1, BM); ++i) store_chunk(tiles, to + PLACE_OF(o, i), held->a[i]);
  }
  if (HAS_LINES(o, BN)) {
    UNROLL for (int i = 0; i < COPIES(1, BN); ++i)
      store_chunk(tiles, to + A_BYTES + PLACE_OF(o, i), held->b[i]);
  }
}
#endif
#include "mma_loop.h"

// Of p, `steps` are buffers of a work-group and `padded_m` is the length of a line of weights.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void convolution_mma(__global void *target_base, ulong target_offset,
                              __global const void *source_base, ulong source_offset,
                              __global const void *weight_base, ulong weight_offset,
                              __global const void *bias_base, ulong bias_offset, const ConvImplicitParams p) {
  __local uchar tiles[TILE_BYTES] __attribute__((aligned(128)));
  const int item = get_local_id(0), warp = item >> 5, lane = item & 31;
  const int m0 = get_group_id(0) * BM, n0 = get_group_id(1) * BN;
  const int row = warp / WARPS_N * WM, column = warp % WARPS_N * WN;
  const ConvPhase phase = p.phases[PARTIAL ? 0 : get_group_id(2)];
  const int pixels = (int)phase.pixels;
  const int map_pixels = (int)phase.map_pixels, row_pixels = (int)phase.row_pixels;
  // Another phase may have more pixels: this group has nothing to do then.
  const int terms = m0 < pixels ? (int)(phase.taps[0] * phase.taps[1] * p.padded_channels) : 0;
  const int all = (terms + BK - 1) / BK;
  const int first = PARTIAL ? (int)get_group_id(2) * (int)p.steps : 0;
  const int count = PARTIAL ? min((int)p.steps, all - first) : all;

  Operands o;
  o.p = p;
  o.phase = phase;
  o.line = item / LINE_CHUNKS;
  o.channel = o.r = o.s = 0;
  const int term = first * BK + item % LINE_CHUNKS * CHUNK_ELEMENTS, tap = term / (int)p.padded_channels;
  o.channel = term - tap * (int)p.padded_channels;
  o.r = tap / max((int)phase.taps[1], 1);
  o.s = tap - o.r * (int)phase.taps[1];
  UNROLL for (int i = 0; i < COPIES(1, BM); ++i) {
    const int pixel = m0 + o.line + i * LINE_PACE, image = min(pixel, pixels - 1) / map_pixels;
    const int in_map = pixel - image * map_pixels;
    o.image[i] = (__global const char *)source_base + source_offset + image * p.source_image * ELEMENT_BYTES;
    o.y[i] = pixel < pixels ? in_map / row_pixels * (int)p.pixel_step[0] + (int)phase.first[0] : OUTSIDE;
    o.x[i] = in_map % row_pixels * (int)p.pixel_step[1] + (int)phase.first[1];
  }
  o.weight = (__global const char *)weight_base + weight_offset +
             (n0 + o.line) * p.padded_m * ELEMENT_BYTES;
  o.weights_left = (int)p.m - n0 - o.line;
  float4 sums[FRAGMENTS_N][FRAGMENTS_M];
  sum_along_k(tiles, sums, o, count, row, column);

  __global result_t *target = (__global result_t *)((__global char *)target_base + target_offset) +
                              (PARTIAL ? get_group_id(2) * p.piece : phase.target);
  const Epilogue end = epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride);
  const int x0 = n0 + column, left = (int)p.m - x0;
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i)
    UNROLL_ON_DEVICE for (int low = 0; low < 2; ++low) {
      const int pixel = m0 + row + i * 16 + low * 8 + (lane >> 2), image = pixel / map_pixels;
      const int in_map = pixel - image * map_pixels;
      float2 v[FRAGMENTS_N];
      UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) {
        v[j] = low ? sums[j][i].zw : sums[j][i].xy;
#if !PARTIAL
        const int x = x0 + j * 8 + (lane & 3) * 2, last = (int)p.m - 1;
        v[j] = (float2)(ended(v[j].x, min(x, last), 0, end), ended(v[j].y, min(x + 1, last), 0, end));
#endif
      }
      store_row(tiles,
                target + image * p.target_image + in_map / row_pixels * p.target_row +
                    in_map % row_pixels * p.target_column + x0 * p.target_channel,
                p.target_channel, pixel < pixels ? left : 0, v, FRAGMENTS_N);
    }
}
