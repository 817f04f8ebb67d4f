// Looks for floats whose second TF32 number the unit might take for zero (below 2^-100), or whose products
// could give inf - inf (from 2^64 up, infinities, NaN). If there are any, a word is set to `stop`: the
// product by parts (product.cl, TF32_PARTS 2) then does nothing, and a kernel in plain float computes it. A
// work-item looks at 8 adjacent elements.
#include "types.h"
#include "tf32_parts_params.h"

INLINE bool is_beyond(float x) {
  const uint size = as_uint(x) & 0x7fffffffu;
  return size != 0 && (size < 0x0d800000u || size >= 0x5f800000u);  // 2^-100, 2^64
}

__kernel void find_beyond(__global const void *a_base, ulong a_offset, __global const void *b_base,
                          ulong b_offset, __global void *word_base, ulong word_offset, uint stop,
                          const Tf32PartsParams p) {
  ulong i = get_global_id(0);
  const bool second = i >= p.a.items;
  if (second) i -= p.a.items;
  if (second && i >= p.b.items) return;
  const Tf32PartsOperand o = second ? p.b : p.a;
  __global const float *from = second ? AT_CONST(f32, b_base, b_offset) : AT_CONST(f32, a_base, a_offset);
  const uint pieces = ((uint)o.length + 7) / 8;
  const uint first = (uint)(i % pieces) * 8;
  const ulong line = i / pieces;  // counts through the batch
  from += (long)(line / o.lines) * o.batch_stride + (long)(line % o.lines) * o.line_stride + first;
  bool beyond = false;
  if (first + 8 <= o.length && ((size_t)from & 15) == 0) {
    const float4 low = ((__global const float4 *)from)[0], high = ((__global const float4 *)from)[1];
    beyond = is_beyond(low.x) || is_beyond(low.y) || is_beyond(low.z) || is_beyond(low.w) ||
             is_beyond(high.x) || is_beyond(high.y) || is_beyond(high.z) || is_beyond(high.w);
  } else {
    for (uint e = first; e < o.length && e < first + 8; ++e) beyond |= is_beyond(from[e - first]);
  }
  if (beyond) *(__global uint *)((__global char *)word_base + word_offset) = stop;
}
