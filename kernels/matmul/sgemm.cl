// Matrix product for GPUs: a work-group of BM * BN / 128 (or / 64) items computes a tile of BM x BN. Operands
// are staged through local memory in steps of BK with two alternating buffers; an item has TM x TN results.
// Portable OpenCL C. Operands of half precision are converted as they are loaded.
// Defines: TYPE; BM, BN, TM, TN (the tile); A_ALONG_K, B_ALONG_K (1: contiguous along k, 0: along m or
// n); EDGE (1: any size and alignment; 0: m >= BM, n >= BN, k % BK == 0, and every row of the operands and
// the result starts at a multiple of four elements; edge tiles then overlap their neighbours and write the
// same values twice); HAS_S; GUARDED (1: does nothing unless a word in memory is `wanted`).
#include "matmul_params.h"
#include "types.h"

#define BK 8
#define LX 8                       // work-items along n in a run of 32
#define LY (32 / LX)
#define GROUP_ROWS 8               // rows of tiles computed together: their operands stay in the cache
#define ITEMS ((BM / TM) * (BN / TN))
#define WX (BN / (LX * TN))        // runs of 32 along n
#define PA (BM + 4)                // padded: transposing stores then have fewer bank conflicts
#define PB (BN + 4 * B_ALONG_K)
#define LA (BM * BK / 4 / ITEMS)   // vectors of four that an item loads
#define LB (BK * BN / 4 / ITEMS)
#define PART(v, i) \
  ((i) % 4 == 0 ? v[(i) / 4].x : (i) % 4 == 1 ? v[(i) / 4].y : (i) % 4 == 2 ? v[(i) / 4].z : v[(i) / 4].w)

INLINE float4 load4_f32(__global const float *p) { return *(__global const float4 *)p; }
INLINE float4 load4_f16(__global const half *p) { return vload_half4(0, p); }
INLINE float4 load4_bf16(__global const ushort *p) { return as_float4(convert_uint4(vload4(0, p)) << 16); }

// Four contiguous elements, of which `left` exist.
INLINE float4 load4(__global const STYPE(TYPE) *p, bool ok, long left) {
#if EDGE
  float4 v = (float4)(0.0f);
  if (ok) {
    if (left > 0) v.x = LOAD(TYPE, p, 0);
    if (left > 1) v.y = LOAD(TYPE, p, 1);
    if (left > 2) v.z = LOAD(TYPE, p, 2);
    if (left > 3) v.w = LOAD(TYPE, p, 3);
  }
  return v;
#else
  return CAT(load4_, TYPE)(p);
#endif
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
                    const MatmulParams p) {
  __local float As[2][BK][PA] __attribute__((aligned(16)));
  __local float Bs[2][BK][PB] __attribute__((aligned(16)));
#if GUARDED
  if (*(__global const uint *)((__global const char *)word_base + word_offset) != wanted) return;
#endif
  const int t = get_local_id(0);
  const long z = get_group_id(1);
  const long m_tiles = (p.m + BM - 1) / BM, n_tiles = (p.n + BN - 1) / BN;
  const long g = get_group_id(0), span = GROUP_ROWS * n_tiles, first = g / span * GROUP_ROWS;
  const long rows = min(m_tiles - first, (long)GROUP_ROWS);
  long m0 = (first + (g % span) % rows) * BM, n0 = (g % span) / rows * BN;
#if !EDGE
  m0 = min(m0, p.m - BM);
  n0 = min(n0, p.n - BN);
#endif
  const int lane = t & 31, run = t >> 5;
  const int lx = lane % LX, ly = lane / LX;
  const int mrow = (run / WX) * (LY * TM) + ly * 4;  // this item's rows: mrow + i * 4 * LY .. + 3
  const int ncol = (run % WX) * (LX * TN) + lx * 4;  // its columns: ncol + j * 4 * LX .. + 3
  __global const STYPE(TYPE) *A = AT_CONST(TYPE, a_base, a_offset) + z * p.a_batch;
  __global const STYPE(TYPE) *B = AT_CONST(TYPE, b_base, b_offset) + z * p.b_batch;

  float acc[TM][TN];
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < TN; ++j) acc[i][j] = 0.0f;
  float4 ra[LA], rb[LB];

#if A_ALONG_K
#define LOAD_A(i, k0)                                                                                       \
  ra[i] = load4(A + (m0 + ALONG_K_ROW(t, i)) * p.a_row + (k0) + ALONG_K_K(t), m0 + ALONG_K_ROW(t, i) < p.m, \
                p.k - (k0) - ALONG_K_K(t));
#define STORE_A(i, s)                                   \
  As[s][ALONG_K_K(t) + 0][ALONG_K_ROW(t, i)] = ra[i].x; \
  As[s][ALONG_K_K(t) + 1][ALONG_K_ROW(t, i)] = ra[i].y; \
  As[s][ALONG_K_K(t) + 2][ALONG_K_ROW(t, i)] = ra[i].z; \
  As[s][ALONG_K_K(t) + 3][ALONG_K_ROW(t, i)] = ra[i].w;
#else
#define LOAD_A(i, k0)                                                               \
  ra[i] = load4(A + ((k0) + ACROSS_K(t, i, BM)) * p.a_col + m0 + ACROSS_ROW(t, BM), \
                (k0) + ACROSS_K(t, i, BM) < p.k, p.m - m0 - ACROSS_ROW(t, BM));
#define STORE_A(i, s) *(__local float4 *)&As[s][ACROSS_K(t, i, BM)][ACROSS_ROW(t, BM)] = ra[i];
#endif
#if B_ALONG_K
#define LOAD_B(i, k0)                                                                                       \
  rb[i] = load4(B + (n0 + ALONG_K_ROW(t, i)) * p.b_col + (k0) + ALONG_K_K(t), n0 + ALONG_K_ROW(t, i) < p.n, \
                p.k - (k0) - ALONG_K_K(t));
#define STORE_B(i, s)                                   \
  Bs[s][ALONG_K_K(t) + 0][ALONG_K_ROW(t, i)] = rb[i].x; \
  Bs[s][ALONG_K_K(t) + 1][ALONG_K_ROW(t, i)] = rb[i].y; \
  Bs[s][ALONG_K_K(t) + 2][ALONG_K_ROW(t, i)] = rb[i].z; \
  Bs[s][ALONG_K_K(t) + 3][ALONG_K_ROW(t, i)] = rb[i].w;
#else
#define LOAD_B(i, k0)                                                               \
  rb[i] = load4(B + ((k0) + ACROSS_K(t, i, BN)) * p.b_row + n0 + ACROSS_ROW(t, BN), \
                (k0) + ACROSS_K(t, i, BN) < p.k, p.n - n0 - ACROSS_ROW(t, BN));
#define STORE_B(i, s) *(__local float4 *)&Bs[s][ACROSS_K(t, i, BN)][ACROSS_ROW(t, BN)] = rb[i];
#endif
#define LOAD_TILES(k0)                                  \
  UNROLL for (int i = 0; i < LA; ++i) { LOAD_A(i, k0) } \
  UNROLL for (int i = 0; i < LB; ++i) { LOAD_B(i, k0) }
#define STORE_TILES(s)                                  \
  UNROLL for (int i = 0; i < LA; ++i) { STORE_A(i, s) } \
  UNROLL for (int i = 0; i < LB; ++i) { STORE_B(i, s) }

  const long steps = (p.k + BK - 1) / BK;
  LOAD_TILES(0)
  STORE_TILES(0)
  barrier(CLK_LOCAL_MEM_FENCE);
  int current = 0;
  for (long step = 0; step < steps; ++step) {
    if (step + 1 < steps) { LOAD_TILES((step + 1) * BK) }
    UNROLL for (int k = 0; k < BK; ++k) {
      float4 a[TM / 4], b[TN / 4];
      UNROLL for (int i = 0; i < TM / 4; ++i)
        a[i] = *(__local const float4 *)&As[current][k][mrow + i * 4 * LY];
      UNROLL for (int j = 0; j < TN / 4; ++j)
        b[j] = *(__local const float4 *)&Bs[current][k][ncol + j * 4 * LX];
      // In zigzag over pairs of rows (a0b0 a1b0 a1b1 a0b1 a0b2 ...), so that every product shares an operand
      // with the one before it: reading three new operands takes NVIDIA's register file one more cycle. This
      // order alone gained 9 %.
      UNROLL for (int i = 0; i < TM; i += 2) UNROLL for (int jj = 0; jj < TN; ++jj) {
        const int j = i & 2 ? TN - 1 - jj : jj, q = i + (jj & 1), r = i + 1 - (jj & 1);
        acc[q][j] = fma(PART(a, q), PART(b, j), acc[q][j]);
        acc[r][j] = fma(PART(a, r), PART(b, j), acc[r][j]);
      }
    }
    if (step + 1 < steps) {
      current ^= 1;
      STORE_TILES(current)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const float alpha = as_float((uint)p.alpha);
#if HAS_S
  const float beta = as_float((uint)p.beta);
  __global const STYPE(TYPE) *S = AT_CONST(TYPE, s_base, s_offset) + z * p.s_batch;
#endif
  __global STYPE(TYPE) *C = AT(TYPE, c_base, c_offset) + z * p.c_batch;
  UNROLL for (int i = 0; i < TM; ++i) {
    const long m = m0 + mrow + (i / 4) * 4 * LY + i % 4;
    UNROLL for (int j = 0; j < TN; j += 4) {
      const long n = n0 + ncol + j * LX;
      float v[4];
      UNROLL for (int u = 0; u < 4; ++u) {
        v[u] = alpha * acc[i][j + u];
#if HAS_S
        if (!EDGE || (m < p.m && n + u < p.n))
          v[u] = fma(beta, LOAD(TYPE, S, m * p.s_row + (n + u) * p.s_col), v[u]);
#endif
      }
      __global STYPE(TYPE) *to = C + m * p.c_row + n;
#if EDGE
      UNROLL for (int u = 0; u < 4; ++u) if (m < p.m && n + u < p.n) STORE(TYPE, to, u, v[u]);
#else
      if (sizeof(STYPE(TYPE)) == 4) *(__global float4 *)to = (float4)(v[0], v[1], v[2], v[3]);
      else UNROLL for (int u = 0; u < 4; ++u) STORE(TYPE, to, u, v[u]);
#endif
    }
  }
}
