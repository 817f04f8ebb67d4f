// Convolution on Hopper's matrix units without columns in memory (implicit GEMM): a product whose k runs over
// taps and channels, with the loop and the barriers of matmul/product.cl. The map with windows is channels
// last (as bf16 parts if it is float32: operands.cl). One copy in the engine's im2col mode loads consecutive
// positions x 128 bytes of channels of one tap; the engine handles the window's stride, the zeros around the
// map, and the ends of rows and images. Bf16 parts follow each other as further images.
// Defines: those of hopper_tile.h but A_ALONG_K and B_ALONG_K; WEIGHT 0: forward, and data (the same
// product on `small`; a launch for each remainder of positions by the stride): positions x channels of the
// other side, k = (tap, channel). WEIGHT 1: the gradient of weights: channels of `small` x (tap, channel of
// `big`), k = positions of all images, written as sums for sum.cl. PARTIAL (1, for 16-bit types: writes the
// sums of pieces as floats for sum.cl, [piece][row][column] as in a gradient; for float32 in the form of
// results). ADD_SELF (1: there is a bias; without WEIGHT and PARTIAL); CHANNELS_LAST (of 16-bit results, 1:
// channels are neighbours).
// BN is 64 or 128 with TF32 or more than one of BF16_PARTS, because 256 would spill registers.
#include "conv_hopper_places.h"

#define A_ALONG_K (!WEIGHT)
#define B_ALONG_K (!WEIGHT)
#define FLOAT_RESULT (WEIGHT || PARTIAL || BF16_PARTS > 1 || TF32)
#define SELF_TYPE TYPE
#include "epilogue.h"
#include "hopper_tile.h"

// Parameters: the result, or sums; the map with windows; the other operand (`lines`); the bias; a word that
// equals `stop` if this product must not be computed (operands.cl); room for two tensor maps per work-group.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void conv_hopper(__global void *out_base, ulong out_offset, __global const void *map_base,
                          ulong map_offset, __global const void *lines_base, ulong lines_offset,
                          __global const void *bias_base, ulong bias_offset, __global const void *word_base,
                          ulong word_offset, uint stop, __global void *maps_base, ulong maps_offset,
                          const ConvHopperParams p) {
  __local uchar tiles[STAGES * STAGE_BYTES] __attribute__((aligned(1024)));
  __local uint words[2 * MAP_WORDS] __attribute__((aligned(128)));
  __local ulong bars[2 * STAGES] __attribute__((aligned(16)));
#if BF16_PARTS > 1
  if (*(__global const uint *)((__global const char *)word_base + word_offset) == stop) return;
#endif
  const int m = p.m, n = p.n, steps = p.steps;
  const int m_tiles = (m + BM - 1) / BM, n_tiles = (n + BN - 1) / BN, count = m_tiles * n_tiles * p.pieces;
  BEGIN_RING(tiles, bars)

  if (warpgroup == WARPGROUPS) {
    __global uint *map =
        (__global uint *)((__global char *)maps_base + maps_offset) + get_group_id(0) * 2 * MAP_WORDS;
    __global uint *line_map = map + MAP_WORDS;
    PUT_MAP(words, map, (__global const char *)map_base + map_offset, CONV_MAP_WORDS, p.map)
    MAKE_MAP_4(ELEMENT, words + MAP_WORDS, line_map, (__global const char *)lines_base + lines_offset,
               p.line_sizes[0], p.line_sizes[1], p.line_sizes[2], p.line_sizes[3], p.line_strides[0],
               p.line_strides[1], p.line_strides[2], WEIGHT ? 64 : BK, WEIGHT ? BK : BN)
    if (lane == 0) {
      for (int index = get_group_id(0); index < count; index += get_num_groups(0)) {
        const Tile t = tile_at(index, m_tiles, n_tiles);
        const int first = t.z * p.piece_steps, last = min(first + p.piece_steps, steps);
#if WEIGHT
        ConvTap taps[BN / 64];  // of the tile's columns, 64 at a time
        int channels[BN / 64];
        UNROLL for (int j = 0; j < BN / 64; ++j) {
          const int block = t.n0 / 64 + j, tap = block / p.blocks;
          const bool inside = block < n / 64;
          taps[j] = conv_tap_at(inside ? tap : 0, p);
          channels[j] = (inside ? block - tap * p.blocks : p.blocks) * 64;  // past the end: zeros
        }
#else
        const ConvWindow window = conv_window_at(t.m0, p);
        int tap = first / p.blocks, block = first - tap * p.blocks;
        ConvTap at = conv_tap_at(tap, p);
#endif
        for (int step = first; step < last; ++step) {
          barrier_wait(empty + 8 * stage, phase ^ 1);
          const uint bar = full + 8 * stage;
          uint to = ring + stage * STAGE_BYTES;
          barrier_expect(bar, STAGE_BYTES);
#if WEIGHT
          const ConvWindow window = conv_window_at(step * BK, p);
          UNROLL for (int bf16_part = 0; bf16_part < BF16_PARTS; ++bf16_part) {
            UNROLL for (int i = 0; i < WARPGROUPS; ++i)
              copy_tile_4(to + i * 8192, line_map, t.m0 + i * 64, step * BK, 0, bf16_part, bar);
            to += A_BYTES;
          }
          UNROLL for (int bf16_part = 0; bf16_part < BF16_PARTS; ++bf16_part) {
            UNROLL for (int j = 0; j < BN / 64; ++j)
              copy_pixels(to + j * 8192, map, channels[j], window.x, window.y,
                          bf16_part * p.images + window.image, taps[j].dx, taps[j].dy, bar);
            to += B_BYTES;
          }
#else
          UNROLL for (int bf16_part = 0; bf16_part < BF16_PARTS; ++bf16_part) {
            copy_pixels(to, map, block * BK, window.x, window.y, bf16_part * p.images + window.image, at.dx,
                        at.dy, bar);
            to += A_BYTES;
          }
          UNROLL for (int bf16_part = 0; bf16_part < BF16_PARTS; ++bf16_part) {
            copy_tile_4(to, line_map, block * BK, t.n0, at.line, bf16_part, bar);
            to += B_BYTES;
          }
          if (++block == p.blocks) {
            block = 0;
            at = conv_tap_at(++tap, p);
          }
#endif
          NEXT_STAGE
        }
      }
    }
    return;
  }

  const int warp = (item >> 5) & 3, quarter = lane & 3;
  float d[ACCUMULATORS];
  UNROLL for (int i = 0; i < ACCUMULATORS; ++i) d[i] = 0.0f;
#if BF16_PARTS > 1
  float sums[ACCUMULATORS];
#else
#define sums d
#endif
  for (int index = get_group_id(0); index < count; index += get_num_groups(0)) {
    const Tile t = tile_at(index, m_tiles, n_tiles);
    const int count_steps = min(p.piece_steps, steps - t.z * p.piece_steps);
    SUM_STEPS(sums, d, count_steps)

#if ADD_SELF
    const Epilogue end = epilogue_of_bias(true, bias_base, bias_offset, p.bias_stride);
    UNROLL for (int j = 0; j < ACCUMULATORS / 2; ++j) {  // the same for both rows
      const int column = t.n0 + j / 2 * 8 + quarter * 2 + j % 2, at = j / 2 * 4 + j % 2;
      if (column >= n) continue;
      sums[at] = ended(sums[at], column, 0, end);
      sums[at + 2] = ended(sums[at + 2], column, 0, end);
    }
#endif
    UNROLL for (int half_tile = 0; half_tile < 2; ++half_tile) {
      // This item holds columns 8 j + 2 quarter and the next of row `row`, for all j.
      const int row = t.m0 + warpgroup * 64 + warp * 16 + half_tile * 8 + (lane >> 2);
      const bool inside = row < m;
      __global result_t *to =
          (__global result_t *)((__global char *)out_base + out_offset) + t.z * p.out_piece;
#if WEIGHT || PARTIAL
      const int to_stride = 1;
      to += row * (long)n;
#else
      const int to_stride = p.out_channel;
      to += conv_result_at(row, p);
#endif
#if FLOAT_RESULT
      const bool aligned = to_stride == 1 && ((size_t)to & 7) == 0;
      UNROLL for (int j = 0; j < BN / 8; ++j) {
        const int column = t.n0 + j * 8 + quarter * 2;
        const float x = sums[j * 4 + half_tile * 2], y = sums[j * 4 + half_tile * 2 + 1];
        if (!inside) continue;
        if (aligned && column + 2 <= n) *(__global float2 *)(to + column) = (float2)(x, y);
        else {
          if (column < n) to[column * (long)to_stride] = x;
          if (column + 1 < n) to[(column + 1) * (long)to_stride] = y;
        }
      }
#elif CHANNELS_LAST
      const bool aligned = ((size_t)to & 15) == 0;
      UNROLL for (int j = 0; j < BN / 8; j += 4) {
        NEIGHBOURS_OF(v, sums, j, half_tile, quarter)
        const int column = t.n0 + (j + quarter) * 8;
        if (!inside) continue;
        if (aligned && column + 8 <= n) *(__global uint4 *)(to + column) = (uint4)(v[0], v[1], v[2], v[3]);
        else {
          UNROLL for (int e = 0; e < 8; ++e)
            if (column + e < n) ((__global ushort *)to)[column + e] = (ushort)(v[e / 2] >> (16 * (e & 1)));
        }
      }
#else
      UNROLL for (int j = 0; j < BN / 8; ++j) {
        const int column = t.n0 + j * 8 + quarter * 2;
        const uint pair = PAIR_OF(sums, j, half_tile);
        if (!inside) continue;
        if (column < n) ((__global ushort *)to)[column * (long)to_stride] = (ushort)pair;
        if (column + 1 < n) ((__global ushort *)to)[(column + 1) * (long)to_stride] = (ushort)(pair >> 16);
      }
#endif
    }
  }
}
