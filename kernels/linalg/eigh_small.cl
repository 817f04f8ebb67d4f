// Eigenvalues and eigenvectors of small symmetric and Hermitian matrices by two-sided Jacobi rotations in
// local memory (Jacobi, "Ueber ein leichtes Verfahren", 1846; Golub and Van Loan, "Matrix Computations",
// section 8.5), for GPUs: a work-group per matrix, whose rotations of a round have no row in common. TYPE,
// PART, SIZE (even, at least the rows), GROUP
#include "linalg.h"
#include "svd.h"
#define PAIRS (SIZE / 2)
#define ROTATE_FROM (CAT(EPSILON_, REAL) / 1024)  // of a matrix whose largest element is 1 or more

// A round's rotations: columns p and q become p - s (conj(phase) q + h p) and q + s (phase p - h q).
typedef struct {
  int p, q;
  R sine, half_tangent;
  T phase;
} Turn;

// Pair k of a round of a tournament of an even number of rows.
INLINE Turn turn_of(int rows, int round, int k) {
  const int moving = rows - 1;
  const int x = k == 0 ? moving : (round + k) % moving, y = (round + moving - k) % moving;
  Turn turn;
  turn.p = min(x, y);
  turn.q = max(x, y);
  turn.sine = turn.half_tangent = 0;
  turn.phase = number(1);
  return turn;
}

// Sets the rotation that makes `between`, the element (p, q), zero; false if it is small enough.
INLINE bool set_rotation(Turn *turn, R first, R second, T between) {
  const R size = modulus(between);
  const R near = CAT(EPSILON_, REAL) / 8 * sqrt(fabs(first)) * sqrt(fabs(second));
  if (!(size > near && size > ROTATE_FROM)) return false;
  const R z = (second - first) / (2 * size);
  const R tangent = copysign(1 / (fabs(z) + sqrt(1 + z * z)), z), cosine = rsqrt(1 + tangent * tangent);
  turn->sine = tangent * cosine;
  turn->half_tangent = turn->sine / (1 + cosine);
  turn->phase = between / size;
  return true;
}

// Columns x and y of a turn; rows are turned by the conjugate phase.
INLINE void rotate(T *x, T *y, T phase, R sine, R half_tangent) {
  const T u = *x, v = *y;
  *x = u - sine * (product(conjugate(phase), v) + half_tangent * u);
  *y = v + sine * (product(phase, u) - half_tangent * v);
}

// Eigenvalues [count, rows], ascending, NaN where an element is not finite or rotations do not converge;
// vectors are columns, and left alone unless p.steps is set. One triangle of a is read.
__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void jacobi(__global const void *a_base, ulong a_offset, __global void *value_base,
                     ulong value_offset, __global void *vector_base, ulong vector_offset, int upper,
                     const LinalgParams p) {
  __local T a[SIZE][SIZE + 1], v[SIZE][SIZE + 1];
  __local Turn turns[PAIRS];
  __local R numbers[GROUP];
  __local int places[SIZE];
  __local int rotated;
  const long m = get_group_id(0);
  const int id = get_local_id(0), n = (int)p.rows, even = n + n % 2, pairs = even / 2;
  __global const T *from = NUMBERS_CONST(a_base, a_offset) + m * p.a_batch;
  R largest = 0;
  for (int e = id; e < n * n; e += GROUP) {
    const int r = e / n, c = e - r * n;
    v[r][c] = number(r == c);
    if (upper ? c < r : c > r) continue;
    T x = from[r * p.a_row + c * p.a_col];
    if (r == c) x = number(real_part(x));
    largest = larger(largest, largest_part(x));
    a[r][c] = x;
    a[c][r] = conjugate(x);
  }
  numbers[id] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = GROUP / 2; reach > 0; reach /= 2) {
    if (id < reach) numbers[id] = larger(numbers[id], numbers[id + reach]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const R scale = scale_of(numbers[0]);
  for (int e = id; e < n * n; e += GROUP) a[e / n][e % n] /= scale;
  bool more = !isnan(scale) && n > 1;
  int sweep = 0;
  for (; sweep < SWEEPS && more; ++sweep) {
    if (id == 0) rotated = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int round = 0; round < even - 1; ++round) {
      for (int k = id; k < pairs; k += GROUP) {
        Turn turn = turn_of(even, round, k);
        if (turn.q < n) {
          const R first = real_part(a[turn.p][turn.p]), second = real_part(a[turn.q][turn.q]);
          if (set_rotation(&turn, first, second, a[turn.p][turn.q])) rotated = 1;
        }
        turns[k] = turn;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int e = id; e < pairs * pairs; e += GROUP) {  // the elements that two pairs share
        const Turn own = turns[e / pairs], other = turns[e % pairs];
        const int q = min(own.q, n - 1), other_q = min(other.q, n - 1);  // a row of no matrix does not turn
        if (own.sine == 0 && other.sine == 0) continue;
        T pp = a[own.p][other.p], pq = a[own.p][other_q], qp = a[q][other.p], qq = a[q][other_q];
        rotate(&pp, &pq, other.phase, other.sine, other.half_tangent);
        rotate(&qp, &qq, other.phase, other.sine, other.half_tangent);
        rotate(&pp, &qp, conjugate(own.phase), own.sine, own.half_tangent);
        rotate(&pq, &qq, conjugate(own.phase), own.sine, own.half_tangent);
        if (own.p == other.p) {
          pp = number(real_part(pp));
          qq = number(real_part(qq));
          pq = qp = number(0);
        }
        a[own.p][other.p] = pp;
        if (other.q < n) a[own.p][other_q] = pq;
        if (own.q < n) a[q][other.p] = qp;
        if (own.q < n && other.q < n) a[q][other_q] = qq;
      }
      for (int e = id; e < n * pairs && p.steps; e += GROUP) {
        const Turn turn = turns[e / n];
        const int r = e % n;
        if (turn.sine == 0) continue;
        T x = v[r][turn.p], y = v[r][turn.q];
        rotate(&x, &y, turn.phase, turn.sine, turn.half_tangent);
        v[r][turn.p] = x;
        v[r][turn.q] = y;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    more = rotated;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = id; i < n; i += GROUP) {
    const R own = real_part(a[i][i]);
    int place = 0;
    for (int j = 0; j < n; ++j) {
      const R other = real_part(a[j][j]);
      const bool equal = other == own || (isnan(other) && isnan(own));
      place += equal ? j < i : other < own || isnan(own);
    }
    places[i] = place;
    AT(REAL, value_base, value_offset)[m * n + place] = more || isnan(scale) ? (R)NAN : own * scale;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  __global T *to = NUMBERS(vector_base, vector_offset) + m * p.b_batch;
  for (int e = id; e < n * n && p.steps; e += GROUP) {
    const int r = e / n, c = e - r * n;
    to[r * p.b_row + places[c] * p.b_col] = v[r][c];
  }
}
