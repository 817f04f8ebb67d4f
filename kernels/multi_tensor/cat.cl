// cat for GPUs: joins up to CAT_SOURCES tensors along the lines of the result, in one launch. All are
// row-major. A is the unit that a work-item moves: an OpenCL C type of up to 16 bytes. INDEX counts units.
#include "types.h"
#include "cat_params.h"
#define SOURCE(k) __global const void *source_base##k, ulong source_offset##k
#define TAKE(k)                                                        \
  if (c >= p.starts[k]) {                                              \
    source = (__global const char *)source_base##k + source_offset##k; \
    start = p.starts[k];                                               \
    end = p.starts[k + 1];                                             \
  }

__kernel void cat(__global void *out_base, ulong out_offset, SOURCE(0), SOURCE(1), SOURCE(2), SOURCE(3),
                  SOURCE(4), SOURCE(5), SOURCE(6), SOURCE(7), const CatParams p) {
  const long first = p.starts[0], taken = p.starts[CAT_SOURCES] - first;
  const INDEX i = get_global_id(0);
  if (i >= (INDEX)(p.outer * taken)) return;
  const INDEX o = i / (INDEX)taken;
  const long c = first + (i - o * (INDEX)taken);
  __global const char *source = 0;
  long start = 0, end = 0;
  TAKE(0) TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6) TAKE(7)
  ((__global A *)((__global char *)out_base + out_offset))[o * p.line + c] =
      ((__global const A *)source)[o * (end - start) + (c - start)];
}
