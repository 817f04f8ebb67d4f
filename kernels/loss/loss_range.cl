// Reports inputs (type A) and targets (type TARGET) that are not within 0 and 1, both row-major; a NaN is not
// within.
#include "types.h"
#include "faults.h"
#include "range.h"

GROUP __kernel void judge(__global const void *input_base, ulong input_offset,
                          __global const void *target_base, ulong target_offset, FAULT_PARAMETERS,
                          int target_site, long count, long per_item) {
  __global const STYPE(A) *input = AT_CONST(A, input_base, input_offset);
  __global const STYPE(TARGET) *target = AT_CONST(TARGET, target_base, target_offset);
  FOR_EACH(i, count, per_item) {
    const CTYPE(A) x = LOAD(A, input, i);
    const CTYPE(TARGET) y = LOAD(TARGET, target, i);
    if (!(x >= 0 && x <= 1)) report_fault(faults, fault_site, i, 0);
    if (!(y >= 0 && y <= 1)) report_fault(faults, target_site, i, 0);
  }
}
