// Weights and bias to float blocks of 32 output channels for direct.cl; channels past the last repeat it.
// Defines: TYPE.
#include "conv_rows_params.h"
#include "transpose.h"

ONE_ITEM __kernel void pack_weights(__global void *to_base, ulong to_offset, __global const void *from_base,
                                    ulong from_offset, __global const void *bias_base, ulong bias_offset,
                                    const PackWeightsParams p) {
  const long block = get_global_id(0), c0 = get_global_id(1) * p.inputs_per_item, g = get_global_id(2);
  const long c1 = min((long)p.inputs, c0 + p.inputs_per_item), taps = p.taps_y * p.taps_x, n0 = block * 32;
  __global const STYPE(TYPE) *from = AT_CONST(TYPE, from_base, from_offset) + p.start + g * p.group;
  __global float16 *to = (__global float16 *)(AT(f32, to_base, to_offset)) +
                         (g * get_global_size(0) + block) * (1 + p.inputs * taps) * 2;
  if (c0 == 0)
    for (int v = 0; v < 2; ++v) {
      float lane[16];
      for (int i = 0; i < 16; ++i)
        lane[i] = p.add_bias ? LOAD(TYPE, AT_CONST(TYPE, bias_base, bias_offset),
                                    g * p.bias_group + min(n0 + 16 * v + i, p.outputs - 1) * p.bias)
                             : 0.0f;
      to[v] = vload16(0, lane);
    }
  to += 2;
  const bool linear = p.x == 1 && p.y == p.taps_x && p.input == taps;
  long k = c0 * taps;
  if (linear)
    for (; k + 16 <= c1 * taps; k += 16) UNROLL for (int v = 0; v < 2; ++v) {
      float16 r[16];
      UNROLL for (int i = 0; i < 16; ++i)
        r[i] = LOAD16(TYPE, from, min(n0 + 16 * v + i, p.outputs - 1) * p.output + k);
      transpose16(r);
      UNROLL for (int i = 0; i < 16; ++i) to[2 * (k + i) + v] = r[i];
    }
  for (; k < c1 * taps; ++k) {
    const long c = k / taps, tap = k - c * taps, y = tap / p.taps_x, x = tap - y * p.taps_x;
    const long at = c * p.input + y * p.y + x * p.x;
    float lane[32];
    for (int i = 0; i < 32; ++i) lane[i] = LOAD(TYPE, from, min(n0 + i, p.outputs - 1) * p.output + at);
    to[2 * k] = vload16(0, lane);
    to[2 * k + 1] = vload16(1, lane);
  }
}
