// LU factorisation of a panel with partial pivoting, for GPUs: a work-group holds the panel in registers, a
// work-item ROWS rows of WIDTH columns, so that it has at most GROUP x ROWS rows. Rows stay where they are
// until the end; `place` is where a row is by the interchanges. After each column a row is turned by one
// place, so that the column's element is always the first. Pivots count from 1 in the whole matrix.
// TYPE, PART, PIVOT, GROUP, ROWS, WIDTH
#include "linalg.h"
#define FAN 8
#define FEW 16
// Candidates that are left when one work-item alone compares them.
#define LAST (GROUP <= FEW ? GROUP : GROUP <= FAN * FEW ? GROUP / FAN : GROUP / FAN / FAN)
#define NO_PLACE INT_MAX

// WIDTH numbers of a row in memory, to private ones and back: real ones by vectors, as a work-item's
// neighbours read other rows.
#if COMPLEX
#define COPY_ROW(to, from) UNROLL for (int c_ = 0; c_ < WIDTH; ++c_) (to)[c_] = (from)[c_];
#define TAKE_ROW(space, from, to) COPY_ROW(to, from)
#define GIVE_ROW(space, from, to) COPY_ROW(to, from)
#else
#define vec4_f32 float4
#define vec4_f64 double4
typedef CAT(vec4_, TYPE) vec4;
#define TAKE_ROW(space, from, to)                                \
  UNROLL for (int c_ = 0; c_ < WIDTH; c_ += 4) {                 \
    const vec4 v_ = *(space const vec4 *)((from) + c_);          \
    (to)[c_] = v_.x, (to)[c_ + 1] = v_.y, (to)[c_ + 2] = v_.z, (to)[c_ + 3] = v_.w; \
  }
#define GIVE_ROW(space, from, to)              \
  UNROLL for (int c_ = 0; c_ < WIDTH; c_ += 4) \
    *(space vec4 *)((to) + c_) = (vec4)((from)[c_], (from)[c_ + 1], (from)[c_ + 2], (from)[c_ + 3]);
#endif

typedef struct {
  R size;
  int place;
} Candidate;

// Of `count` candidates, a power of two, `step` apart in local memory, the one of the largest size, of equal
// ones the first place; by a tournament, whose rounds are short.
#define BEST_OF(count, sizes, places, step, best)                                           \
  {                                                                                         \
    Candidate c_[count];                                                                    \
    UNROLL for (int k = 0; k < (count); ++k) {                                              \
      c_[k].size = (sizes)[k * (step)];                                                     \
      c_[k].place = (places)[k * (step)];                                                   \
    }                                                                                       \
    UNROLL for (int round_ = 1; round_ < 5; ++round_) /* of constant length, as `c_` is in registers */ \
      UNROLL for (int k = 0; k < (count) / 2; ++k)                                          \
        if (k < (count) >> round_) c_[k] = better(c_[k], c_[k + ((count) >> round_)]);      \
    best = c_[0];                                                                           \
  }
INLINE Candidate better(Candidate x, Candidate y) {
  const bool second = y.size > x.size || (y.size == x.size && y.place < x.place);
  Candidate best;
  best.size = second ? y.size : x.size;
  best.place = second ? y.place : x.place;
  return best;
}

// The best of the work-items' candidates; every work-item of the group calls it, and gets its place.
INLINE int best_place(Candidate own, int id, __local R *sizes, __local int *places) {
  sizes[id] = own.size;
  places[id] = own.place;
  UNROLL for (int reach = GROUP; reach > LAST; reach /= FAN) {
    const int next = reach / FAN;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id < next) {
      BEST_OF(FAN, sizes + id, places + id, next, own)
      sizes[id] = own.size;
      places[id] = own.place;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id == 0) {
    BEST_OF(LAST, sizes, places, 1, own)
    places[0] = own.place;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return places[0];
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void lu(__global void *a_base, ulong a_offset, __global void *pivot_base, ulong pivot_offset,
                 __global void *info_base, ulong info_offset, const LinalgParams p) {
  __local R sizes[GROUP];
  __local int places[GROUP];
  __local T pivot_row[WIDTH] __attribute__((aligned(4 * sizeof(T))));
  const long m = get_group_id(0);
  const int id = get_local_id(0), rows = (int)p.rows;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch;
  __global int *pivots = AT(i32, pivot_base, pivot_offset) + m * p.vector_batch + p.first;
  __global int *info = AT(i32, info_base, info_offset) + m;
  T x[ROWS][WIDTH];
  int place[ROWS];
  UNROLL for (int r = 0; r < ROWS; ++r) {
    place[r] = id + r * GROUP;
    UNROLL for (int c = 0; c < WIDTH; ++c) x[r][c] = number(0);
    if (place[r] < rows) TAKE_ROW(__global, a + place[r] * p.a_row, x[r])
  }
  ROLLED for (int i = 0; i < WIDTH; ++i) {
    const bool eliminates = i < (int)p.steps;
    Candidate own;
    own.size = -2;  // without a row; NaN comes after any number
    own.place = NO_PLACE;
    UNROLL for (int r = 0; r < ROWS; ++r) {
      if (place[r] < i || id + r * GROUP >= rows) continue;
      Candidate row;
      row.place = place[r];
#if PIVOT
      const R sum = part_sum(x[r][0]);
      row.size = sum >= 0 ? sum : -1;
#else
      row.size = place[r] == i;
#endif
      own = better(own, row);
    }
    // Where all are NaN, no row is found by what NVIDIA's compiler (580) makes of the comparisons.
    const int found = best_place(own, id, sizes, places), best = found < rows ? found : i;
    UNROLL for (int r = 0; r < ROWS; ++r)
      if (eliminates && place[r] == best && id + r * GROUP < rows) GIVE_ROW(__local, x[r], pivot_row)
    barrier(CLK_LOCAL_MEM_FENCE);
    T row[WIDTH];
    TAKE_ROW(__local, pivot_row, row)
    const T pivot = eliminates ? row[0] : number(0);
    if (id == 0 && eliminates) {
      pivots[i] = (int)(p.first + best + 1);
      if (is_zero(pivot) && *info == 0) *info = (int)(p.first + i + 1);
    }
    UNROLL for (int r = 0; r < ROWS; ++r) {
      bool below = eliminates && place[r] >= i && id + r * GROUP < rows;
      if (below && place[r] == best) {
        place[r] = i;
        below = false;
      } else if (below && place[r] == i) {
        place[r] = best;
      }
      const bool changes = below && !is_zero(pivot);
      const T first = changes ? quotient(x[r][0], pivot) : x[r][0];
      if (changes)
        UNROLL for (int c = 0; c < WIDTH - 1; ++c)
          x[r][c] = c + 1 < WIDTH - i ? x[r][c + 1] - product(first, row[c + 1]) : x[r][c + 1];
      else
        UNROLL for (int c = 0; c < WIDTH - 1; ++c) x[r][c] = x[r][c + 1];
      x[r][WIDTH - 1] = first;
    }
  }
  UNROLL for (int r = 0; r < ROWS; ++r)
    if (id + r * GROUP < rows) GIVE_ROW(__global, x[r], a + place[r] * p.a_row)
}
