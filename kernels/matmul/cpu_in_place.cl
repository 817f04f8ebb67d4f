// Matrix product for CPU drivers, for products too small to pack A: as cpu_packed.cl, but A is read in place.
// Defines: B_TYPE (of b), RESULT, those of epilogue.h.
#include "tile_in_place.h"

ONE_ITEM __kernel void matmul_in_place(__global void *c_base, ulong c_offset, __global const void *a_base,
                                       ulong a_offset, __global const void *b_base, ulong b_offset,
                                       __global const void *s_base, ulong s_offset,
                                       __global const void *scales_base, ulong scales_offset,
                                       const MatmulParams p, const int rows, const int panels,
                                       const int add_s) {
  SCRATCH float16 packed[MAX_PANELS * PANEL_VECTORS];
  sweep_tiles(AT(RESULT, c_base, c_offset) + get_global_id(2) * p.c_batch,
              OF_BATCH(f32, a_base, a_offset, p.a_batch), OF_BATCH(B_TYPE, b_base, b_offset, p.b_batch),
              END_OF_BATCH, packed, p, p.k, FIRST_PLACE, rows, panels);
}
