// multilabel_margin_loss of samples of type A: the sum of max(0, 1 - x[target] + x[other]) over all targets
// and all classes that are no targets. A sample's targets are listed up to the first negative number. On CPU
// drivers a work-item takes a sample, on GPUs a work-group.
#include "types.h"
#include "range.h"
#include "faults.h"
#include "margin_params.h"
typedef CTYPE(A) T;

#if CPU_STYLE
#define ID 0
#define ITEMS 1
#define FOR_SAMPLES FOR_EACH(n, p.pieces, p.per_item)
#else
#define ID (long)get_local_id(0)
#define ITEMS (long)get_local_size(0)
#define FOR_SAMPLES for (long n = get_group_id(0), once = 1; once; once = 0)
#endif

GROUP __kernel void forward(__global void *loss_base, ulong loss_offset, __global void *is_target_base,
                            ulong is_target_offset, __global const void *self_base, ulong self_offset,
                            __global const void *target_base, ulong target_offset, FAULT_PARAMETERS,
                            const MarginParams p) {
#if !CPU_STYLE
  __local T partials[GROUP_SIZE];
#endif
  FOR_SAMPLES {
    __global const STYPE(A) *x = AT_CONST(A, self_base, self_offset) + n * p.classes;
    __global const long *listed = AT_CONST(i64, target_base, target_offset) + n * p.classes;
    for (long c = ID; c < p.classes; c += ITEMS)
      if (listed[c] < -1 || listed[c] >= p.classes) report_fault(faults, fault_site, listed[c], p.classes);
    long count = 0;
    while (count < p.classes && listed[count] >= 0) ++count;
    T sum = 0;
    for (long c = ID; c < p.classes; c += ITEMS) {
      bool is_target = false;
      for (long k = 0; k < count; ++k) is_target = is_target || listed[k] == c;
      STORE(A, AT(A, is_target_base, is_target_offset), n * p.classes + c, is_target ? (T)1 : (T)0);
      if (is_target) continue;
      const T other = LOAD(A, x, c);
      for (long k = 0; k < count; ++k) {
        if (listed[k] >= p.classes) continue;
        const T excess = 1 - LOAD(A, x, listed[k]) + other;
        if (excess > 0) sum += excess;
      }
    }
#if !CPU_STYLE
    partials[ID] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (long half_of = ITEMS / 2; half_of > 0; half_of /= 2) {
      if (ID < half_of) partials[ID] += partials[ID + half_of];
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    sum = partials[0];
#endif
    if (ID == 0) STORE(LOSS, AT(LOSS, loss_base, loss_offset), n, sum / p.divisor);
  }
}
