// Reports a zero among `count` integers (type B, row-major) that a pointwise operator divides by.
#include "types.h"
#include "faults.h"
#include "range.h"

GROUP __kernel void zero_divisor(__global const void *divisor_base, ulong divisor_offset, FAULT_PARAMETERS,
                                 long count, long per_item) {
  __global const STYPE(B) *divisor = AT_CONST(B, divisor_base, divisor_offset);
  int found = 0;
  FOR_EACH(i, count, per_item) found |= divisor[i] == 0;
  if (found) report_fault(faults, fault_site, 0, 0);
}
