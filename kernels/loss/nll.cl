// Negative log likelihood of [samples, classes, inner]: gathering forward, scattering backward, one element
// per target. A target that is not a class is reported, gives NaN (its loss, and every gradient of its
// sample) and is never used as an index.
//   COMPUTE; X, TARGET, W (where HAS_WEIGHT), OUT, G (gradient), TOTAL
#include "types.h"
#include "faults.h"
typedef CTYPE(COMPUTE) T;
#define IN(A, name, i) TO(COMPUTE, LOAD(A, AT_CONST(A, name##_base, name##_offset), i))
#define PAIR(name) __global const void *name##_base, ulong name##_offset
#define TARGET_PAIR(name) __global void *name##_base, ulong name##_offset
#define FOR_EACH \
  for (long i = get_global_id(0) * per; i < min(count, (long)(get_global_id(0) + 1) * per); ++i)
#define CLASS(i) ((long)LOAD(TARGET, AT_CONST(TARGET, target_base, target_offset), i))
#define AT_CLASS(i, c) ((i / inner * classes + (c)) * inner + i % inner)

// with_weights: also writes every element's weight, for the mean.
PER_ITEM __kernel void gather(PAIR(x), PAIR(target), PAIR(weight), TARGET_PAIR(out), TARGET_PAIR(used),
                              long count, long classes, long inner, long ignored, long weight_stride,
                              long per, long with_weights, FAULT_PARAMETERS) {
  FOR_EACH {
    const long c = CLASS(i);
    T w = 0, loss = 0;
    if (c != ignored) {
      if (c >= 0 && c < classes) {
        w = HAS_WEIGHT ? IN(W, weight, c * weight_stride) : (T)1;
        loss = -w * IN(X, x, AT_CLASS(i, c));
      } else {
        report_fault(faults, fault_site, c, classes);
        loss = NAN;
      }
    }
    STORE(OUT, AT(OUT, out_base, out_offset), i, loss);
    if (with_weights) STORE(COMPUTE, AT(COMPUTE, used_base, used_offset), i, w);
  }
}

// grad_step: 1 if every target has a gradient, 0 if all share one. mean: divides by the total weight.
PER_ITEM __kernel void scatter(PAIR(grad), PAIR(target), PAIR(weight), PAIR(total), TARGET_PAIR(out),
                               long count, long classes, long inner, long ignored, long weight_stride,
                               long per, long grad_step, long mean, FAULT_PARAMETERS) {
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
  FOR_EACH {
    const long c = CLASS(i);
    if (c == ignored) continue;
    if (c < 0 || c >= classes) {
      report_fault(faults, fault_site, c, classes);
      for (long k = 0; k < classes; ++k) STORE(OUT, out, AT_CLASS(i, k), (T)NAN);
      continue;
    }
    T g = -IN(G, grad, i * grad_step);
    if (HAS_WEIGHT) g *= IN(W, weight, c * weight_stride);
    if (mean) g /= IN(TOTAL, total, 0);
    STORE(OUT, out, AT_CLASS(i, c), g);
  }
}
