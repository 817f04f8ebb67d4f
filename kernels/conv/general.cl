// Convolution of any type, geometry and strides, directly from its definition. A work-item computes TC
// channels of TP neighbouring positions (forward, data), or TC x TC channel pairs of one tap (weight).
// Defines: TYPE, FLOATING (accumulator.h), ADD_SELF (1: there is a bias), TP; GUARDED (1: does nothing
// unless a word in memory has the value `wanted`). All kernels take the same parameters; a weight's gradient
// has no bias.
#include "accumulator.h"
#include "conv_params.h"
#define RESULT TYPE
#define SELF_TYPE TYPE
#include "epilogue.h"

#define TC 4
#define T STYPE(TYPE)

// Goes through tiles, whose numbers in the grid are FIRST(i), SECOND(i) and THIRD(i). A guarded launch has
// few work-items, which take all tiles in turn: it is cheap if there is nothing to do, which is the usual
// case.
#if GUARDED
#define GUARD_PARAMETERS \
  __global const void *word_base, ulong word_offset, uint wanted, const long channel_tiles, const long images,
#define EACH_TILE(i)                                                                      \
  if (*(__global const uint *)((__global const char *)word_base + word_offset) == wanted) \
    for (long i = get_global_id(0); i < tiles * channel_tiles * images; i += get_global_size(0))
#define FIRST(i) (i % tiles)
#define SECOND(i) (i / tiles % channel_tiles)
#define THIRD(i) (i / tiles / channel_tiles)
#else
#define GUARD_PARAMETERS
#define EACH_TILE(i)               \
  const long i = get_global_id(0); \
  if (i < tiles)
#define FIRST(i) i
#define SECOND(i) (long)get_global_id(1)
#define THIRD(i) (long)get_global_id(2)
#endif

// Position tile `i` of a map: its row (z, y) and first column x.
typedef struct {
  long z, y, x;
} Position;
INLINE Position position(long i, const long height, const long width) {
  const long tiles = (width + TP - 1) / TP, row = i / tiles;
  Position at = {row / height, row % height, (i - row * tiles) * TP};
  return at;
}

// What exists of a tile: `channels` from `channel` on, `width` columns. Loops over sums are unrolled: what a
// variable indexes is in memory on GPUs.
INLINE void store_tile(acc_t sum[TC][TP], const Epilogue end, __global T *out, long channel, long channels,
                       long width, long channel_stride, long column_stride) {
  UNROLL for (int c = 0; c < TC; ++c) UNROLL for (int j = 0; j < TP; ++j)
    if (c < channels && j < width)
      STORE(TYPE, out, c * channel_stride + j * column_stride,
            TO(TYPE, ended(sum[c][j], channel + c, 0, end)));
}

// Adds source * weight of one tap for all `channels`. Only columns whose `ok` is set are read.
INLINE void add_tap(acc_t sum[TC][TP], __global const T *source, const long offsets[TP], const bool ok[TP],
                    long source_step, __global const T *weight, long left, long weight_step, long weight_next,
                    long channels) {
  for (long k = 0; k < channels; ++k) {
    acc_t v[TP];
    UNROLL for (int j = 0; j < TP; ++j) v[j] = ok[j] ? LOAD(TYPE, source, offsets[j]) : (acc_t)0;
    UNROLL for (int c = 0; c < TC; ++c) {
      const acc_t w = LOAD(TYPE, weight, min((long)c, left - 1) * weight_next);
      UNROLL for (int j = 0; j < TP; ++j) sum[c][j] = MULTIPLY_ADD(w, v[j], sum[c][j]);
    }
    source += source_step;
    weight += weight_step;
  }
}

// small = big convolved with weight (+ bias). Grid: position tiles, groups * channel tiles, n.
__kernel void forward(__global const void *big_base, ulong big_offset, __global void *small_base,
                      ulong small_offset, __global const void *weight_base, ulong weight_offset,
                      __global const void *bias_base, ulong bias_offset, GUARD_PARAMETERS const ConvParams p,
                      const long tiles) {
  EACH_TILE(i) {
    const long tile = FIRST(i), row = SECOND(i), n = THIRD(i);
    const Position at = position(tile, p.out[1], p.out[2]);
    const long per_group = (p.small_channels + TC - 1) / TC;
    const long g = row / per_group, c0 = (row - g * per_group) * TC;
    const long channel = g * p.small_channels + c0, left = p.small_channels - c0;
    __global const T *big =
        AT_CONST(TYPE, big_base, big_offset) + n * p.big_strides[0] + g * p.big_channels * p.big_strides[1];
    __global const T *weight = AT_CONST(TYPE, weight_base, weight_offset) + channel * p.weight_strides[0];
    acc_t sum[TC][TP];
    UNROLL for (int c = 0; c < TC; ++c) UNROLL for (int j = 0; j < TP; ++j) sum[c][j] = 0;
    for (long kz = 0; kz < p.window[0]; ++kz) {
      const long z = at.z * p.stride[0] - p.padding[0] + kz * p.dilation[0];
      if (z < 0 || z >= p.in[0]) continue;
      for (long ky = 0; ky < p.window[1]; ++ky) {
        const long y = at.y * p.stride[1] - p.padding[1] + ky * p.dilation[1];
        if (y < 0 || y >= p.in[1]) continue;
        for (long kx = 0; kx < p.window[2]; ++kx) {
          bool ok[TP];
          long offsets[TP];
          UNROLL for (int j = 0; j < TP; ++j) {
            const long x = (at.x + j) * p.stride[2] - p.padding[2] + kx * p.dilation[2];
            ok[j] = x >= 0 && x < p.in[2];
            offsets[j] = ok[j] ? x * p.big_strides[4] : 0;
          }
          add_tap(sum, big + z * p.big_strides[2] + y * p.big_strides[3], offsets, ok, p.big_strides[1],
                  weight + kz * p.weight_strides[2] + ky * p.weight_strides[3] + kx * p.weight_strides[4],
                  left, p.weight_strides[1], p.weight_strides[0], p.big_channels);
        }
      }
    }
    store_tile(sum, epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride),
               AT(TYPE, small_base, small_offset) + n * p.small_strides[0] + channel * p.small_strides[1] +
                   at.z * p.small_strides[2] + at.y * p.small_strides[3] + at.x * p.small_strides[4],
               channel, left, p.out[2] - at.x, p.small_strides[1], p.small_strides[4]);
  }
}

// The window position whose tap k reads element i of one dimension; -1 if there is none.
INLINE long tap_position(const ConvParams p, int d, long i, long k) {
  const long t = i + p.padding[d] - k * p.dilation[d], o = t / p.stride[d];
  return t >= 0 && o * p.stride[d] == t && o < p.out[d] ? o : -1;
}

// big = transpose of the convolution applied to small (+ bias). Grid: position tiles, groups * channel tiles,
// n.
__kernel void data(__global void *big_base, ulong big_offset, __global const void *small_base,
                   ulong small_offset, __global const void *weight_base, ulong weight_offset,
                   __global const void *bias_base, ulong bias_offset, GUARD_PARAMETERS const ConvParams p,
                   const long tiles) {
  EACH_TILE(i) {
    const long tile = FIRST(i), row = SECOND(i), n = THIRD(i);
    const Position at = position(tile, p.in[1], p.in[2]);
    const long per_group = (p.big_channels + TC - 1) / TC;
    const long g = row / per_group, c0 = (row - g * per_group) * TC;
    const long channel = g * p.big_channels + c0, left = p.big_channels - c0;
    __global const T *small = AT_CONST(TYPE, small_base, small_offset) + n * p.small_strides[0] +
                              g * p.small_channels * p.small_strides[1];
    __global const T *weight = AT_CONST(TYPE, weight_base, weight_offset) +
                               g * p.small_channels * p.weight_strides[0] + c0 * p.weight_strides[1];
    acc_t sum[TC][TP];
    UNROLL for (int c = 0; c < TC; ++c) UNROLL for (int j = 0; j < TP; ++j) sum[c][j] = 0;
    for (long kz = 0; kz < p.window[0]; ++kz) {
      const long z = tap_position(p, 0, at.z, kz);
      if (z < 0) continue;
      for (long ky = 0; ky < p.window[1]; ++ky) {
        const long y = tap_position(p, 1, at.y, ky);
        if (y < 0) continue;
        for (long kx = 0; kx < p.window[2]; ++kx) {
          bool ok[TP];
          bool any = false;
          long offsets[TP];
          UNROLL for (int j = 0; j < TP; ++j) {
            const long x = at.x + j < p.in[2] ? tap_position(p, 2, at.x + j, kx) : -1;
            ok[j] = x >= 0;
            any = any || ok[j];
            offsets[j] = ok[j] ? x * p.small_strides[4] : 0;
          }
          if (!any) continue;
          add_tap(sum, small + z * p.small_strides[2] + y * p.small_strides[3], offsets, ok,
                  p.small_strides[1],
                  weight + kz * p.weight_strides[2] + ky * p.weight_strides[3] + kx * p.weight_strides[4],
                  left, p.weight_strides[0], p.weight_strides[1], p.small_channels);
        }
      }
    }
    store_tile(sum, epilogue_of_bias(ADD_SELF, bias_base, bias_offset, p.bias_stride),
               AT(TYPE, big_base, big_offset) + n * p.big_strides[0] + channel * p.big_strides[1] +
                   at.z * p.big_strides[2] + at.y * p.big_strides[3] + at.x * p.big_strides[4],
               channel, left, p.in[2] - at.x, p.big_strides[1], p.big_strides[4]);
  }
}

// The window positions [low, high) of one dimension whose tap k lies inside the big tensor.
INLINE long2 inside(const ConvParams p, int d, long k) {
  const long start = k * p.dilation[d] - p.padding[d];
  const long low = start >= 0 ? 0 : (-start + p.stride[d] - 1) / p.stride[d];
  const long room = p.in[d] - start;
  const long high = room <= 0 ? 0 : min(p.out[d], (room + p.stride[d] - 1) / p.stride[d]);
  return (long2)(low, high);
}

// Weight gradient. Grid: taps * big channel tiles, groups * small channel tiles.
__kernel void weight(__global const void *big_base, ulong big_offset, __global const void *small_base,
                     ulong small_offset, __global void *weight_base, ulong weight_offset,
                     __global const void *bias_base, ulong bias_offset,
                     GUARD_PARAMETERS const ConvParams p, const long tiles) {
  EACH_TILE(i) {
    const long tile = FIRST(i), row = SECOND(i);
    const long big_tiles = (p.big_channels + TC - 1) / TC, small_tiles = (p.small_channels + TC - 1) / TC;
    const long tap = tile / big_tiles, b0 = (tile - tap * big_tiles) * TC;
    const long g = row / small_tiles, s0 = (row - g * small_tiles) * TC;
    const long kx = tap % p.window[2], ky = tap / p.window[2] % p.window[1],
               kz = tap / p.window[2] / p.window[1];
    const long2 rz = inside(p, 0, kz), ry = inside(p, 1, ky), rx = inside(p, 2, kx);
    long big_channel[TC], small_channel[TC];
    UNROLL for (int c = 0; c < TC; ++c) {
      big_channel[c] = (g * p.big_channels + min(b0 + c, (long)p.big_channels - 1)) * p.big_strides[1];
      small_channel[c] =
          (g * p.small_channels + min(s0 + c, (long)p.small_channels - 1)) * p.small_strides[1];
    }
    const long big_step = p.stride[2] * p.big_strides[4];
    acc_t sum[TC][TC];
    UNROLL for (int c = 0; c < TC; ++c) UNROLL for (int j = 0; j < TC; ++j) sum[c][j] = 0;
    for (long n = 0; n < p.batch; ++n)
      for (long z = rz.x; z < rz.y; ++z)
        for (long y = ry.x; y < ry.y; ++y) {
          __global const T *big = AT_CONST(TYPE, big_base, big_offset) + n * p.big_strides[0] +
                                  (z * p.stride[0] - p.padding[0] + kz * p.dilation[0]) * p.big_strides[2] +
                                  (y * p.stride[1] - p.padding[1] + ky * p.dilation[1]) * p.big_strides[3] +
                                  (kx * p.dilation[2] - p.padding[2]) * p.big_strides[4];
          __global const T *small = AT_CONST(TYPE, small_base, small_offset) + n * p.small_strides[0] +
                                    z * p.small_strides[2] + y * p.small_strides[3];
          small += rx.x * p.small_strides[4];
          big += rx.x * big_step;
          for (long x = rx.x; x < rx.y; ++x, small += p.small_strides[4], big += big_step) {
            acc_t u[TC], v[TC];
            UNROLL for (int c = 0; c < TC; ++c) u[c] = LOAD(TYPE, small, small_channel[c]);
            UNROLL for (int c = 0; c < TC; ++c) v[c] = LOAD(TYPE, big, big_channel[c]);
            UNROLL for (int c = 0; c < TC; ++c) UNROLL for (int j = 0; j < TC; ++j)
              sum[c][j] = MULTIPLY_ADD(u[c], v[j], sum[c][j]);
          }
        }
    __global T *out = AT(TYPE, weight_base, weight_offset) +
                      (g * p.small_channels + s0) * p.weight_strides[0] + b0 * p.weight_strides[1] +
                      kz * p.weight_strides[2] + ky * p.weight_strides[3] + kx * p.weight_strides[4];
    UNROLL for (int c = 0; c < TC; ++c) UNROLL for (int j = 0; j < TC; ++j)
      if (c < p.small_channels - s0 && j < p.big_channels - b0)
        STORE(TYPE, out, c * p.weight_strides[0] + j * p.weight_strides[1], TO(TYPE, sum[c][j]));
  }
}
