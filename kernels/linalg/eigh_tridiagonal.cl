// Householder's reduction of symmetric and Hermitian matrices to real tridiagonal ones, column by column in
// panels of 32 (Dongarra, Hammarling and Sorensen, "Block reduction of matrices to condensed forms", 1989),
// for GPUs: two launches a column, which many work-groups share. A panel has the reflectors V and the W that
// make its update of the rest of the matrix A - V W^H - W V^H: `vw` holds rows of (V, W) and `wv` of (W, V),
// 2 * PANEL numbers each. p.first: the column; p.steps: its place in the panel. TYPE, PART, GROUP
#include "linalg.h"
#define TEAM 32  // work-items of a row
#define TEAMS (GROUP / TEAM)
#define PAIR (2 * PANEL)
// Beside a matrix whose largest element is 1 or more, a column with a smaller square counts as zero.
#define LEAST_SQUARE (CAT(SMALLEST_, REAL) / CAT(EPSILON_, REAL))
#define GROUPED __attribute__((reqd_work_group_size(GROUP, 1, 1)))

// The sum of what the work-items of the group have; `partials` have room for GROUP + TEAMS.
INLINE R group_sum(R own, __local R *partials) {
  const int id = get_local_id(0);
  partials[id] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id < TEAM) {
    R sum = 0;
    for (int i = 0; i < TEAMS; ++i) sum += partials[i * TEAM + id];
    partials[id] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  R sum = 0;
  for (int i = 0; i < TEAM; ++i) sum += partials[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

// The same for each team.
INLINE T team_sum(T own, __local T *partials) {
  const int id = get_local_id(0), lane = id % TEAM;
  partials[id] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = TEAM / 2; reach > 0; reach /= 2) {
    if (lane < reach) partials[id] += partials[id + reach];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const T sum = partials[id - lane];
  barrier(CLK_LOCAL_MEM_FENCE);
  return sum;
}

// Element `row` of the panel's last W, from u = A v and the products W^H v and V^H v; `share` is the sum over
// the panel's earlier columns.
INLINE T w_of(T u, T v, T share, T tau, R along) {
  return product(tau, u - share) - (along * real_product(tau, tau) / 2) * v;
}

// Completes the W of the column before, then x [count, rows] = the present column, with what the panel's
// columns before it contribute; diagonal [count, rows]: its first element. u, v: of the column before; sums
// [count, pieces, 2 * PANEL]: parts of W^H v and V^H v. Work-groups of a matrix: p.columns.
GROUPED __kernel void column(__global const void *a_base, ulong a_offset, __global void *x_base,
                             ulong x_offset, __global const void *u_base, ulong u_offset,
                             __global const void *v_base, ulong v_offset, __global void *vw_base,
                             ulong vw_offset, __global void *wv_base, ulong wv_offset,
                             __global const void *sum_base, ulong sum_offset, __global const void *tau_base,
                             ulong tau_offset, __global void *diagonal_base, ulong diagonal_offset,
                             int pieces, const LinalgParams p) {
  __local R partials[GROUP];
  __local T team_partials[GROUP], products[PAIR];
  const long m = get_group_id(0) / p.columns, n = p.rows, j = p.first;
  const int id = get_local_id(0), lane = id % TEAM, team = id / TEAM, last = (int)p.steps - 1;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch;
  __global const T *u = NUMBERS_CONST(u_base, u_offset) + m * n, *v = NUMBERS_CONST(v_base, v_offset) + m * n;
  __global T *vw = NUMBERS(vw_base, vw_offset) + m * n * PAIR;
  __global T *wv = NUMBERS(wv_base, wv_offset) + m * n * PAIR;
  __global T *x = NUMBERS(x_base, x_offset) + m * n;
  __global R *diagonal = AT(REAL, diagonal_base, diagonal_offset) + m * n;
  const bool begun = last >= 0;  // a column before this one is in the panel
  const T tau = begun ? NUMBERS_CONST(tau_base, tau_offset)[m * (n - 1) + j - 1] : number(0);
  T sum = number(0);
  if (id % PANEL < last && id < PAIR)
    for (int i = 0; i < pieces; ++i) sum += NUMBERS_CONST(sum_base, sum_offset)[(m * pieces + i) * PAIR + id];
  if (id < PAIR) products[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  R along = 0;
  for (long r = j + id; r < n && begun; r += GROUP) along += real_product(u[r], v[r]);
  if (id < last) along -= 2 * real_product(products[id], products[PANEL + id]);
  along = group_sum(along, partials);
  // Row j, which all work-groups need, by the first team: v is 1 there. The other teams have a row each.
  const long r = j + (get_group_id(0) - m * p.columns) * TEAMS + team;
  const bool used = r < n;
  T left = number(0), right = number(0), j_left = number(0), j_right = number(0);
  if (lane < last) {
    j_left = vw[j * PAIR + lane];
    j_right = vw[j * PAIR + PANEL + lane];
    if (used) left = vw[r * PAIR + lane];
    if (used) right = vw[r * PAIR + PANEL + lane];
  }
  const T p_own = products[lane], q_own = products[PANEL + lane];
  const T j_share = team_sum(product(j_left, p_own) + product(j_right, q_own), team_partials);
  const T share = team_sum(product(left, p_own) + product(right, q_own), team_partials);
  if (begun && lane == last) {
    j_left = number(1);
    j_right = w_of(u[j], number(1), j_share, tau, along);
    if (used) left = v[r];
    if (used) right = w_of(u[r], v[r], share, tau, along);
    if (used) vw[r * PAIR + PANEL + last] = right;
    if (used) wv[r * PAIR + last] = right;
  }
  const T update =
      team_sum(product(left, conjugate(j_right)) + product(right, conjugate(j_left)), team_partials);
  if (used && lane == 0 && last < PANEL - 1) {
    const T now = a[r * p.a_row + j] - update;
    if (r == j)
      diagonal[j] = real_part(now);
    else
      x[r] = now;
  }
}

// The reflector v of the column x, which makes it (beta, 0, ...), as in LAPACK; u = A v; sums: parts of W^H v
// and V^H v, by the last `pieces` of a matrix's p.columns work-groups. v also goes to the panel and to the
// column of a.
GROUPED __kernel void reflect(__global void *a_base, ulong a_offset, __global const void *x_base,
                              ulong x_offset, __global void *u_base, ulong u_offset, __global void *v_base,
                              ulong v_offset, __global void *vw_base, ulong vw_offset, __global void *wv_base,
                              ulong wv_offset, __global void *sum_base, ulong sum_offset,
                              __global void *tau_base, ulong tau_offset, __global void *beside_base,
                              ulong beside_offset, int pieces, const LinalgParams p) {
  __local R partials[GROUP];
  __local T team_partials[GROUP];
  const long m = get_group_id(0) / p.columns, n = p.rows, j = p.first;
  const int group = (int)(get_group_id(0) - m * p.columns), row_groups = (int)p.columns - pieces;
  const int id = get_local_id(0), lane = id % TEAM, team = id / TEAM, step = (int)p.steps;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch;
  __global const T *x = NUMBERS_CONST(x_base, x_offset) + m * n;
  __global T *u = NUMBERS(u_base, u_offset) + m * n, *v = NUMBERS(v_base, v_offset) + m * n;
  __global T *vw = NUMBERS(vw_base, vw_offset) + m * n * PAIR;
  __global T *wv = NUMBERS(wv_base, wv_offset) + m * n * PAIR;
  R square = 0;
  for (long r = j + 2 + id; r < n; r += GROUP) square += real_product(x[r], x[r]);
  square = group_sum(square, partials);
  const T alpha = x[j + 1];
  T beta = alpha, tau = number(0), factor = number(0);
  const bool below = !(square <= LEAST_SQUARE);
  if (below || imaginary_part(alpha) != 0) {
    const R norm = sqrt(real_product(alpha, alpha) + (below ? square : 0));
    beta = number(-copysign(norm, real_part(alpha)));
    tau = (beta - alpha) / real_part(beta);
    factor = below ? quotient(number(1), alpha - beta) : number(0);
    if (norm == 0) tau = factor = number(0);
  }
  if (group >= row_groups) {  // the products with the panel's columns
    const int piece = group - row_groups, c = id % PAIR;
    const long rows = (n - j - 1 + pieces - 1) / pieces, first = j + 1 + piece * rows;
    T sum = number(0);
    if (c % PANEL < step)
      for (long r = first + id / PAIR; r < min(first + rows, n); r += GROUP / PAIR)
        sum += product(conjugate(wv[r * PAIR + c]), r == j + 1 ? number(1) : product(factor, x[r]));
    team_partials[id] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < PAIR) {
      for (int i = 1; i < GROUP / PAIR; ++i) sum += team_partials[i * PAIR + id];
      NUMBERS(sum_base, sum_offset)[(m * pieces + piece) * PAIR + id] = sum;
    }
    return;
  }
  if (group == 0 && id == 0) {
    AT(REAL, beside_base, beside_offset)[m * n + j] = real_part(beta);
    NUMBERS(tau_base, tau_offset)[m * (n - 1) + j] = tau;
  }
  const long r = j + 1 + group * TEAMS + team;
  T s0 = number(0), s1 = number(0), s2 = number(0), s3 = number(0);
  if (r < n) {
    __global const T *row = a + r * p.a_row;
    long c = (j + 2) / TEAM * TEAM + lane;
    if (c < j + 2) c += TEAM;
    for (; c + 3 * TEAM < n; c += 4 * TEAM) {
      s0 += product(row[c], x[c]);
      s1 += product(row[c + TEAM], x[c + TEAM]);
      s2 += product(row[c + 2 * TEAM], x[c + 2 * TEAM]);
      s3 += product(row[c + 3 * TEAM], x[c + 3 * TEAM]);
    }
    for (; c < n; c += TEAM) s0 += product(row[c], x[c]);
  }
  const T sum = team_sum(s0 + s1 + (s2 + s3), team_partials);
  if (r < n && lane == 0) {
    const T own = r == j + 1 ? number(1) : product(factor, x[r]);
    u[r] = a[r * p.a_row + j + 1] + product(factor, sum);
    v[r] = own;
    vw[r * PAIR + step] = own;
    wv[r * PAIR + PANEL + step] = own;
    a[r * p.a_row + j] = own;
  }
}
