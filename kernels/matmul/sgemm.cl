// Matrix product for GPUs: a work-group of BM * BN / 128 (or / 64) items computes a tile of BM x BN. Operands
// are staged through local memory in steps of BK with two alternating buffers; an item has TM x TN results.
// Portable OpenCL C. Operands of half precision are converted as they are loaded.
// Defines: TYPE; BM, BN, TM, TN, BK (the tile); A_ALONG_K, B_ALONG_K (1: contiguous along k, 0: along m or
// n); A_WIDTH, B_WIDTH (4, 2, 1), C_WIDTH (4, 1): at whose multiples of elements all rows begin and end; EDGE
// (1: any size; 0: m >= BM, n >= BN, k % BK == 0: edge tiles then overlap their neighbours and write the same
// values twice); HAS_S; GUARDED (1: does nothing unless a word in memory is `wanted`); PIECES (1: p.k is the
// length of a piece of the k_all terms, and the result are the pieces' sums in float, for split_k_sum);
// GROUPED (grouped.h; needs EDGE).
#include "matmul_params.h"
#include "types.h"
#define VEC 4
#include "element_vectors.h"
#include "grouped.h"
#include "register_tile.h"

#if PIECES
#define RESULT f32
#else
#define RESULT TYPE
#endif
#define GROUP_ROWS 8               // rows of tiles computed together: their operands stay in the cache
#define ITEMS ((BM / TM) * (BN / TN))
#define WX (BN / (LX * TN))        // runs of 32 along n
// Line k of a buffer of a tile in local memory. Lines that are stored across are padded; of 16-bit types each
// four begin SKEW further instead, so that the places of a run's items, in BK / 4 lines four apart, are in
// different banks. Floats are slower with that if both operands run along k.
#define IS_HALF CAT(IS_HALF_, TYPE)
#define IS_HALF_f32 0
#define IS_HALF_f16 1
#define IS_HALF_bf16 1
#define SKEW (IS_HALF * 128 / BK)
#define PITCH_A (BM + A_ALONG_K * (1 - IS_HALF) * 4)
#define PITCH_B (BN + B_ALONG_K * (1 - IS_HALF) * 4)
#define A_AT(b, k) (As[b] + (k) * PITCH_A + (k) / 4 * (A_ALONG_K * SKEW))
#define B_AT(b, k) (Bs[b] + (k) * PITCH_B + (k) / 4 * (B_ALONG_K * SKEW))
#define A_SIZE (BK * PITCH_A + (BK / 4 - 1) * (A_ALONG_K * SKEW))
#define B_SIZE (BK * PITCH_B + (BK / 4 - 1) * (B_ALONG_K * SKEW))
#define LA (BM * BK / 4 / ITEMS)   // vectors of four that an item loads
#define LB (BK * BN / 4 / ITEMS)
// Four contiguous elements in units of a width, of which those that begin before `left` exist.
#define LOAD_4(v, W, p, ok, left)                                                                   \
  UNROLL for (int u_ = 0; u_ < 4 / (W); ++u_) {                                                     \
    v[u_] = (RAW(W, TYPE))(0);                                                                      \
    if (!EDGE || ((ok) && u_ * (W) < (left))) v[u_] = *(__global const RAW(W, TYPE) *)((p) + u_ * (W)); \
  }

// Stores four of a row in the four lines from `line` on, which are `size` apart.
#define STORE_ALONG_K(line, size, row, W, vector) \
  {                                               \
    const float4 v_ = UNPACK(W, TYPE, vector);    \
    __local float *to_ = (line) + (row);          \
    to_[0] = v_.x;                                \
    to_[size] = v_.y;                             \
    to_[2 * (size)] = v_.z;                       \
    to_[3 * (size)] = v_.w;                       \
  }

// The position of vector i of item t in a tile of `WIDTH` rows (m or n) x BK: if contiguous along k, a row
// has BK / 4 vectors; else each k has WIDTH / 4.
#define ALONG_K_ROW(t, i) ((t) / (BK / 4) + (i) * (ITEMS / (BK / 4)))
#define ALONG_K_K(t) ((t) % (BK / 4) * 4)
#define ACROSS_ROW(t, WIDTH) ((t) % (WIDTH / 4) * 4)
#define ACROSS_K(t, i, WIDTH) ((t) / (WIDTH / 4) + (i) * (ITEMS / (WIDTH / 4)))

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void sgemm(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                    __global const void *b_base, ulong b_offset, __global const void *s_base, ulong s_offset,
#if GUARDED
                    __global const void *word_base, ulong word_offset, uint wanted,
#endif
#if PIECES
                    long k_all, long batch,
#endif
#if GROUPED
                    __global const void *ends_base, ulong ends_offset, int groups, FAULT_PARAMETERS,
#endif
                    const MatmulParams p) {
  __local float As[2][A_SIZE] __attribute__((aligned(16)));
  __local float Bs[2][B_SIZE] __attribute__((aligned(16)));
#if GUARDED
  if (*(__global const uint *)((__global const char *)word_base + word_offset) != wanted) return;
#endif
  const int t = get_local_id(0);
#if PIECES
  const long piece = get_group_id(1) / batch, z = get_group_id(1) % batch, k_first = piece * p.k;
  const long k_count = min(p.k, k_all - k_first);
#elif !GROUPED
  const long z = get_group_id(1), k_first = 0, k_count = p.k;
#endif
#if GROUPED == PARTS_OF_M
  const long m_tiles = SLOTS(p.m, BM, groups), n_tiles = (p.n + BN - 1) / BN;
#elif GROUPED == PARTS_OF_N
  const long m_tiles = (p.m + BM - 1) / BM, n_tiles = SLOTS(p.n, BN, groups);
#else
  const long m_tiles = (p.m + BM - 1) / BM, n_tiles = (p.n + BN - 1) / BN;
#endif
  const long g = get_group_id(0), span = GROUP_ROWS * n_tiles, first = g / span * GROUP_ROWS;
  const long rows = min(m_tiles - first, (long)GROUP_ROWS);
  long m0 = (first + (g % span) % rows) * BM, n0 = (g % span) / rows * BN;
#if !EDGE
  m0 = min(m0, p.m - BM);
  n0 = min(n0, p.n - BN);
#endif
#if GROUPED
  __global const int *ends = AT_CONST(i32, ends_base, ends_offset);
  if (g == 0 && get_group_id(1) == 0)
    check_ends(ends, groups, GROUPED, p, t, ITEMS, faults, fault_site);
  const Place at = place_of_tile(ends, groups, GROUPED, p, BM, BN, m0 / BM, n0 / BN, get_group_id(1));
  const long z = at.group, k_first = at.k.begin, k_count = at.k.count;
  m0 = at.m0;
  n0 = at.n0;
  const long m_first = at.m.begin, n_first = at.n.begin, m_count = at.m.count, n_count = at.n.count;
#else
  const long m_first = 0, n_first = 0, m_count = p.m, n_count = p.n;
#endif
  const ItemTile item = item_tile(t, WX, TM, TN);
  __global const STYPE(TYPE) *A = AT_CONST(TYPE, a_base, a_offset) + z * p.a_batch + m_first * p.a_row +
                                  k_first * p.a_col;
  __global const STYPE(TYPE) *B = AT_CONST(TYPE, b_base, b_offset) + z * p.b_batch + n_first * p.b_col +
                                  k_first * p.b_row;

  float acc[TM][TN];
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;
  RAW(A_WIDTH, TYPE) ra[LA][4 / A_WIDTH];
  RAW(B_WIDTH, TYPE) rb[LB][4 / B_WIDTH];

#if A_ALONG_K
#define LOAD_A(i, k0)                                                                       \
  LOAD_4(ra[i], A_WIDTH, A + (m0 + ALONG_K_ROW(t, i)) * p.a_row + (k0) + ALONG_K_K(t),      \
         m0 + ALONG_K_ROW(t, i) < m_count, k_count - (k0) - ALONG_K_K(t))
#define STORE_A(i, s) STORE_ALONG_K(A_AT(s, ALONG_K_K(t)), PITCH_A, ALONG_K_ROW(t, i), A_WIDTH, ra[i])
#else
#define LOAD_A(i, k0)                                                                       \
  LOAD_4(ra[i], A_WIDTH, A + ((k0) + ACROSS_K(t, i, BM)) * p.a_col + m0 + ACROSS_ROW(t, BM), \
         (k0) + ACROSS_K(t, i, BM) < k_count, m_count - m0 - ACROSS_ROW(t, BM))
#define STORE_A(i, s)                                                    \
  *(__local float4 *)&A_AT(s, ACROSS_K(t, i, BM))[ACROSS_ROW(t, BM)] = UNPACK(A_WIDTH, TYPE, ra[i]);
#endif
#if B_ALONG_K
#define LOAD_B(i, k0)                                                                       \
  LOAD_4(rb[i], B_WIDTH, B + (n0 + ALONG_K_ROW(t, i)) * p.b_col + (k0) + ALONG_K_K(t),      \
         n0 + ALONG_K_ROW(t, i) < n_count, k_count - (k0) - ALONG_K_K(t))
#define STORE_B(i, s) STORE_ALONG_K(B_AT(s, ALONG_K_K(t)), PITCH_B, ALONG_K_ROW(t, i), B_WIDTH, rb[i])
#else
#define LOAD_B(i, k0)                                                                       \
  LOAD_4(rb[i], B_WIDTH, B + ((k0) + ACROSS_K(t, i, BN)) * p.b_row + n0 + ACROSS_ROW(t, BN), \
         (k0) + ACROSS_K(t, i, BN) < k_count, n_count - n0 - ACROSS_ROW(t, BN))
#define STORE_B(i, s)                                                    \
  *(__local float4 *)&B_AT(s, ACROSS_K(t, i, BN))[ACROSS_ROW(t, BN)] = UNPACK(B_WIDTH, TYPE, rb[i]);
#endif
#define LOAD_STEP(step)                                              \
  {                                                                  \
    UNROLL for (int i = 0; i < LA; ++i) { LOAD_A(i, (step) * BK) }   \
    UNROLL for (int i = 0; i < LB; ++i) { LOAD_B(i, (step) * BK) }   \
  }
#define STORE_STEP(s)                                                \
  {                                                                  \
    UNROLL for (int i = 0; i < LA; ++i) { STORE_A(i, s) }            \
    UNROLL for (int i = 0; i < LB; ++i) { STORE_B(i, s) }            \
  }

  const long steps = (k_count + BK - 1) / BK;
  ADD_STEPS(long, 0L, steps, LOAD_STEP, STORE_STEP, A_AT, B_AT, item, acc)

  const float alpha = as_float((uint)p.alpha);
#if HAS_S
  const float beta = as_float((uint)p.beta);
  __global const STYPE(TYPE) *S = AT_CONST(TYPE, s_base, s_offset) + z * p.s_batch;
#endif
  __global STYPE(RESULT) *C = AT(RESULT, c_base, c_offset) + get_group_id(1) * p.c_batch +
                              m_first * p.c_row + n_first * p.c_col;
  UNROLL for (int i = 0; i < TM; ++i) {
    const long m = m0 + item.row + row_offset(i);
    UNROLL for (int j = 0; j < TN; j += 4) {
      const long n = n0 + item.column + column_offset(j);
      float v[4];
      UNROLL for (int u = 0; u < 4; ++u) {
        v[u] = alpha * acc[i][j + u];
#if HAS_S
        if (!EDGE || (m < m_count && n + u < n_count))
          v[u] = fma(beta, LOAD(TYPE, S, m * p.s_row + (n + u) * p.s_col), v[u]);
#endif
      }
      __global STYPE(RESULT) *to = C + m * p.c_row + n;
#if C_WIDTH == 4
      if (!EDGE || (m < m_count && n < n_count)) STOREV(RESULT, to, 0, v);
#else
      UNROLL for (int u = 0; u < 4; ++u)
        if (!EDGE || (m < m_count && n + u < n_count)) STORE(RESULT, to, u, v[u]);
#endif
    }
  }
}
