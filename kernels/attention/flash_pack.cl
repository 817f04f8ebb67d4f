// Packs rows of TYPE into panels [rows / 32][depth][32] of float for the products in flash.h; rows past the
// last repeat it. A work-item packs one panel of one head.
#include "types.h"
#include "flash_params.h"
#include "transpose.h"

ONE_ITEM __kernel void flash_pack(__global void *panels_base, ulong panels_offset,
                                  __global const void *in_base, ulong in_offset, const FlashPackParams p) {
  const long z = get_global_id(1), first = get_global_id(0) * 32;
  __global const STYPE(TYPE) *in = AT_CONST(TYPE, in_base, in_offset) + z / p.heads * p.in.batch +
                                   z % p.heads * p.in.head + first * p.in.row;
  __global float *panel =
      AT(f32, panels_base, panels_offset) + (z * ((p.rows + 31) / 32) + get_global_id(0)) * p.depth * 32;
  const int last = min(31L, p.rows - 1 - first);
  ROLLED for (int v = 0; v < 2; ++v) {
    long k = 0;
    if (p.column == 1)
      for (; k + 16 <= p.depth; k += 16) {
        float16 r[16];
        UNROLL for (int i = 0; i < 16; ++i) r[i] = LOAD16(TYPE, in, min(16 * v + i, last) * p.in.row + k);
        transpose16(r);
        UNROLL for (int i = 0; i < 16; ++i) vstore16(r[i], 0, panel + (k + i) * 32 + 16 * v);
      }
    ROLLED for (; k < p.depth; ++k)
      ROLLED for (int i = 0; i < 16; ++i)
        panel[k * 32 + 16 * v + i] = LOAD(TYPE, in, min(16 * v + i, last) * p.in.row + k * p.column);
  }
}
