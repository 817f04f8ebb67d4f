// The best of the pieces of each output, one work-item an output.
#include "arg_formula.h"

__kernel void merge(__global const void *partial_base, ulong partial_offset, __global const void *at_base,
                    ulong at_offset, ARG_OUTPUTS, long outputs, long pieces) {
  const long o = get_global_id(0);
  if (o >= outputs) return;
  __global const STYPE(COMPUTE) *values = AT_CONST(COMPUTE, partial_base, partial_offset);
  __global const long *ats = AT_CONST(i64, at_base, at_offset);
  Best best = {values[o], ats[o]};
  for (long s = 1; s < pieces; ++s) {
    const Best one = {values[s * outputs + o], ats[s * outputs + o]};
    best = choose(best, one);
  }
  WRITE(o, best)
}
