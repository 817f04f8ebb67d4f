// Factorisations A = P L D L^T P^T (HERMITIAN: L^H) of symmetric matrices by the diagonal pivoting of Bunch
// and Kaufman ("Some stable methods for calculating inertia and solving symmetric linear systems", 1977),
// and solves with them. The format is LAPACK's: pivots count from 1, both of a block of two are negative,
// and what they interchange is not interchanged in the columns before. TYPE, PART, HERMITIAN, GROUP
#include "ldl_params.h"
#include "matrix_elements.h"
#if HERMITIAN
#define TURNED(x) conjugate(x)
#define DIAGONAL(x) number(real_part(x))
#else
#define TURNED(x) (x)
#define DIAGONAL(x) (x)
#endif
#define ALPHA ((R)0.6403882032022076)  // (1 + sqrt(17)) / 8

typedef struct {
  R size;
  long place;
} Largest;

#if CPU_STYLE
#define TEAM_FIRST(own) (own)
#define PLACES
#else
// The largest number of a team's, and the first place where it is.
#define PLACES __local long places[GROUP];
#define TEAM_FIRST(own) team_first(own, partials, places)
INLINE Largest team_first(Largest own, __local R *partials, __local long *places) {
  partials[LANE] = own.size;
  places[LANE] = own.place;
  SYNC;
  for (int reach = GROUP / 2; reach > 0; reach /= 2) {
    if (LANE < reach) {
      const R size = partials[LANE + reach];
      const long place = places[LANE + reach];
      if (size > partials[LANE] || (size == partials[LANE] && place < places[LANE]))
        partials[LANE] = size, places[LANE] = place;
    }
    SYNC;
  }
  own.size = partials[0];
  own.place = places[0];
  SYNC;
  return own;
}
#endif

// Interchanges rows and columns `first` and `other` of what is left of the matrix, from column k on. The
// columns' parts are independent of each other.
INLINE void interchange(__global T *a, long n, long k, long first, long other) {
  FOR_TEAM(i, first + 1, n) {
    if (i == other) {
      const T held = a[first * n + first];
      a[first * n + first] = a[other * n + other];
      a[other * n + other] = held;
      a[other * n + first] = TURNED(a[other * n + first]);
      if (first == k + 1) {
        const T below = a[first * n + k];
        a[first * n + k] = a[other * n + k];
        a[other * n + k] = below;
      }
    } else {
      __global T *x = a + i * n + first, *y = i < other ? a + other * n + i : a + i * n + other;
      const T held = *x;
      *x = i < other ? TURNED(*y) : *y;
      *y = i < other ? TURNED(held) : held;
    }
  }
}

// Row j of what is below a pivot of one or two rows, divided by the pivot.
INLINE void divide_row(__global const T *a, long n, long k, bool two, long j, T *x0, T *x1) {
  const T d00 = a[k * n + k], c0 = a[j * n + k];
  *x1 = number(0);
  if (!two) {
    *x0 = quotient(c0, d00);
    return;
  }
  const T d10 = a[(k + 1) * n + k], d01 = TURNED(d10), d11 = a[(k + 1) * n + k + 1], c1 = a[j * n + k + 1];
  const T p = quotient(d11, d10), q = quotient(d00, d01);
  const T det = product(p, q) - number(1);
  *x0 = quotient(quotient(product(c0, p) - c1, d01), det);
  *x1 = quotient(quotient(product(c1, q) - c0, d10), det);
}

// Subtracts the columns [k, k + width) times the divided ones, in `work` [2, n], from the lower triangle
// behind them.
INLINE void subtract(__global T *a, long n, long k, bool two, __global const T *work) {
  const long first = k + (two ? 2 : 1), rest = n - first;
#if CPU_STYLE
  for (long i = first; i < n; ++i) {
    const T c0 = a[i * n + k], c1 = two ? a[i * n + k + 1] : number(0);
    for (long j = first; j <= i; ++j) a[i * n + j] -= product(c0, TURNED(work[j]));
    if (two)
      for (long j = first; j <= i; ++j) a[i * n + j] -= product(c1, TURNED(work[n + j]));
    a[i * n + i] = DIAGONAL(a[i * n + i]);
  }
#else
  FOR_TEAM(at, 0, rest * rest) {
    const long i = first + at / rest, j = first + at % rest;
    if (j <= i) {
      T x = a[i * n + j] - product(a[i * n + k], TURNED(work[j]));
      if (two) x -= product(a[i * n + k + 1], TURNED(work[n + j]));
      a[i * n + j] = i == j ? DIAGONAL(x) : x;
    }
  }
#endif
}

// Divides what is below a pivot by it, and subtracts from the rest; a pivot of zero has only zeros below it.
INLINE void eliminate(__global T *a, long n, long k, bool two, __global T *work) {
  const long first = k + (two ? 2 : 1);
  const bool skipped = !two && part_sum(a[k * n + k]) == 0;
  if (!skipped) FOR_TEAM(j, first, n) {
    T x0, x1;
    divide_row(a, n, k, two, j, &x0, &x1);
    work[j] = x0;
    work[n + j] = x1;
  }
  SYNC;
  if (!skipped) subtract(a, n, k, two, work);
  SYNC;
  if (!skipped) FOR_TEAM(j, first, n) {
    a[j * n + k] = work[j];
    if (two) a[j * n + k + 1] = work[n + j];
  }
}

// a = L and D in place, zeros above the diagonal. work [count, 2, n]; pivot [count, n]; info [count]: the
// first pivot, from 1, that is zero or not a number, or 0.
TEAM __kernel void factor(__global void *a_base, ulong a_offset, __global void *work_base, ulong work_offset,
                          __global void *pivot_base, ulong pivot_offset, __global void *info_base,
                          ulong info_offset, const LdlParams p) {
  PARTIALS(partials)
  PLACES
  const long m = get_group_id(0), n = p.n;
  __global T *a = NUMBERS(a_base, a_offset) + m * n * n;
  __global T *work = NUMBERS(work_base, work_offset) + m * 2 * n;
  __global int *pivots = AT(i32, pivot_base, pivot_offset) + m * n;
  int info = 0;
  FOR_TEAM(i, 0, n * n) {
    if (i % n > i / n) a[i] = number(0);
    if (i % n == i / n) a[i] = DIAGONAL(a[i]);
  }
  SYNC;
  for (long k = 0; k < n;) {
    const R here = part_sum(a[k * n + k]);
    Largest column;
    column.size = 0;
    column.place = n;
    FOR_TEAM(i, k + 1, n) {
      const R size = part_sum(a[i * n + k]);
      if (size > column.size) column.size = size, column.place = i;
    }
    column = TEAM_FIRST(column);
    const long most = column.place < n ? column.place : k;
    R row = 0;
    FOR_TEAM(j, k, n) {
      const R size = part_sum(j < most ? a[most * n + j] : a[j * n + most]);
      if (j != most) row = larger(row, size);
    }
    row = TEAM_LARGEST(row, partials);
    const R other = part_sum(a[most * n + most]);
    const bool none = fmax(here, column.size) == 0 || isnan(here);
    if (none && info == 0) info = (int)k + 1;
    const R limit = ALPHA * column.size;
    const bool stays = none || here >= limit || here >= limit * (column.size / row);
    const bool two = !stays && !(other >= ALPHA * row);
    const long pivot = stays ? k : most, first = two ? k + 1 : k;
    SYNC;
    if (pivot != first) interchange(a, n, k, first, pivot);
    SYNC;
    eliminate(a, n, k, two, work);
    if (LANE == 0) {
      pivots[k] = two ? -(int)(pivot + 1) : (int)(pivot + 1);
      if (two) pivots[k + 1] = pivots[k];
    }
    SYNC;
    k = first + 1;
  }
  if (LANE == 0) AT(i32, info_base, info_offset)[m] = info;
}

INLINE bool is_block(__global const int *pivots, long k, long n) { return pivots[k] < 0 && k + 1 < n; }

// Interchanges two rows of a column of b; a pivot outside of the matrix, which no factorisation has, is moved
// into it.
INLINE void swap_rows(__global T *b, long next, long i, int pivot, long n) {
  const long j = clamp((long)abs(pivot) - 1, 0L, n - 1);
  const T held = b[i * next];
  b[i * next] = b[j * next];
  b[j * next] = held;
}

// b [count, n, columns] = A^-1 b. A work-item has a column.
__kernel void solve(__global const void *a_base, ulong a_offset, __global void *b_base, ulong b_offset,
                    __global const void *pivot_base, ulong pivot_offset, const LdlParams p) {
  const long id = get_global_id(0), n = p.n, next = p.columns, m = id / next;
  if (m >= p.count) return;
  __global const T *a = NUMBERS_CONST(a_base, a_offset) + m * n * n;
  __global T *b = NUMBERS(b_base, b_offset) + m * n * next + (id - m * next);
  __global const int *pivots = AT_CONST(i32, pivot_base, pivot_offset) + m * n;
  for (long k = 0; k < n;) {
    const bool two = is_block(pivots, k, n);
    const long first = k + (two ? 2 : 1);
    swap_rows(b, next, first - 1, pivots[k], n);
    const T x0 = b[k * next], x1 = two ? b[(k + 1) * next] : number(0);
    for (long i = first; i < n; ++i) {
      T x = b[i * next] - product(a[i * n + k], x0);
      if (two) x -= product(a[i * n + k + 1], x1);
      b[i * next] = x;
    }
    if (two) {
      const T below = a[(k + 1) * n + k], above = TURNED(below);
      const T d0 = quotient(a[k * n + k], above), d1 = quotient(a[(k + 1) * n + k + 1], below);
      const T b0 = quotient(x0, above), b1 = quotient(x1, below), det = product(d0, d1) - number(1);
      b[k * next] = quotient(product(d1, b0) - b1, det);
      b[(k + 1) * next] = quotient(product(d0, b1) - b0, det);
    } else {
      b[k * next] = quotient(x0, a[k * n + k]);
    }
    k = first;
  }
  for (long k = n - 1; k >= 0; --k) {
    const bool two = pivots[k] < 0 && k > 0;
    T x0 = two ? b[(k - 1) * next] : number(0), x1 = b[k * next];
    for (long i = k + 1; i < n; ++i) {
      x1 -= product(TURNED(a[i * n + k]), b[i * next]);
      if (two) x0 -= product(TURNED(a[i * n + k - 1]), b[i * next]);
    }
    b[k * next] = x1;
    if (two) b[(k - 1) * next] = x0;
    swap_rows(b, next, k, pivots[k], n);
    if (two) --k;
  }
}
