// The rows of `count` elements that lie in rows one after another: how many of the n offsets, which say where
// rows begin, are not beyond an element, less 1. Each of the groups has offsets of its own (type A); behind
// its elements its offsets are pieces of work, too: an offset that is not among 0 .. count is reported, as
// are one smaller than the one before it, a first one that is not 0 (from_start) and a last one that is not
// count (to_end).
#include "types.h"
#include "faults.h"
#include "range.h"

GROUP __kernel void rows_of(__global const void *offsets_base, ulong offsets_offset, __global void *out_base,
                            ulong out_offset, FAULT_PARAMETERS, int descent, int end, long groups, long n,
                            long count, long from_start, long to_end, long per_item) {
  const long width = n + count;
  FOR_EACH(i, groups * width, per_item) {
    const long group = i / width, k = i - group * width;
    __global const STYPE(A) *offsets = AT_CONST(A, offsets_base, offsets_offset) + group * n;
    if (k < count) {
      long low = 0, high = n;
      while (low < high) {
        const long middle = low + (high - low) / 2;
        if (offsets[middle] > k)
          high = middle;
        else
          low = middle + 1;
      }
      AT(i64, out_base, out_offset)[group * count + k] = low - 1;
      continue;
    }
    const long place = k - count, offset = offsets[place];
    if (place > 0 && offset < offsets[place - 1])
      report_fault(faults, descent, offset, offsets[place - 1]);
    else if (offset < 0 || offset > count)
      report_fault(faults, fault_site, offset, count);
    else if (from_start && place == 0 && offset != 0)
      report_fault(faults, end, offset, 0);
    else if (to_end && place == n - 1 && offset != count)
      report_fault(faults, end, offset, count);
  }
}
