// Products of a few rows of x, ROWS (1, 2, 4, 8) at a time, with a quantised weight, for GPUs. LANES
// neighbours of a work-group share a row of the weight, and so do PIECES of them further along k; each takes
// COLS rows, TEAMS apart, DEPTH neighbouring units at a time, which it loads before it computes. x is kept in
// local memory (SHARED_X), CHUNK units at a time, or read where it is needed. Sums are combined in local
// memory, in a fixed order. Defines: those of quantised_x.h; ITEMS, LANES, PIECES, COLS, DEPTH, SHARED_X,
// CHUNK (a multiple of STEP), ALL_UNITS (work-items have no units behind a row's end), SAME_SCALES
// (neighbouring units of a work-item have the same scale and zero).
#define TURNED SHARED_X
#include "quantised_x.h"

#define SHARE (LANES * PIECES)  // items of a row of the weight
#define STEP (SHARE * DEPTH)    // units of it that they take at once
#define TEAMS (ITEMS / SHARE)
#define SUMS (ROWS * COLS)
#define PASS_COLS (SUMS > 8 ? 1 : COLS)  // whose sums are combined at once
#define RESULTS (TEAMS * ROWS * PASS_COLS)
#define MOST(a, b) ((a) > (b) ? (a) : (b))
#if SHARED_X
#define X_FLOATS (ROWS * UNIT * CHUNK)
#else
#define X_FLOATS 0
#endif

INLINE float sum_of_four(float4 v) { return v.x + v.y + (v.z + v.w); }

// Products of neighbours along k: four sums side by side where there are few of them, which do not wait for
// each other.
#if SUMS <= 4
typedef float4 Partial;
INLINE float4 add4(float4 sum, float4 a, float4 b) { return fma(a, b, sum); }
INLINE float total(float4 sum) { return sum_of_four(sum); }
#else
typedef float Partial;
INLINE float add4(float sum, float4 a, float4 b) {
  return fma(a.w, b.w, fma(a.z, b.z, fma(a.y, b.y, fma(a.x, b.x, sum))));
}
INLINE float total(float sum) { return sum; }
#endif

typedef struct {
  __global const STYPE(TYPE) *all;
  long row, m, k;
  // [row][step][run][unit]; sums of spans, [row][span][unit]
  __local float4 *runs;
  __local float *sums;
} X;

INLINE float8 factors_of(const X x, int m, int k, int unit, int step) {
#if SHARED_X
  __local const float4 *at = x.runs + (m * RUNS + 2 * step) * CHUNK + unit;
  return (float8)(at[0], at[CHUNK]);
#else
  __global const STYPE(TYPE) *row = x.all + min((long)m, x.m - 1) * x.row;
  return ALL_UNITS ? factors(row, k, step) : factors_before(row, k, step, x.k);
#endif
}

// Units [first, first + CHUNK) of x; the work-group's items have left the chunk before.
INLINE void share_x(const X x, int first) {
#if SHARED_X
  const uint id = get_local_id(0);
  for (uint i = id; i < ROWS * CHUNK * STEPS; i += ITEMS) {
    const uint step = i % STEPS, unit = i / STEPS % CHUNK, m = i / (STEPS * CHUNK);
    __global const STYPE(TYPE) *row = x.all + min((long)m, x.m - 1) * x.row;
    const float8 v = factors_before(row, (long)(first + unit) * UNIT, step, x.k);
    __local float4 *to = x.runs + (m * RUNS + 2 * step) * CHUNK + unit;
    to[0] = v.lo;
    to[CHUNK] = v.hi;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#if OFFSETS
  for (uint i = id; i < ROWS * CHUNK * SPANS; i += ITEMS) {
    const uint unit = i % CHUNK, span = i / CHUNK % SPANS, m = i / (CHUNK * SPANS);
    __local const float4 *at = x.runs + (m * RUNS + span * (SPAN / 4)) * CHUNK + unit;
    float4 sum = at[0];
    UNROLL for (int r = 1; r < SPAN / 4; ++r) sum += at[r * CHUNK];
    x.sums[i] = sum_of_four(sum);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
#endif
}

// DEPTH units from `unit` on of rows n + TEAMS * j. Those behind a row's end are its last one, beside which
// x is 0; rows behind the last one are this.
INLINE void load_step(const Weight w, long n, long last, int unit, int units, Packed a[DEPTH][COLS]) {
  UNROLL for (int d = 0; d < DEPTH; ++d) {
    const int k = (ALL_UNITS ? unit + d : min(unit + d, units - 1)) * UNIT;
    UNROLL for (int j = 0; j < COLS; ++j) {
      LOAD_PACKED(w, min(n + j * TEAMS, last), k, &a[d][j]);
#if SAME_SCALES
      a[d][j].scale[0] = a[0][j].scale[0];
      a[d][j].offset[0] = a[0][j].offset[0];
      a[d][j].zero = a[0][j].zero;
#endif
    }
  }
}

// Adds a unit's products with x, whose unit it is in the chunk.
INLINE void add_unit(float sum[SUMS], const Weight w, Packed a[COLS], const X x, int k, int unit) {
  UNROLL for (int s = 0; s < SPANS; ++s) {
    Partial part[SUMS];
#if OFFSETS && !SHARED_X
    float4 of_x[ROWS];
    UNROLL for (int m = 0; m < ROWS; ++m) of_x[m] = (float4)(0);
#endif
    UNROLL for (int i = 0; i < SUMS; ++i) part[i] = (Partial)(0);
    EACH_STEP for (int i = 0; i < SPAN_STEPS; ++i) {
      const int step = s * SPAN_STEPS + (TURNED ? 0 : i);
      float4 first[COLS], second[COLS];
      UNROLL for (int j = 0; j < COLS; ++j) {
        first[j] = NUMBERS(w, &a[j], FIRST_RUN(step));
        second[j] = NUMBERS(w, &a[j], SECOND_RUN(step));
        turn(&a[j]);
      }
      UNROLL for (int m = 0; m < ROWS; ++m) {
        const float8 v = factors_of(x, m, k, unit, s * SPAN_STEPS + i);
        UNROLL for (int j = 0; j < COLS; ++j)
          part[m * COLS + j] = add4(add4(part[m * COLS + j], first[j], v.lo), second[j], v.hi);
#if OFFSETS && !SHARED_X
        of_x[m] += v.lo + v.hi;
#endif
      }
    }
    UNROLL for (int m = 0; m < ROWS; ++m) {
#if OFFSETS && SHARED_X
      const float x_sum = x.sums[(m * SPANS + s) * CHUNK + unit];
#elif OFFSETS
      const float x_sum = sum_of_four(of_x[m]);
#endif
      UNROLL for (int j = 0; j < COLS; ++j) {
        const int i = m * COLS + j;
        sum[i] = fma(a[j].scale[s], total(part[i]), sum[i]);
#if OFFSETS
        sum[i] = fma(a[j].offset[s], x_sum, sum[i]);
#endif
      }
    }
  }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void decode(__global void *out_base, ulong out_offset, __global const void *x_base, ulong x_offset,
                     __global const void *weight_base, ulong weight_offset, __global const void *scale_base,
                     ulong scale_offset, __global const void *zero_base, ulong zero_offset,
                     __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  __local float4 shared[MOST(X_FLOATS, SHARE * RESULTS) / 4];
#if SHARED_X && OFFSETS
  __local float x_sums[ROWS * SPANS * CHUNK];
#else
  __local float x_sums[1];
#endif
  Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  SHARE_CODES(w)
  const long m0 = (long)get_group_id(1) * ROWS;
  const X x = {AT_CONST(TYPE, x_base, x_offset) + m0 * p.x_row, p.x_row, p.m - m0, p.k, shared, x_sums};
  const uint id = get_local_id(0), team = id / LANES % TEAMS;
  const int place = id / (LANES * TEAMS) * LANES + id % LANES;  // among the items of a row
  const long n0 = (long)get_group_id(0) * (TEAMS * COLS);
  const int units = (int)((p.k + UNIT - 1) / UNIT);
  float sum[SUMS];
  UNROLL for (int i = 0; i < SUMS; ++i) sum[i] = 0;
  Packed a[DEPTH][COLS];
  if (units > 0) load_step(w, n0 + team, p.n - 1, place * DEPTH, units, a);
  for (int chunk = 0; chunk < units; chunk += CHUNK) {
    if (chunk > 0) barrier(CLK_LOCAL_MEM_FENCE);
    share_x(x, chunk);
    const int end = min(chunk + CHUNK, units);
    for (int u = chunk; u < end; u += STEP) {
      const int next = u + STEP;
      UNROLL for (int d = 0; d < DEPTH; ++d) {
        const int unit = u + place * DEPTH + d;
        add_unit(sum, w, a[d], x, unit * UNIT, unit - chunk);
      }
      if (next < units) load_step(w, n0 + team, p.n - 1, next + place * DEPTH, units, a);
    }
  }
  __local float *sums = (__local float *)shared;  // [place][row of x][row of the weight]
  UNROLL for (int first = 0; first < COLS; first += PASS_COLS) {
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int m = 0; m < ROWS; ++m) UNROLL for (int j = 0; j < PASS_COLS; ++j)
      sums[place * RESULTS + (m * PASS_COLS + j) * TEAMS + team] = sum[m * COLS + first + j];
    ROLLED for (uint far = SHARE / 2; far > 0; far /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      for (uint i = id; i < far * RESULTS; i += ITEMS) sums[i] += sums[i + far * RESULTS];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < RESULTS; i += ITEMS) {
      const long m = i / (TEAMS * PASS_COLS), row = n0 + first * TEAMS + i % (TEAMS * PASS_COLS);
      if (m >= x.m || row >= p.n) continue;
      float t = sums[i];
      t = finished(t, w, row, x.all + m * x.row, bias_base, bias_offset, p);
      STORE(TYPE, AT(TYPE, out_base, out_offset), (m0 + m) * p.n + row, t);
    }
  }
}
