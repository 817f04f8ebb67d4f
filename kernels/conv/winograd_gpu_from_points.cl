// Winograd's 36 points, summed over the terms, to tiles of a convolution's result, for GPUs: a work-item
// transforms one tile of one channel. Defines: TYPE (of the tensor); TILE (edge: 4 of outputs, 3 of a
// gradient of windows); CHANNELS_INNER (as winograd_gpu_to_points.cl); VEC (elements of a row that are
// stored at once: 4, 2, or 1); ADD_SELF (1: there is a bias).
#define NUMBER float
#include "conv_winograd_params.h"
#define SELF_TYPE TYPE
#include "epilogue.h"
#include "winograd.h"
#include "element_vectors.h"

#if TILE == 4
#define SUMS sums_of_four
#else
#define SUMS sums_of_three
#endif

// Sets the word to `value` if a result is not finite: infinities spread through the transforms, so that all
// of it must be computed otherwise. Grid: tiles times channels.
__kernel void from_points(__global void *map_base, ulong map_offset, __global void *word_base,
                          ulong word_offset, __global const void *points_base, ulong points_offset,
                          __global const void *bias_base, ulong bias_offset, const uint value,
                          const ConvWinogradParams p) {
  const int inner_size = (int)(CHANNELS_INNER ? p.channels : p.tiles);
  const int id = get_global_id(0), outer = id / inner_size, inner = id % inner_size;
  if (outer >= (int)(CHANNELS_INNER ? p.tiles : p.channels)) return;
  const int channel = CHANNELS_INNER ? inner : outer, tile = CHANNELS_INNER ? outer : inner;
  const int image = tile / (int)p.image_tiles, of_image = tile % (int)p.image_tiles;
  const int y0 = of_image / (int)p.row_tiles * (int)p.step, x0 = of_image % (int)p.row_tiles * (int)p.step;
  __global const float *from =
      AT_CONST(f32, points_base, points_offset) + tile * p.point_tile + channel * p.point_channel;
  float h[6][TILE];
  UNROLL for (int j = 0; j < 6; ++j) {
    float m[6];
    UNROLL for (int i = 0; i < 6; ++i) m[i] = from[(i * 6 + j) * p.point];
    SUMS(h[j], m[0], m[1], m[2], m[3], m[4], m[5]);
  }
  const Epilogue end = epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride);
  __global STYPE(TYPE) *map =
      AT(TYPE, map_base, map_offset) + p.start + image * p.image + channel * p.channel;
  float finite = 0.0f;
  UNROLL for (int i = 0; i < TILE; ++i) {
    if (y0 + i >= (int)p.rows) break;
    float r[TILE];
    SUMS(r, h[0][i], h[1][i], h[2][i], h[3][i], h[4][i], h[5][i]);
    UNROLL for (int j = 0; j < TILE; ++j) {  // also beyond the map: of the same points
      finite = fma(r[j], 0.0f, finite);
      r[j] = ended(r[j], channel, 0, end);
    }
    const bool in_rows = y0 + i < (int)p.rows;
    UNROLL for (int j = 0; j < TILE; j += VEC)
      if (in_rows && x0 + j < (int)p.columns)
        STOREV(TYPE, map, (y0 + i) * p.row + (x0 + j) * p.column, r + j);
  }
  if (!(finite == 0.0f)) *AT(u32, word_base, word_offset) = value;
}
