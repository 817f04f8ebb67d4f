// Products of int8 with sums of int32 for GPUs: a work-group of 256 computes 64 x 64 results, an item 4 x 4.
// 64 of k at a time go through local memory, as words of four.
// Lines of a and b run along k and begin at multiples of 16 bytes. Define: INT8_DOTS (int8_dots.h).
#include "int8_dots.h"
#include "matmul_params.h"

#define TILE 64
#define ITEMS 256
#define CHUNK 16
#define STEP 64                // of k
#define WORDS (STEP / 4)
#define LINE (TILE + 4)        // words from one k to the next: 16-byte loads, and stores to several banks

// The chunk of a line from `k` on; what does not exist is 0.
INLINE uint4 chunk_of(__global const char *line, int k, int all_k) {
  if (k + CHUNK <= all_k) return *(__global const uint4 *)(line + k);
  uint v[4] = {0, 0, 0, 0};
  UNROLL for (int e = 0; e < CHUNK; ++e)
    if (k + e < all_k) v[e / 4] |= (uint)(uchar)line[k + e] << (8 * (e & 3));
  return (uint4)(v[0], v[1], v[2], v[3]);
}
INLINE void leave_chunk(__local uint *tile, int line, int chunk, uint4 v) {
  __local uint *to = tile + chunk * 4 * LINE + line;
  to[0] = v.x;
  to[LINE] = v.y;
  to[2 * LINE] = v.z;
  to[3 * LINE] = v.w;
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void matmul_int8_dots(__global void *c_base, ulong c_offset, __global const void *a_base,
                               ulong a_offset, __global const void *b_base, ulong b_offset,
                               const MatmulParams p) {
  __local uint left[WORDS * LINE] __attribute__((aligned(16)));
  __local uint right[WORDS * LINE] __attribute__((aligned(16)));
  const int item = get_local_id(0), line = item / 4, chunk = item % 4;
  const uint group = get_group_id(0), n_tiles = ((uint)p.n + TILE - 1) / TILE;
  const int m0 = group / n_tiles * TILE, n0 = group % n_tiles * TILE;
  const int y = item / 16 * 4, x = item % 16 * 4, k = p.k;
  // Lines beyond the last one are that one again; their results are not stored.
  __global const char *a = AT_CONST(i8, a_base, a_offset) + min(m0 + line, (int)p.m - 1) * p.a_row;
  __global const char *b = AT_CONST(i8, b_base, b_offset) + min(n0 + line, (int)p.n - 1) * p.b_col;
  int sums[4][4];
  UNROLL for (int i = 0; i < 4; ++i) UNROLL for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  uint4 next_a = chunk_of(a, chunk * CHUNK, k), next_b = chunk_of(b, chunk * CHUNK, k);
  for (int first = 0; first < k; first += STEP) {
    barrier(CLK_LOCAL_MEM_FENCE);
    leave_chunk(left, line, chunk, next_a);
    leave_chunk(right, line, chunk, next_b);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int at = first + STEP + chunk * CHUNK;
    if (first + STEP < k) {
      next_a = chunk_of(a, at, k);
      next_b = chunk_of(b, at, k);
    }
    UNROLL for (int w = 0; w < WORDS; ++w) {
      const uint4 u = *(__local const uint4 *)(left + w * LINE + y);
      const uint4 v = *(__local const uint4 *)(right + w * LINE + x);
      const uint us[4] = {u.x, u.y, u.z, u.w}, vs[4] = {v.x, v.y, v.z, v.w};
      UNROLL for (int i = 0; i < 4; ++i)
        UNROLL for (int j = 0; j < 4; ++j) sums[i][j] = add_dots(us[i], vs[j], sums[i][j]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    if (m0 + y + i >= p.m) break;
    __global int *c = AT(i32, c_base, c_offset) + (m0 + y + i) * p.c_row;
    for (int j = 0; j < 4; ++j)
      if (n0 + x + j < p.n) c[(n0 + x + j) * p.c_col] = sums[i][j];
  }
}
