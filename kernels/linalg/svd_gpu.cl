// One-sided Jacobi rotations for GPUs: a work-group makes the rows of two blocks of a matrix orthogonal, in
// rounds of pairs that have no row in common; TEAM work-items share a pair. TYPE, PART, GROUP
#include "svd.h"
#define TEAM 16
#define TEAMS (GROUP / TEAM)
// The product of two rows is made a real number, by turning the second row.
#if COMPLEX
#define REAL_SIZE(between) modulus(between)
#define PHASE(between, size) ((size) == 0 ? number(1) : (between) / (size))
#define TURNED(phase, x) product(phase, x)
#else
#define REAL_SIZE(between) (between)
#define PHASE(between, size) 1
#define TURNED(phase, x) (x)
#endif

// The rows of pair `k` in round `turn`: over all rounds, each row of the first block is paired with each of
// the second, and in the first round of blocks each row with every other one.
INLINE Pair pair_of_rows(const LinalgParams p, const Pair blocks, int turn, int k) {
  const int n = (int)p.block_rows, moving = 2 * n - 1;
  int x = k, y = n + (k + turn) % n;
  if (p.round == 0) {
    x = k == 0 ? moving : (turn + k) % moving;
    y = (turn + moving - k) % moving;
  }
  Pair pair;
  pair.first = row_of(p, blocks, min(x, y));
  pair.second = row_of(p, blocks, max(x, y));
  return pair;
}

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void rotate_rows(__global void *a_base, ulong a_offset, __global void *state_base,
                          ulong state_offset, const LinalgParams p) {
  __local R xx[GROUP], yy[GROUP];
  __local T xy[GROUP];
  const long m = get_group_id(0) / (p.blocks / 2);
  const Pair blocks = pair_of_blocks(p, get_group_id(0) - m * (p.blocks / 2));
  const int id = get_local_id(0), lane = id % TEAM, team = id / TEAM, pairs = (int)p.block_rows;
  const int turns = p.round == 0 ? 2 * pairs - 1 : pairs, columns = (int)p.columns;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch;
  __global int *rotated = AT(i32, state_base, state_offset) + m * SWEEPS;
  const R limit = limit_of(columns);
  for (long sweep = p.sweep; sweep < p.sweep + p.sweeps; ++sweep) {
    if (sweep > 0 && !rotated[sweep - 1]) break;
    for (int turn = 0; turn < turns; ++turn) {
      for (int first = 0; first < pairs; first += TEAMS) {
        const Pair rows = pair_of_rows(p, blocks, turn, min(first + team, pairs - 1));
        const bool used = first + team < pairs && rows.first < p.rows && rows.second < p.rows;
        const int end = used ? columns : 0;
        __global T *x = a + rows.first * p.a_row, *y = a + rows.second * p.a_row;
        R a0 = 0, a1 = 0;
        T a2 = number(0);
        for (int c = lane; c < end; c += TEAM) {
          const T u = x[c], v = y[c];
          a0 += real_product(u, u);
          a1 += real_product(v, v);
          a2 += product(u, conjugate(v));
        }
        xx[id] = a0;
        yy[id] = a1;
        xy[id] = a2;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int reach = TEAM / 2; reach > 0; reach /= 2) {
          if (lane < reach) {
            xx[id] += xx[id + reach];
            yy[id] += yy[id + reach];
            xy[id] += xy[id + reach];
          }
          barrier(CLK_LOCAL_MEM_FENCE);
        }
        const int own = team * TEAM;
        const T between = xy[own];
        const R size = REAL_SIZE(between);
        const T phase = PHASE(between, size);
        const Rotation r = rotation(xx[own], yy[own], size, limit);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (r.needed) {
          for (int c = lane; c < end; c += TEAM) {
            const T u = x[c], v = TURNED(phase, y[c]);
            x[c] = u - r.sine * (v + r.half_tangent * u);
            y[c] = v + r.sine * (u - r.half_tangent * v);
          }
          if (lane == 0) rotated[sweep] = 1;
        }
      }
      barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
    }
  }
}
