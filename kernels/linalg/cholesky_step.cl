// A step of a Cholesky factorisation A = U^H U for GPUs: a panel of 32 rows, from row p.first on, and its
// contribution to the rows below, up to p.steps. A work-group takes a tile of 32 x 32; to make the two blocks
// of the panel that it needs, it eliminates in the diagonal block beside them, instead of waiting for others.
// a: what is left of the matrix (upper triangle); u: the panel of U, from the diagonal on. TYPE, PART, GROUP
// (128)
#include "linalg.h"
#include "steps.h"
#define ROWS_EACH (PANEL * PANEL / GROUP)

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void factor(__global void *a_base, ulong a_offset, __global void *u_base, ulong u_offset,
                   __global void *info_base, ulong info_offset, const LinalgParams p) {
  __local T rows[2][PANEL], left[PANEL][PANEL + 1], right[PANEL][PANEL + 1];
  const long n = p.columns, j = p.first;
  const long tiles = (n - j + PANEL - 1) / PANEL, bands = (p.steps - j + PANEL - 1) / PANEL;
  const long m = get_group_id(0) / (tiles * bands), tile = get_group_id(0) - m * tiles * bands;
  const long r0 = j + tile / tiles * PANEL, c0 = j + tile % tiles * PANEL;
  if (c0 < r0) return;
  const int id = get_local_id(0), lane = id % PANEL, own = id / PANEL;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch;
  __global T *u = NUMBERS(u_base, u_offset) + m * p.b_batch;
  // Columns of the diagonal block, and of the blocks above the tile's rows and its columns.
  const long column = (own == 0 ? j : own == 1 ? r0 : c0) + lane;
  T x[PANEL];
  UNROLL for (int r = 0; r < PANEL; ++r) {
    const long row = j + r;
    const bool used = row < n && column < n && row <= column;
    x[r] = used ? a[row * p.a_row + column] : number(row == column);
  }
  int failed = 0;  // the first pivot that fails, from 1
#if TURNS  // x[0] is row k, and after all steps row 0 again
#define ROW 0
#define EACH_STEP ROLLED
#else
#define ROW k
#define EACH_STEP UNROLL
#endif
  EACH_STEP for (int k = 0; k < PANEL; ++k) {
    if (own == 0) rows[k % 2][lane] = x[ROW];
    barrier(CLK_LOCAL_MEM_FENCE);
    const R pivot = real_part(rows[k % 2][k]);
    if (!(pivot > 0) && failed == 0) failed = k + 1;
    const R root = sqrt(pivot);  // NaN where the pivot fails, and so is everything after it
    const T factor = x[ROW] / (root * root);
    const T done = own == 0 && lane == k ? number(root) : x[ROW] / root;
#if TURNS
    UNROLL for (int r = 0; r < PANEL - 1; ++r)
      x[r] = k + 1 + r < PANEL ? x[r + 1] - product(conjugate(rows[k % 2][(k + 1 + r) % PANEL]), factor)
                               : x[r + 1];
    x[PANEL - 1] = done;
#else
    x[k] = done;
    UNROLL for (int r = k + 1; r < PANEL; ++r) x[r] -= product(conjugate(rows[k % 2][r]), factor);
#endif
  }
  const bool top = r0 == j;
  if (top && c0 == j) {
    __global int *info = AT(i32, info_base, info_offset) + m;
    if (id == 0 && failed > 0 && j + failed <= n && *info == 0) *info = (int)(j + failed);
    if (own == 0)
      UNROLL for (int r = 0; r < PANEL; ++r)
        if (r <= lane && column < n) u[(j + r) * p.b_row + column] = x[r];
    return;
  }
  if (own == 1) UNROLL for (int r = 0; r < PANEL; ++r) left[r][lane] = x[r];
  if (own == 2) UNROLL for (int r = 0; r < PANEL; ++r) {
      right[r][lane] = x[r];
      if (top && j + r < n && column < n) u[(j + r) * p.b_row + column] = x[r];
    }
  if (top) return;
  barrier(CLK_LOCAL_MEM_FENCE);
  T sums[ROWS_EACH];
  UNROLL for (int i = 0; i < ROWS_EACH; ++i) sums[i] = number(0);
  SOME_STEPS for (int k = 0; k < PANEL; ++k) {
    const T y = right[k][lane];
    UNROLL for (int i = 0; i < ROWS_EACH; ++i) sums[i] += product(conjugate(left[k][own * ROWS_EACH + i]), y);
  }
  UNROLL for (int i = 0; i < ROWS_EACH; ++i) {
    const long r = r0 + own * ROWS_EACH + i, c = c0 + lane;
    if (r < n && c < n) a[r * p.a_row + c] -= sums[i];
  }
}
