// Splits a float matrix into three bf16 parts with exactly this sum, for products on matrix units
// (product.cl, BF16_PARTS 3). Splitting: Henry, Tang and Heinecke, arXiv 1904.06376. It is exact for numbers
// from 2^-109 up (the last part's bits must be bf16 numbers). For smaller numbers, for numbers from 2^64 up,
// infinities and NaN, whose products of parts could give inf - inf, a word is set to `stop`, and a kernel in
// plain float computes the product.
// A work-item takes 8 adjacent elements. Lines of the bf16 parts are padded with zeros to multiples of 8.
#include "bf16_parts.h"
#include "bf16_parts_params.h"

__kernel void split_operands(__global void *a_bf16_parts_base, ulong a_bf16_parts_offset,
                             __global void *b_bf16_parts_base, ulong b_bf16_parts_offset,
                             __global const void *a_base, ulong a_offset, __global const void *b_base,
                             ulong b_offset, __global void *word_base, ulong word_offset, uint stop,
                             const Bf16PartsParams p) {
  ulong i = get_global_id(0);
  const bool second = i >= p.a.pieces;
  if (second) i -= p.a.pieces;
  if (second && i >= p.b.pieces) return;
  const Bf16PartsOperand o = second ? p.b : p.a;
  __global const float *from = second ? AT_CONST(f32, b_base, b_offset) : AT_CONST(f32, a_base, a_offset);
  __global ushort *to =
      (__global ushort *)((__global char *)(second ? b_bf16_parts_base : a_bf16_parts_base) +
                          (second ? b_bf16_parts_offset : a_bf16_parts_offset));
  const uint chunks = o.padded / 8;
  const uint chunk = (uint)(i % chunks), line = (uint)(i / chunks);  // lines count through the batch
  const uint first = chunk * 8;
  from += (line / o.lines) * o.batch_stride + (line % o.lines) * o.line_stride + first * o.stride;
  float v[8];
  if (o.stride == 1 && first + 8 <= o.length && ((size_t)from & 15) == 0) {
    const float4 low = ((__global const float4 *)from)[0], high = ((__global const float4 *)from)[1];
    v[0] = low.x; v[1] = low.y; v[2] = low.z; v[3] = low.w;
    v[4] = high.x; v[5] = high.y; v[6] = high.z; v[7] = high.w;
  } else {
    UNROLL for (int e = 0; e < 8; ++e) v[e] = first + e < o.length ? from[e * o.stride] : 0.0f;
  }
  bool refused = false;
  UNROLL for (int e = 0; e < 8; ++e) refused |= is_refused(v[e]);
  if (refused) *(__global uint *)((__global char *)word_base + word_offset) = stop;
  store_bf16_parts_8(to + (ulong)line * o.padded + first, o.bf16_part, v);
}
