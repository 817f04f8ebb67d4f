// Householder's reduction to Hessenberg form (Golub and Van Loan, "Matrix Computations", algorithm 7.4.2) for
// GPUs, by two launches a column, p.column, which p.groups work-groups of a matrix share. work [count, 2, n]:
// the reflector v, then its factor tau and the element beta that it leaves. TYPE, PART, GROUP
#include "eig_params.h"
#include "matrix_elements.h"
#define WIDTH 32  // columns, or work-items of a row
#define HEIGHT (GROUP / WIDTH)

// v of a reflector: 1 at `first`, else numbers in memory times a factor.
typedef struct {
  __global const T *from;
  long step, first;
  T factor;
} Reflector;
INLINE T element_of(const Reflector v, long i) {
  return i == v.first ? number(1) : product(v.factor, v.from[i * v.step]);
}

// Column j of a times I - tau v v^H from the left, with `turned` times its conjugate; HEIGHT work-items share
// it.
INLINE void reflect_column(__global T *a, long n, long j, const Reflector v, R tau, bool turned,
                           __local T *partials) {
  const int id = get_local_id(0), lane = id / WIDTH;
  T sum = number(0);
  for (long i = v.first + lane; i < n && j < n; i += HEIGHT) {
    const T x = element_of(v, i);
    sum += product(turned ? x : conjugate(x), a[i * n + j]);
  }
  partials[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = number(0);
  for (int k = 0; k < HEIGHT; ++k) sum += partials[k * WIDTH + id % WIDTH];
  sum *= tau;
  for (long i = v.first + lane; i < n && j < n; i += HEIGHT) {
    const T x = element_of(v, i);
    a[i * n + j] -= product(turned ? conjugate(x) : x, sum);
  }
}

// Finds the reflector of p.column, which stays as it is, and applies it to the columns right of that.
TEAM __kernel void reflect_left(__global void *a_base, ulong a_offset, __global void *work_base,
                                ulong work_offset, __global const void *number_base, ulong number_offset,
                                const EigParams p) {
  PARTIALS(partials)
  __local T sums[GROUP];
  const long m = get_group_id(0) / p.groups, group = get_group_id(0) - m * p.groups, n = p.n, k = p.column;
  __global T *a = NUMBERS(a_base, a_offset) + m * n * n;
  __global T *v = NUMBERS(work_base, work_offset) + m * 2 * n;
  if (isnan(AT_CONST(REAL, number_base, number_offset)[m * 2])) return;
  const T alpha = a[(k + 1) * n + k];
  R largest = 0, sum = 0;
  FOR_TEAM(i, k + 2, n) largest = larger(largest, largest_part(a[i * n + k]));
  largest = TEAM_LARGEST(largest, partials);
  const bool needed = largest > LEAST;  // what is less counts as 0 beside the largest element
  if (needed) FOR_TEAM(i, k + 2, n) sum += square(a[i * n + k] / largest);
  sum = TEAM_SUM(sum, partials);
  const R size = modulus(alpha), norm = hypot(size, largest * sqrt(sum));
  const T phase = size > 0 ? alpha / size : number(1);
  Reflector own;
  own.from = a + k;
  own.step = n;
  own.first = k + 1;
  own.factor = needed ? quotient(number(1), phase * (size + norm)) : number(0);
  const R tau = needed ? (size + norm) / norm : 0;
  if (group == 0) {
    FOR_TEAM(i, k + 1, n) v[i] = element_of(own, i);
    if (LANE == 0) v[n] = number(tau);
    if (LANE == 0) v[n + 1] = needed ? -norm * phase : alpha;
  }
  reflect_column(a, n, k + 1 + group * WIDTH + LANE % WIDTH, own, tau, false, sums);
}

// Applies it from the right, a team of WIDTH work-items for each row, and to q, which becomes the transpose
// of Q, by the last work-groups; completes the column.
TEAM __kernel void reflect_right(__global void *a_base, ulong a_offset, __global void *q_base, ulong q_offset,
                                 __global const void *work_base, ulong work_offset,
                                 __global const void *number_base, ulong number_offset, const EigParams p) {
  __local T sums[GROUP];
  const long m = get_group_id(0) / p.groups, group = get_group_id(0) - m * p.groups, n = p.n, k = p.column;
  const long row_groups = (n + HEIGHT - 1) / HEIGHT;
  __global T *a = NUMBERS(a_base, a_offset) + m * n * n;
  __global T *q = NUMBERS(q_base, q_offset) + (p.vectors ? m * n * n : 0);
  __global const T *v = NUMBERS_CONST(work_base, work_offset) + m * 2 * n;
  if (isnan(AT_CONST(REAL, number_base, number_offset)[m * 2])) return;
  const R tau = real_part(v[n]);
  const int id = get_local_id(0), lane = id % WIDTH;
  if (group >= row_groups) {
    const long j = (group - row_groups) * WIDTH + lane;
    if (k == 0)
      for (long i = id / WIDTH; i < n && j < n; i += HEIGHT) q[i * n + j] = number(i == j);
    barrier(CLK_GLOBAL_MEM_FENCE);
    Reflector own;
    own.from = v;
    own.step = 1;
    own.first = k + 1;
    own.factor = number(1);
    reflect_column(q, n, j, own, tau, true, sums);
    return;
  }
  const long i = group * HEIGHT + id / WIDTH;
  __global T *row = a + i * n;
  T sum = number(0);
  for (long j = k + 1 + lane; j < n && i < n; j += WIDTH) sum += product(row[j], v[j]);
  sums[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  sum = number(0);
  for (int other = 0; other < WIDTH; ++other) sum += sums[id - lane + other];
  sum *= tau;
  for (long j = k + 1 + lane; j < n && i < n; j += WIDTH) row[j] -= product(sum, conjugate(v[j]));
  if (lane == 0 && i > k && i < n) row[k] = i == k + 1 ? v[n + 1] : number(0);
}
