// Tiles of a convolution's operands to Winograd's 36 points, for GPUs: a work-item transforms one tile of one
// channel. Defines: TYPE (of the tensor); TILE (edge: 6 of inputs, 4 of an output's gradient, 3 of windows);
// CHANNELS_INNER (1: channels are neighbours among the points, and work-items take them in turn; 0: tiles).
#define NUMBER float
#include "conv_winograd_params.h"
#include "winograd.h"

#if TILE == 6
#define TRANSFORM(u, v) transform_six(u, v(0), v(1), v(2), v(3), v(4), v(5))
#elif TILE == 4
#define TRANSFORM(u, v) transform_four(u, v(0), v(1), v(2), v(3))
#else
#define TRANSFORM(u, v) transform_three(u, v(0), v(1), v(2))
#endif

// Grid: tiles times channels.
__kernel void to_points(__global void *points_base, ulong points_offset, __global const void *map_base,
                        ulong map_offset, const ConvWinogradParams p) {
  const int inner_size = (int)(CHANNELS_INNER ? p.channels : p.tiles);
  const int id = get_global_id(0), outer = id / inner_size, inner = id % inner_size;
  if (outer >= (int)(CHANNELS_INNER ? p.tiles : p.channels)) return;
  const int channel = CHANNELS_INNER ? inner : outer, tile = CHANNELS_INNER ? outer : inner;
  const int image = tile / (int)p.image_tiles, of_image = tile % (int)p.image_tiles;
  const int y0 = (int)p.first[0] + of_image / (int)p.row_tiles * (int)p.step;
  const int x0 = (int)p.first[1] + of_image % (int)p.row_tiles * (int)p.step;
  __global const STYPE(TYPE) *map =
      AT_CONST(TYPE, map_base, map_offset) + p.start + image * p.image + channel * p.channel;
  float h[TILE][6];
  UNROLL for (int i = 0; i < TILE; ++i) {
    float r[TILE];
    const bool in_rows = (uint)(y0 + i) < (uint)p.rows;
    UNROLL for (int j = 0; j < TILE; ++j) {
      const bool inside = in_rows && (uint)(x0 + j) < (uint)p.columns;
      r[j] = inside ? LOAD(TYPE, map, (y0 + i) * p.row + (x0 + j) * p.column) : 0.0f;
    }
#define OF_ROW(j) r[j]
    TRANSFORM(h[i], OF_ROW);
  }
  __global float *to = AT(f32, points_base, points_offset) + tile * p.point_tile + channel * p.point_channel;
  UNROLL for (int j = 0; j < 6; ++j) {
    float u[6];
#define OF_COLUMN(i) h[i][j]
    TRANSFORM(u, OF_COLUMN);
    UNROLL for (int i = 0; i < 6; ++i) to[(i * 6 + j) * p.point] = u[i];
  }
}
