// Factors a diagonal block of at most 32 rows, A = U^H U, from its upper triangle, for GPUs: one work-group
// per matrix. TYPE, PART, GROUP
#include "linalg.h"

__attribute__((reqd_work_group_size(GROUP, 1, 1)))
__kernel void cholesky(__global void *a_base, ulong a_offset, __global void *info_base, ulong info_offset,
                       const LinalgParams p) {
  __local T block[PANEL][PANEL + 1];
  const long m = get_group_id(0);
  const int id = get_local_id(0), n = (int)p.rows;
  __global T *a = NUMBERS(a_base, a_offset) + m * p.a_batch;
  __global int *info = AT(i32, info_base, info_offset) + m;
  for (int e = id; e < n * PANEL; e += GROUP)
    block[e / PANEL][e % PANEL] = a[e / PANEL * p.a_row + e % PANEL];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < n; ++k) {
    const R pivot = real_part(block[k][k]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id == 0 && !(pivot > 0) && *info == 0) *info = (int)(p.first + k + 1);
    const R root = sqrt(pivot);
    for (int c = k + id; c < n; c += GROUP) block[k][c] = c == k ? number(root) : block[k][c] / root;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = id; e < n * PANEL; e += GROUP) {
      const int r = e / PANEL, c = e % PANEL;
      if (r > k && c >= r && c < n) block[r][c] -= product(conjugate(block[k][r]), block[k][c]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int e = id; e < n * PANEL; e += GROUP)
    if (e % PANEL < n) a[e / PANEL * p.a_row + e % PANEL] = block[e / PANEL][e % PANEL];
}
