// Products of groups (grouped.h) for CPU drivers: a work-item computes `rows` rows and up to `panels` panels
// of 32 columns of one group. Defines: B_TYPE, RESULT, SELF_TYPE (any), GROUPED. A is of
// floats.
#include "grouped.h"
#include "tile_in_place.h"

ONE_ITEM __kernel void matmul_grouped(__global void *c_base, ulong c_offset, __global const void *a_base,
                                      ulong a_offset, __global const void *b_base, ulong b_offset,
                                      __global const void *ends_base, ulong ends_offset, const int groups,
                                      FAULT_PARAMETERS, const MatmulParams p, const int rows,
                                      const int panels) {
  SCRATCH float16 packed[MAX_PANELS * PANEL_VECTORS];
  __global const int *ends = AT_CONST(i32, ends_base, ends_offset);
  const long tile_n = get_global_id(0), tile_m = get_global_id(1), z = get_global_id(2);
  if (tile_n == 0 && tile_m == 0 && z == 0)
    check_ends(ends, groups, GROUPED, p, 0, 1, faults, fault_site);
  const Place at =
      place_of_tile(ends, groups, GROUPED, p, rows, (long)PANEL * panels, tile_m, tile_n, z);
  if (at.m0 >= at.m.count || at.n0 >= at.n.count) return;
  MatmulParams part = p;
  part.m = at.m.count;
  part.n = at.n.count;
  __global STYPE(RESULT) *c =
      AT(RESULT, c_base, c_offset) + z * p.c_batch + at.m.begin * p.c_row + at.n.begin;
  __global const float *a =
      AT_CONST(f32, a_base, a_offset) + at.group * p.a_batch + at.m.begin * p.a_row + at.k.begin * p.a_col;
  __global const STYPE(B_TYPE) *b =
      AT_CONST(B_TYPE, b_base, b_offset) + at.group * p.b_batch + at.n.begin * p.b_col + at.k.begin * p.b_row;
  if (at.k.count == 0) {
    for (long m = at.m0; m < min(at.m0 + rows, at.m.count); ++m)
      for (long n = at.n0; n < min(at.n0 + PANEL * panels, at.n.count); ++n)
        STORE(RESULT, c, m * p.c_row + n, 0.0f);
    return;
  }
  sweep_tiles(c, a, b, epilogue_of(false, b_base, b_offset, 0, p), packed, part, at.k.count, at.n0, at.m0,
              rows, panels);
}
