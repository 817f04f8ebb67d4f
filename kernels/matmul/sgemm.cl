// Matrix product for GPUs: a work-group of BM * BN / 128 (or / 64) items computes a tile of BM x BN. Operands
// are staged through local memory in steps of BK with two alternating buffers; an item has TM x TN results.
// Portable OpenCL C. Operands of half precision are converted as they are loaded.
// Defines: A_TYPE, B_TYPE, RESULT; BM, BN, TM, TN, BK (the tile); A_ALONG_K, B_ALONG_K (1: contiguous along
// k, 0: along m or n); A_WIDTH, B_WIDTH (4, 2, 1), C_WIDTH (4, 1): at whose multiples of elements all rows
// begin and end; EDGE (1: any size; 0: m >= BM, n >= BN, k % BK == 0: edge tiles then overlap their
// neighbours and write the same values twice); ADD_SELF (0, 1) and those of epilogue.h; GUARDED (1: does
// nothing unless a word in memory is `wanted`); PIECES (1: p.k is the length of a piece of the k_all terms,
// and the results are the pieces' sums in float, for split_k_sum.cl); GROUPED (grouped.h; needs EDGE).
#include "epilogue.h"
#define VEC 4
#include "element_vectors.h"
#include "grouped.h"
#include "register_tile.h"

#define GROUP_ROWS 8               // rows of tiles computed together: their operands stay in the cache
#define ITEMS ((BM / TM) * (BN / TN))
#define WX (BN / (LX * TN))        // runs of 32 along n
// Line k of a buffer of a tile in local memory. Lines that are stored across are padded; of shorter types
// each four begin SKEW further instead, so that the places of a run's items, in BK / 4 lines four apart, are
// in different banks. Floats are slower with that if both operands run along k.
#define IS_SHORT(A) CAT(IS_SHORT_, A)
#define IS_SHORT_f32 0
#define IS_SHORT_f16 1
#define IS_SHORT_bf16 1
#define IS_SHORT_i8 1
#define PITCH_A (BM + A_ALONG_K * (1 - IS_SHORT(A_TYPE)) * 4)
#define PITCH_B (BN + B_ALONG_K * (1 - IS_SHORT(B_TYPE)) * 4)
#define SKEW_A (A_ALONG_K * IS_SHORT(A_TYPE) * 128 / BK)
#define SKEW_B (B_ALONG_K * IS_SHORT(B_TYPE) * 128 / BK)
#define A_LINE_OF(A, k) ((A) + (k) * PITCH_A + (k) / 4 * SKEW_A)
#define B_LINE_OF(B, k) ((B) + (k) * PITCH_B + (k) / 4 * SKEW_B)
#define A_SIZE (BK * PITCH_A + (BK / 4 - 1) * SKEW_A)
#define B_SIZE (BK * PITCH_B + (BK / 4 - 1) * SKEW_B)
#define LA (BM * BK / 4 / ITEMS)   // vectors of four that an item loads
#define LB (BK * BN / 4 / ITEMS)
// Four contiguous elements in units of a width, of which those that begin before `left` exist.
#define LOAD_4(v, W, T, p, ok, left)                                                              \
  UNROLL for (int u_ = 0; u_ < 4 / (W); ++u_) {                                                   \
    v[u_] = (RAW(W, T))(0);                                                                       \
    if (!EDGE || ((ok) && u_ * (W) < (left))) v[u_] = *(__global const RAW(W, T) *)((p) + u_ * (W)); \
  }

// Stores four of a row in the four lines from `line` on, which are `size` apart.
#define STORE_ALONG_K(line, size, row, vector) \
  {                                            \
    const float4 v_ = vector;                  \
    __local float *to_ = (line) + (row);       \
    to_[0] = v_.x;                             \
    to_[size] = v_.y;                          \
    to_[2 * (size)] = v_.z;                    \
    to_[3 * (size)] = v_.w;                    \
  }

// The position of vector i of item t in a tile of `WIDTH` rows (m or n) x BK: if contiguous along k, a row
// has BK / 4 vectors; else each k has WIDTH / 4.
#define ALONG_K_ROW(t, i) ((t) / (BK / 4) + (i) * (ITEMS / (BK / 4)))
#define ALONG_K_K(t) ((t) % (BK / 4) * 4)
#define ACROSS_ROW(t, WIDTH) ((t) % (WIDTH / 4) * 4)
#define ACROSS_K(t, i, WIDTH) ((t) / (WIDTH / 4) + (i) * (ITEMS / (WIDTH / 4)))

// An operand: rows are those of A, or columns of B, of which the tile's begin at `first`; `count` exist.
typedef struct {
  long first, count, row_step;
  long k_count, k_step;
} Operand;

// A step's numbers on their way, as they are in memory.
typedef struct {
  RAW(A_WIDTH, A_TYPE) a[LA][4 / A_WIDTH];
  RAW(B_WIDTH, B_TYPE) b[LB][4 / B_WIDTH];
} Step;

// Loads the numbers from term k0 on.
INLINE void load_step(__global const STYPE(A_TYPE) *A, const Operand a, __global const STYPE(B_TYPE) *B,
                      const Operand b, long k0, Step *step) {
  const int t = get_local_id(0);
  UNROLL for (int i = 0; i < LA; ++i) {
#if A_ALONG_K
    LOAD_4(step->a[i], A_WIDTH, A_TYPE, A + (a.first + ALONG_K_ROW(t, i)) * a.row_step + k0 + ALONG_K_K(t),
           a.first + ALONG_K_ROW(t, i) < a.count, a.k_count - k0 - ALONG_K_K(t))
#else
    LOAD_4(step->a[i], A_WIDTH, A_TYPE,
           A + (k0 + ACROSS_K(t, i, BM)) * a.k_step + a.first + ACROSS_ROW(t, BM),
           k0 + ACROSS_K(t, i, BM) < a.k_count, a.count - a.first - ACROSS_ROW(t, BM))
#endif
  }
  UNROLL for (int i = 0; i < LB; ++i) {
#if B_ALONG_K
    LOAD_4(step->b[i], B_WIDTH, B_TYPE, B + (b.first + ALONG_K_ROW(t, i)) * b.row_step + k0 + ALONG_K_K(t),
           b.first + ALONG_K_ROW(t, i) < b.count, b.k_count - k0 - ALONG_K_K(t))
#else
    LOAD_4(step->b[i], B_WIDTH, B_TYPE,
           B + (k0 + ACROSS_K(t, i, BN)) * b.k_step + b.first + ACROSS_ROW(t, BN),
           k0 + ACROSS_K(t, i, BN) < b.k_count, b.count - b.first - ACROSS_ROW(t, BN))
#endif
  }
}

// Stores them in a buffer of local memory, A[A_SIZE] and B[B_SIZE].
INLINE void store_step(const Step *step, __local float *A, __local float *B) {
  const int t = get_local_id(0);
  UNROLL for (int i = 0; i < LA; ++i) {
#if A_ALONG_K
    STORE_ALONG_K(A_LINE_OF(A, ALONG_K_K(t)), PITCH_A, ALONG_K_ROW(t, i),
                  UNPACK(A_WIDTH, A_TYPE, step->a[i]))
#else
    *(__local float4 *)&A_LINE_OF(A, ACROSS_K(t, i, BM))[ACROSS_ROW(t, BM)] =
        UNPACK(A_WIDTH, A_TYPE, step->a[i]);
#endif
  }
  UNROLL for (int i = 0; i < LB; ++i) {
#if B_ALONG_K
    STORE_ALONG_K(B_LINE_OF(B, ALONG_K_K(t)), PITCH_B, ALONG_K_ROW(t, i),
                  UNPACK(B_WIDTH, B_TYPE, step->b[i]))
#else
    *(__local float4 *)&B_LINE_OF(B, ACROSS_K(t, i, BN))[ACROSS_ROW(t, BN)] =
        UNPACK(B_WIDTH, B_TYPE, step->b[i]);
#endif
  }
}

// Stores the results that exist, of the tile that begins at (m0, n0) of m_count x n_count. Sums of pieces end
// with a factor of 1, too: stored as they are, they take NVIDIA's compiler 166 registers instead of 125.
INLINE void store_results(float acc[TM][TN], long m0, long n0, long m_count, long n_count, ItemTile at,
                          __global STYPE(RESULT) *C, const Epilogue end, const MatmulParams p) {
  UNROLL for (int i = 0; i < TM; ++i) {
    const long m = m0 + at.row + row_offset(i);
    UNROLL for (int j = 0; j < TN; j += 4) {
      const long n = n0 + at.column + column_offset(j);
      float v[4];
      UNROLL for (int u = 0; u < 4; ++u) {
        v[u] = acc[i][j + u];
        if (!EDGE || (m < m_count && n + u < n_count)) v[u] = ended(v[u], m, n + u, end);
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

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void sgemm(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                    __global const void *b_base, ulong b_offset, __global const void *s_base, ulong s_offset,
                    SCALE_PARAMETERS
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
  __global const STYPE(A_TYPE) *A =
      AT_CONST(A_TYPE, a_base, a_offset) + z * p.a_batch + m_first * p.a_row + k_first * p.a_col;
  __global const STYPE(B_TYPE) *B =
      AT_CONST(B_TYPE, b_base, b_offset) + z * p.b_batch + n_first * p.b_col + k_first * p.b_row;
  const Operand a = {m0, m_count, p.a_row, k_count, p.a_col};
  const Operand b = {n0, n_count, p.b_col, k_count, p.b_row};
  Step step;
  float acc[TM][TN];
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;
  const long steps = (k_count + BK - 1) / BK;
#define LOAD_STEP(n) load_step(A, a, B, b, (n) * BK, &step)
#define STORE_STEP(buffer) store_step(&step, As[buffer], Bs[buffer])
#define A_LINE(buffer, k) A_LINE_OF(As[buffer], k)
#define B_LINE(buffer, k) B_LINE_OF(Bs[buffer], k)
  ADD_STEPS(long, 0L, steps, LOAD_STEP, STORE_STEP, A_LINE, B_LINE, item, acc)
  __global STYPE(RESULT) *C = AT(RESULT, c_base, c_offset) + get_group_id(1) * p.c_batch +
                              m_first * p.c_row + n_first * p.c_col;
  store_results(acc, m0, n0, m_count, n_count, item, C,
                epilogue_of(ADD_SELF, s_base, s_offset, SCALE_ARGUMENTS z, p), p);
}
