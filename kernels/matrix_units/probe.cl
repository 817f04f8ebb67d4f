// One product of fragments: whether a driver's compiler has a unit's built-in functions.
// Defines: those of matrix_unit.h.
#include "matrix_unit.h"

__attribute__((reqd_work_group_size(LANES, 1, 1))) UNIT_ATTRIBUTES
__kernel void probe(__global sums_t *sums, __global const left_t *left, __global const right_t *right) {
  __local uint shown[LANES * HELD_WORDS + 1];
  const int lane = get_local_id(0);
  sums[lane] = multiply(shown, sums[lane], left[lane], right[lane]);
}
