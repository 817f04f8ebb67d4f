// The last step of a convolution on Hopper's matrix units whose sums were computed in pieces: adds the pieces
// in their order. A work-item computes a result.
// Defines: TYPE (of the result); GUARDED (1: does nothing if a word in memory has the value `stop`).
#include "conv_hopper_params.h"
#define SELF_TYPE TYPE
#include "epilogue.h"

INLINE float sum_of_pieces(__global const float *from, const ConvSumParams p) {
  float sum = 0.0f;
  int i = 0;
  for (; i + 8 <= p.pieces; i += 8) {  // eight loads are in flight at a time
    float v[8];
    UNROLL for (int e = 0; e < 8; ++e) v[e] = from[(i + e) * p.piece];
    UNROLL for (int e = 0; e < 8; ++e) sum += v[e];
  }
  for (; i < p.pieces; ++i) sum += from[i * p.piece];
  return sum;
}
INLINE bool is_stopped(__global const void *word_base, ulong word_offset, uint stop) {
#if GUARDED
  return *(__global const uint *)((__global const char *)word_base + word_offset) == stop;
#else
  return false;
#endif
}

// Sums of a map. Grid: the contiguous dimension (positions or channels), the other one, images.
__kernel void sum_map(__global void *out_base, ulong out_offset, __global const void *pieces_base,
                      ulong pieces_offset, __global const void *bias_base, ulong bias_offset,
                      __global const void *word_base, ulong word_offset, uint stop, const ConvSumParams p) {
  if (is_stopped(word_base, word_offset, stop)) return;
  const int channel = get_global_id(p.channels_last ? 0 : 1),
            position = get_global_id(p.channels_last ? 1 : 0);
  const long image = get_global_id(2);
  if (channel >= p.channels || position >= p.positions) return;
  const long in_image =
      p.channels_last ? position * (long)p.channels + channel : channel * (long)p.positions + position;
  float sum = sum_of_pieces((__global const float *)((__global const char *)pieces_base + pieces_offset) +
                                image * p.positions * p.channels + in_image, p);
  sum = ended(sum, channel, 0, epilogue_of_bias(p.has_bias, bias_base, bias_offset, p.bias_stride));
  const int i = position / p.row_positions;
  STORE(TYPE, AT(TYPE, out_base, out_offset),
        image * p.out_image + i * p.out_y + (position - i * p.row_positions) * p.out_x +
            channel * p.out_channel,
        sum);
}

// Sums of a gradient of weights. Grid: taps x channels of a row, rows.
__kernel void sum_weight(__global void *out_base, ulong out_offset, __global const void *pieces_base,
                         ulong pieces_offset, __global const void *bias_base, ulong bias_offset,
                         __global const void *word_base, ulong word_offset, uint stop,
                         const ConvSumParams p) {
  if (is_stopped(word_base, word_offset, stop)) return;
  const int at = get_global_id(0), taps = p.positions;
  if (at >= taps * p.channels) return;
  const long row = get_global_id(1);
  const int tap = p.channels_last ? at / p.channels : at % taps,
            channel = p.channels_last ? at % p.channels : at / taps;
  const int i = tap / p.row_positions, j = tap - i * p.row_positions;
  const int y = i * p.dilation_y, x = j * p.dilation_x, cell_y = y / p.cell_rows, cell_x = x / p.cell_columns;
  const int in_cell = (y - cell_y * p.cell_rows) * p.cell_columns + x - cell_x * p.cell_columns;
  const float sum =
      sum_of_pieces((__global const float *)((__global const char *)pieces_base + pieces_offset) +
                        row * p.sums + cell_y * p.row_sums + cell_x * p.cell + in_cell * p.channels + channel,
                    p);
  STORE(TYPE, AT(TYPE, out_base, out_offset),
        row * p.out_image + i * p.out_y + j * p.out_x + channel * p.out_channel, sum);
}
