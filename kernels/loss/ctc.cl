// Connectionist temporal classification (Graves et al., 2006), in logarithms. The places of a target
// are its labels with blanks between and around them, so that labels have odd places. On CPU drivers a
// work-item takes a sample, on GPUs a work-group: step by step over time, its work-items share the places.
//   forward   alphas[sample][time][place]: the sum of the paths that end there; and the loss
//   backward  betas of the paths that begin there, added to the alphas; and links between labels of one class
//   gradient  a piece of work is a time of a sample: the share of each class in all paths
// A label that is not a class is reported, makes its paths NaN and is never used as an index.
//   A the type of numbers, TARGET that of labels
#include "types.h"
#include "faults.h"
#include "range.h"
#include "ctc_params.h"
typedef CTYPE(A) T;
#define NEVER (-(T)INFINITY)
#define PAIR(name) __global const void *name##_base, ulong name##_offset
#define OUT_PAIR(name) __global void *name##_base, ulong name##_offset
#define NUMBERS(name) AT_CONST(A, name##_base, name##_offset)
#if CPU_STYLE
#define FOR_SAMPLES FOR_EACH(n, p.samples, p.per_item)
#define ID 0
#define ITEMS 1
#define WAIT
#else
#define FOR_SAMPLES for (long n = get_group_id(0), once = 1; once; once = 0)
#define ID get_local_id(0)
#define ITEMS (long)get_local_size(0)
#define WAIT barrier(CLK_GLOBAL_MEM_FENCE);
#endif
#define FOR_PLACES(s) for (long s = ID; s < p.places; s += ITEMS)
#define SAMPLES ((__global const CtcSample *)((__global const char *)sample_base + sample_offset))
#define LABELS(of) (AT_CONST(TARGET, target_base, target_offset) + (of).start)

INLINE long class_at(__global const STYPE(TARGET) *labels, long place, const CtcParams p) {
  return place & 1 ? (long)LOAD(TARGET, labels, place >> 1) : (long)p.blank;
}
INLINE T emitted(__global const STYPE(A) *row, long c, const CtcParams p) {
  return c >= 0 && c < p.classes ? LOAD(A, row, c) : (T)NAN;
}
INLINE T log_add(T a, T b, T c) {
  const T largest = fmax(a, fmax(b, c)), m = largest == NEVER ? (T)0 : largest;
  return log(exp(a - m) + exp(b - m) + exp(c - m)) + m;
}

GROUP __kernel void forward(OUT_PAIR(loss), OUT_PAIR(alpha), PAIR(prob), PAIR(target), PAIR(sample),
                            FAULT_PARAMETERS, const CtcParams p) {
  FOR_SAMPLES {
    const CtcSample of = SAMPLES[n];
    __global const STYPE(TARGET) *labels = LABELS(of);
    for (long k = ID; k < of.target; k += ITEMS) {
      const long c = class_at(labels, 2 * k + 1, p);
      if (c < 0 || c >= p.classes) report_fault(faults, fault_site, c, p.classes);
    }
    __global STYPE(A) *alpha = AT(A, alpha_base, alpha_offset) + n * p.time * p.places;
    const long own = 2 * of.target + 1;
    for (long t = 0; t < p.time; ++t) {
      __global const STYPE(A) *row = NUMBERS(prob) + (t * p.samples + n) * p.classes;
      __global STYPE(A) *to = alpha + t * p.places;
      __global const STYPE(A) *from = to - p.places;
      FOR_PLACES(s) {
        T v = NEVER;
        if (t < of.input && s < own && (t > 0 || s < 2)) {
          const long c = class_at(labels, s, p);
          v = emitted(row, c, p);
          if (t > 0) {
            const bool skips = s > 1 && (s & 1) && class_at(labels, s - 2, p) != c;
            v += log_add(LOAD(A, from, s), s > 0 ? LOAD(A, from, s - 1) : NEVER,
                         skips ? LOAD(A, from, s - 2) : NEVER);
          }
        }
        STORE(A, to, s, v);
      }
      WAIT
    }
    if (ID == 0) {
      T loss = of.target == 0 ? (T)0 : -NEVER;  // without input only an empty target is possible
      if (of.input > 0) {
        __global const STYPE(A) *last = alpha + (of.input - 1) * p.places + own - 1;
        loss = -log_add(LOAD(A, last, 0), of.target > 0 ? LOAD(A, last, -1) : NEVER, NEVER);
      }
      STORE(A, AT(A, loss_base, loss_offset), n, loss);
    }
  }
}

// betas: two rows of places for each sample. links[sample][label]: the next label of the same class, or 0 if
// there is none; -1 minus that for labels that are not the first of their class.
GROUP __kernel void backward(OUT_PAIR(both), OUT_PAIR(beta), OUT_PAIR(link), PAIR(alpha), PAIR(prob),
                             PAIR(target), PAIR(sample), FAULT_PARAMETERS, const CtcParams p) {
  FOR_SAMPLES {
    const CtcSample of = SAMPLES[n];
    __global const STYPE(TARGET) *labels = LABELS(of);
    __global STYPE(A) *betas = AT(A, beta_base, beta_offset) + 2 * n * p.places;
    __global int *links = AT(i32, link_base, link_offset) + n * (p.places / 2);
    const long own = 2 * of.target + 1;
    for (long k = ID; k < of.target; k += ITEMS) {
      const long c = class_at(labels, 2 * k + 1, p);
      if (c < 0 || c >= p.classes) report_fault(faults, fault_site, c, p.classes);
      int next = 0;
      bool first = true;
      for (long j = k + 1; j < of.target && next == 0; ++j)
        if (class_at(labels, 2 * j + 1, p) == c) next = (int)j;
      for (long j = 0; j < k && first; ++j) first = class_at(labels, 2 * j + 1, p) != c;
      links[k] = first ? next : -1 - next;
    }
    for (long t = of.input - 1; t >= 0; --t) {
      const long place = (n * p.time + t) * p.places;
      __global const STYPE(A) *row = NUMBERS(prob) + (t * p.samples + n) * p.classes;
      __global STYPE(A) *to = betas + (t & 1) * p.places;
      __global const STYPE(A) *from = betas + (1 - (t & 1)) * p.places;
      FOR_PLACES(s) {
        T v = NEVER;
        if (s < own && (t + 1 < of.input || s + 2 >= own)) {
          const long c = class_at(labels, s, p);
          v = emitted(row, c, p);
          if (t + 1 < of.input) {
            const bool skips = s + 2 < own && (s & 1) && class_at(labels, s + 2, p) != c;
            v += log_add(LOAD(A, from, s), s + 1 < own ? LOAD(A, from, s + 1) : NEVER,
                         skips ? LOAD(A, from, s + 2) : NEVER);
          }
        }
        STORE(A, to, s, v);
        STORE(A, AT(A, both_base, both_offset), place + s, v + LOAD(A, NUMBERS(alpha), place + s));
      }
      WAIT
    }
  }
}

// The next place of the same class after s, or -1: of a label by its link, of a blank by search, because a
// label may have the blank's class.
INLINE long next_place(__global const STYPE(TARGET) *labels, __global const int *links, long s, bool blanks,
                       long own, const CtcParams p) {
  if (blanks) {
    do ++s;
    while (s < own && class_at(labels, s, p) != p.blank);
    return s < own ? s : -1;
  }
  const int link = links[s >> 1], next = link < 0 ? -1 - link : link;
  return next == 0 ? -1 : 2 * next + 1;
}

// The logarithm of the sum over the places of a class, from the first one on.
INLINE T sum_of(__global const STYPE(A) *both, __global const STYPE(TARGET) *labels,
                __global const int *links, long first, long own, const CtcParams p) {
  const bool blanks = first == 0;
  T largest = NEVER, sum = 0;
  for (long s = first; s >= 0; s = next_place(labels, links, s, blanks, own, p)) {
    const T v = LOAD(A, both, s);
    if (v > largest || v != v) largest = v;
  }
  if (largest == NEVER) return NEVER;
  for (long s = first; s >= 0; s = next_place(labels, links, s, blanks, own, p))
    sum += exp(LOAD(A, both, s) - largest);
  return log(sum) + largest;
}

#if CPU_STYLE
#define FOR_TIMES FOR_EACH(i, p.pieces, p.per_item)
#else
#define FOR_TIMES for (long i = get_group_id(0), once = 1; once; once = 0)
#endif
GROUP __kernel void gradient(OUT_PAIR(out), PAIR(grad), PAIR(both), PAIR(link), PAIR(loss), PAIR(prob),
                             PAIR(target), PAIR(sample), const CtcParams p) {
  FOR_TIMES {
    const long t = i / p.samples, n = i - t * p.samples;
    const CtcSample of = SAMPLES[n];
    __global const STYPE(TARGET) *labels = LABELS(of);
    __global const STYPE(A) *row = NUMBERS(prob) + i * p.classes;
    __global const STYPE(A) *both = NUMBERS(both) + (n * p.time + t) * p.places;
    __global const int *links = AT_CONST(i32, link_base, link_offset) + n * (p.places / 2);
    __global STYPE(A) *out = AT(A, out_base, out_offset) + i * p.classes;
    const T loss = LOAD(A, NUMBERS(loss), n), grad = LOAD(A, NUMBERS(grad), n);
    const bool dead = t >= of.input || (p.zero_infinity && loss == -NEVER);
    for (long c = ID; c < p.classes; c += ITEMS) {
      const T v = LOAD(A, row, c);
      STORE(A, out, c, dead ? (T)0 : (exp(v) - exp(NEVER + loss - v)) * grad);
    }
    WAIT
    if (!dead) {
      for (long k = (long)ID - 1; k < of.target; k += ITEMS) {  // -1: blanks
        const long c = k < 0 ? p.blank : class_at(labels, 2 * k + 1, p);
        if (k >= 0 && (links[k] < 0 || c < 0 || c >= p.classes || c == p.blank)) continue;
        const T v = LOAD(A, row, c),
                all = sum_of(both, labels, links, k < 0 ? 0 : 2 * k + 1, 2 * of.target + 1, p);
        STORE(A, out, c, (exp(v) - exp(all + loss - v)) * grad);
      }
    }
    WAIT
  }
}
