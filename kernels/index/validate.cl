// Sets a flag where an index (type I, row-major) lies outside of [low, high).
#include "types.h"
#include "range.h"

GROUP __kernel void validate(__global void *flag_base, ulong flag_offset, __global const void *index_base,
                             ulong index_offset, long count, long per_item, long low, long high) {
  __global const STYPE(I) *index = AT_CONST(I, index_base, index_offset);
  FOR_EACH(i, count, per_item) {
    if (index[i] < low || index[i] >= high) *AT(i32, flag_base, flag_offset) = 1;
  }
}
