// Repacks a convolution's operands for the copy engine if it cannot read them in place (convolution.cl): maps
// channels last, weights as [row][tap][inner], each line padded with zeros to a multiple of 8 numbers.
// float32 is split into BF16_PARTS numbers of bf16 (their sum is exact if there are three:
// matmul/bf16_parts.cl has the source and the bounds). If a number cannot be split, a word is set to `stop`,
// and a kernel in plain float computes the convolution. 16-bit types, and float32 for TF32 (BF16_PARTS 1),
// are copied.
// Defines: TYPE f32, f16 or bf16; BF16_PARTS; NEAR (1: channels are contiguous); CELLS (1: a weight for maps
// in cells); WIDE (channels of a tile of a map: 64, or 32 if there are at most as many).
#include "conv_hopper_params.h"
#include "bf16_parts.h"

#define BITS_f16 1
#define BITS_bf16 1
#define BITS_f32 0
#if CAT(BITS_, TYPE)
typedef ushort number;
#define NONE 0
#else
typedef float number;
#define NONE 0.0f
#endif

// Stores eight numbers as elements `at`, at + 1, .. of each bf16 part; `at` is a multiple of 8.
INLINE void put8(__global void *bf16_parts, ulong at, ulong bf16_part_size, number v[8]) {
#if BF16_PARTS > 1
  UNROLL for (int bf16_part = 0; bf16_part < BF16_PARTS; ++bf16_part) {
    uint bits[8];
    UNROLL for (int e = 0; e < 8; ++e) {
      bits[e] = nearest_bf16(v[e]);
      v[e] -= as_float(bits[e] << 16);
    }
    *(__global uint4 *)((__global ushort *)bf16_parts + bf16_part * bf16_part_size + at) =
        (uint4)(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16, bits[4] | bits[5] << 16,
                bits[6] | bits[7] << 16);
  }
#elif CAT(BITS_, TYPE)
  *(__global uint4 *)((__global ushort *)bf16_parts + at) =
      (uint4)(v[0] | (uint)v[1] << 16, v[2] | (uint)v[3] << 16, v[4] | (uint)v[5] << 16,
              v[6] | (uint)v[7] << 16);
#else
  *(__global float4 *)((__global float *)bf16_parts + at) = (float4)(v[0], v[1], v[2], v[3]);
  *(__global float4 *)((__global float *)bf16_parts + at + 4) = (float4)(v[4], v[5], v[6], v[7]);
#endif
}
INLINE void report(bool refused, __global void *word_base, ulong word_offset, uint stop) {
#if BF16_PARTS > 1
  if (refused) *(__global uint *)((__global char *)word_base + word_offset) = stop;
#endif
}
// A pixel: the begin of its row, and its place in the row.
typedef struct {
  long row;
  int x;
} Pixel;
INLINE Pixel pixel_at(int pixel, const ConvStageParams p) {
  const int positions = p.height * p.width, image = pixel / positions;
  const int in_image = pixel - image * positions, y = in_image / p.width;
  Pixel at = {image * p.image_stride + y * p.y_stride, in_image - y * p.width};
  return at;
}
INLINE number number_at(__global const number *map, Pixel at, int c, const ConvStageParams p) {
  if (c >= p.channels) return NONE;
  return map[at.row + at.x * p.x_stride + c * p.channel_stride];
}

// Repacks a map. A work-group takes 64 pixels x WIDE channels; grid: tiles of pixels x 256, tiles of
// channels.
#define TILE 64
#define EIGHTS (WIDE / 8)
#define PITCH (WIDE + 5)
#define COLUMN(c) ((c) + (((c) >> 5) << 2))  // padding against bank conflicts
__attribute__((reqd_work_group_size(256, 1, 1)))
__kernel void stage_map(__global void *bf16_parts_base, ulong bf16_parts_offset,
                        __global const void *map_base, ulong map_offset, __global void *word_base,
                        ulong word_offset, uint stop, const ConvStageParams p) {
  __global const number *map = (__global const number *)((__global const char *)map_base + map_offset);
  __global void *bf16_parts = (__global char *)bf16_parts_base + bf16_parts_offset;
  const int item = get_local_id(0), p0 = get_group_id(0) * TILE, c0 = get_group_id(1) * WIDE;
  const int group = item % EIGHTS, channel = c0 + group * 8;
  bool refused = false;
#if !NEAR
  __local number tile[TILE * PITCH];
  {
    const int pixel = item & 63, row = item >> 6;
    const Pixel at = pixel_at(min(p0 + pixel, p.pixels - 1), p);
    number v[WIDE / 4];
    UNROLL for (int i = 0; i < WIDE / 4; ++i) v[i] = number_at(map, at, c0 + row + 4 * i, p);
    UNROLL for (int i = 0; i < WIDE / 4; ++i) tile[pixel * PITCH + COLUMN(row + 4 * i)] = v[i];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
  if (channel < p.padded) {
    UNROLL for (int pass = 0; pass < EIGHTS * TILE / 256; ++pass) {
      const int in_tile = item / EIGHTS + pass * (256 / EIGHTS);
      const int pixel = p0 + in_tile;
      if (pixel >= p.pixels) continue;
      number v[8];
#if NEAR
      const Pixel at = pixel_at(pixel, p);
      __global const number *from = map + at.row + at.x * p.x_stride + channel;
      if (channel + 8 <= p.channels && ((size_t)from & 15) == 0) {
#if CAT(BITS_, TYPE)
        const ushort8 u = *(__global const ushort8 *)from;
        v[0] = u.s0;
        v[1] = u.s1;
        v[2] = u.s2;
        v[3] = u.s3;
        v[4] = u.s4;
        v[5] = u.s5;
        v[6] = u.s6;
        v[7] = u.s7;
#else
        const float4 low = ((__global const float4 *)from)[0], high = ((__global const float4 *)from)[1];
        v[0] = low.x; v[1] = low.y; v[2] = low.z; v[3] = low.w;
        v[4] = high.x; v[5] = high.y; v[6] = high.z; v[7] = high.w;
#endif
      } else {
        UNROLL for (int e = 0; e < 8; ++e) {
          v[e] = NONE;
          if (channel + e < p.channels) v[e] = from[e];
        }
      }
#else
      UNROLL for (int e = 0; e < 8; ++e) v[e] = tile[in_tile * PITCH + COLUMN(group * 8 + e)];
#endif
#if BF16_PARTS > 1
      UNROLL for (int e = 0; e < 8; ++e) refused |= is_refused(v[e]);
#endif
      put8(bf16_parts, (ulong)pixel * p.padded + channel, (ulong)p.pixels * p.padded, v);
    }
  }
  report(refused, word_base, word_offset, stop);
}

// Repacks a map in cells. A work-group takes some cells x up to 512 of their numbers, whose places it finds
// out first; a work-item eight numbers at a time. Grid: groups of cells x 256, parts of cells.
#define PART 512
__attribute__((reqd_work_group_size(256, 1, 1)))
__kernel void stage_cells(__global void *bf16_parts_base, ulong bf16_parts_offset,
                          __global const void *map_base, ulong map_offset, __global void *word_base,
                          ulong word_offset, uint stop, const ConvStageCellsParams p) {
  __global const number *map = (__global const number *)((__global const char *)map_base + map_offset);
  __global void *bf16_parts = (__global char *)bf16_parts_base + bf16_parts_offset;
  __local long places[PART];
  __local int2 pixels[PART];  // row and column in the cell; none has row -1
  const int item = get_local_id(0), n0 = get_group_id(1) * PART, count = min(p.padded - n0, PART);
  for (int n = item; n < count; n += 256) {
    const int pixel = (n0 + n) / p.channels, r = pixel / p.columns, q = pixel - r * p.columns;
    places[n] =
        r * p.y_stride + q * p.x_stride + (n0 + n - pixel * p.channels) * p.channel_stride;
    pixels[n] = (int2)(r < p.rows ? r : -1, q);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int eighths = count / 8, c0 = get_group_id(0) * p.cells_of_group;
  const int end = min(p.cells_of_group, p.cells - c0) * eighths;
  bool refused = false;
  for (int i = item; i < end; i += 256) {
    const int in_group = i / eighths, n = (i - in_group * eighths) * 8, cell = c0 + in_group;
    const int row = cell / p.width, image = row / p.height;
    const int y = (row - image * p.height) * p.step_y + p.low_y;
    const int x = (cell - row * p.width) * p.step_x + p.low_x;
    const bool inside = y >= 0 && y + p.rows <= p.map_height && x >= 0 && x + p.columns <= p.map_width;
    __global const number *from = map + image * p.image_stride + y * p.y_stride + x * p.x_stride;
    number v[8];
    UNROLL for (int e = 0; e < 8; ++e) {
      const int2 at = pixels[n + e];
      const bool is_there = inside || (y + at.x >= 0 && y + at.x < p.map_height && x + at.y >= 0 &&
                                       x + at.y < p.map_width);
      v[e] = NONE;
      if (at.x >= 0 && is_there) v[e] = from[places[n + e]];
#if BF16_PARTS > 1
      refused |= is_refused(v[e]);
#endif
    }
    put8(bf16_parts, (ulong)cell * p.padded + n0 + n, (ulong)p.cells * p.padded, v);
  }
  report(refused, word_base, word_offset, stop);
}

// The lines of a weight in the order of its memory: row by row, or tap by tap if rows are neighbours.
typedef struct {
  int row, tap;
} WeightLine;
INLINE WeightLine weight_line(int index, const ConvStageWeightParams p) {
  const int size = p.rows ? p.rows : p.taps, whole = index / size, rest = index - whole * size;
  WeightLine line = {p.rows ? rest : whole, p.rows ? whole : rest};
  return line;
}
// Inner number `inner` of a line.
INLINE number weight_at(__global const number *weight, WeightLine line, int inner,
                        const ConvStageWeightParams p) {
  if (inner >= p.inner) return NONE;
#if CELLS
  const int cell = inner / p.cell, in_cell = inner - cell * p.cell, pixel = in_cell / p.cell_channels;
  const int r = pixel / p.cell_columns, q = pixel - r * p.cell_columns;
  const int y = line.tap * p.cell_rows + r, x = cell * p.cell_columns + q;
  const int i = y / p.dilation_y, j = x / p.dilation_x;
  if (r >= p.cell_rows || i >= p.window_y || j >= p.window_x || i * p.dilation_y != y ||
      j * p.dilation_x != x)
    return NONE;
  inner = in_cell - pixel * p.cell_channels;
#else
  const int i = line.tap / p.row_taps, j = line.tap - i * p.row_taps;
#endif
  return weight[line.row * p.row_stride + i * p.y_stride + j * p.x_stride + inner * p.inner_stride];
}

// Repacks a weight. A work-group takes 32 lines (row, tap) x 64 inner numbers; grid: tiles of lines x 256,
// tiles of inner numbers.
#define LINES 32
__attribute__((reqd_work_group_size(256, 1, 1)))
__kernel void stage_weight(__global void *bf16_parts_base, ulong bf16_parts_offset,
                           __global const void *weight_base, ulong weight_offset, __global void *word_base,
                           ulong word_offset, uint stop, const ConvStageWeightParams p) {
  __global const number *weight =
      (__global const number *)((__global const char *)weight_base + weight_offset);
  __global void *bf16_parts = (__global char *)bf16_parts_base + bf16_parts_offset;
  __local number tile[LINES * 65];
  const int item = get_local_id(0), l0 = get_group_id(0) * LINES, i0 = get_group_id(1) * TILE;
  {
    const int in_tile = item & 31;
    const WeightLine line = weight_line(min(l0 + in_tile, p.lines - 1), p);
    UNROLL for (int k = 0; k < 8; ++k) {
      const int inner = (item >> 5) + 8 * k;
      tile[in_tile * 65 + inner] = weight_at(weight, line, i0 + inner, p);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const int index = l0 + (item >> 3), inner = i0 + (item & 7) * 8;
  bool refused = false;
  if (index < p.lines && inner < p.padded) {
    const WeightLine line = weight_line(index, p);
    number v[8];
    UNROLL for (int e = 0; e < 8; ++e) v[e] = tile[(item >> 3) * 65 + (item & 7) * 8 + e];
#if BF16_PARTS > 1
    UNROLL for (int e = 0; e < 8; ++e) refused |= is_refused(v[e]);
#endif
    put8(bf16_parts, (line.row * (ulong)p.taps + line.tap) * p.padded + inner, (ulong)p.lines * p.padded, v);
  }
  report(refused, word_base, word_offset, stop);
}
