// Matrix product on NVIDIA's matrix units by mma.sync: a work-group computes a tile of BM x BN of one matrix
// of the batch, or of one piece of k.
// Defines: those of mma_tile.h, mma.h and mma_results.h; SELF_TYPE, ADD_SELF (0, 1); PARTIAL (1: k is divided
// into pieces, whose sums are written as floats for split_k_sum.cl, a matrix for each piece of each product);
// GUARDED (1: does nothing if a word in memory is `stop`); GROUPED (grouped.h; not PARTIAL).
#include "epilogue.h"
#include "grouped.h"
#include "mma_lines.h"
#include "mma_results.h"

#define GROUP_ROWS 8  // rows of tiles computed together: their operands stay in the cache
typedef struct {
  Chunks a, b;
  int whole;  // buffers without a chunk that ends early or does not exist
} Operands;
#if TF32_PARTS == 2
#define WHOLE_BUFFERS(o) 0  // there are no registers left for copies among products
#else
#define WHOLE_BUFFERS(o) (o).whole
#endif
#if ASYNC
INLINE void copy_operands(__local uchar *tiles, uint to, Operands *o, bool whole) {
  copy_lines(tiles, to, &o->a, A_ALONG_K, BM, whole);
  copy_lines(tiles, to + A_BYTES, &o->b, B_ALONG_K, BN, whole);
}
#else
INLINE void read_operands(Held *held, Operands *o) {
  read_lines(held->a, &o->a, A_ALONG_K, BM);
  read_lines(held->b, &o->b, B_ALONG_K, BN);
}
INLINE void write_operands(__local uchar *tiles, uint to, const Held *held, const Operands *o) {
  write_lines(tiles, to, held->a, &o->a, A_ALONG_K, BM);
  write_lines(tiles, to + A_BYTES, held->b, &o->b, B_ALONG_K, BN);
}
#endif
#include "mma_loop.h"
#include "pair.h"
END_OF_VECTORS(float2)

// Parameters: c, a and b, self; a word that equals `stop` if this product must not be computed; `matrices` of
// the batch; buffers of k in a piece.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void matmul_mma(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                         __global const void *b_base, ulong b_offset, __global const void *s_base,
                         ulong s_offset, __global const void *word_base, ulong word_offset, uint stop,
                         int matrices, int piece_buffers,
#if GROUPED
                         __global const void *ends_base, ulong ends_offset, FAULT_PARAMETERS,
#endif
                         const MatmulParams p) {
  __local uchar tiles[TILE_BYTES] __attribute__((aligned(128)));
#if GUARDED
  if (*(__global const uint *)((__global const char *)word_base + word_offset) == stop) return;
#endif
#if GROUPED == PARTS_OF_M
  const int m_tiles = SLOTS(p.m, BM, matrices), n_tiles = (p.n + BN - 1) / BN;
#elif GROUPED == PARTS_OF_N
  const int m_tiles = (p.m + BM - 1) / BM, n_tiles = SLOTS(p.n, BN, matrices);
#else
  const int m_tiles = (p.m + BM - 1) / BM, n_tiles = (p.n + BN - 1) / BN;
#endif
  const int group = get_group_id(0), z = group / (m_tiles * n_tiles), tile = group % (m_tiles * n_tiles);
  const int span = GROUP_ROWS * n_tiles, top = tile / span * GROUP_ROWS;
  const int rows = min(m_tiles - top, GROUP_ROWS);
  const int tile_m = top + tile % span % rows, tile_n = tile % span / rows;
#if GROUPED
  __global const int *ends = AT_CONST(i32, ends_base, ends_offset);
  if (group == 0) check_ends(ends, matrices, GROUPED, p, get_local_id(0), ITEMS, faults, fault_site);
  const Place at = place_of_tile(ends, matrices, GROUPED, p, BM, BN, tile_m, tile_n, z);
  const int m = at.m.count, n = at.n.count, k = at.k.count, m0 = at.m0, n0 = at.n0, matrix = at.group;
  const long a_first = at.m.begin * p.a_row + at.k.begin * p.a_col;
  const long b_first = at.n.begin * p.b_col + at.k.begin * p.b_row;
  const long c_first = at.m.begin * p.c_row + at.n.begin;
#else
  const int m = p.m, n = p.n, k = p.k, m0 = tile_m * BM, n0 = tile_n * BN;
  const int matrix = PARTIAL ? z % matrices : z;
  const long a_first = 0, b_first = 0, c_first = 0;
#endif
  const int warp = get_local_id(0) >> 5, lane = get_local_id(0) & 31;
  const int row = warp / WARPS_N * WM, column = warp % WARPS_N * WN;
  const int first = PARTIAL ? z / matrices * piece_buffers : 0, buffers = (k + BK - 1) / BK - first;
  const int count = PARTIAL ? min(piece_buffers, buffers) : buffers;

  Operands o;
  o.a = chunks_of((__global const char *)a_base + a_offset +
                        (matrix * p.a_batch + a_first) * ELEMENT_BYTES,
                  A_ALONG_K ? p.a_row : p.a_col, A_ALONG_K, BM, m0, m, first * BK, k);
  o.b = chunks_of((__global const char *)b_base + b_offset +
                        (matrix * p.b_batch + b_first) * ELEMENT_BYTES,
                  B_ALONG_K ? p.b_col : p.b_row, B_ALONG_K, BN, n0, n, first * BK, k);
  o.whole = m0 + BM <= m && n0 + BN <= n ? min(count, k / BK - first) : 0;
  sum4_t sums[FRAGMENTS_N][FRAGMENTS_M];
  sum_along_k(tiles, sums, o, count, row, column);

#define ENDS (!PARTIAL && KIND != KIND_i8)  // sums of pieces end later, and those of int8 are the results
#if ENDS
  const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, z, p);
#endif
#if ADD_SELF
  const bool in_pairs =
      LIE_IN_PAIRS(SELF_TYPE, AT_CONST(SELF_TYPE, s_base, s_offset), p.s_col, n | p.s_row | p.s_batch);
#endif
  __global result_t *c = (__global result_t *)((__global char *)c_base + c_offset) + z * p.c_batch + c_first;
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i)
    UNROLL_ON_DEVICE for (int low = 0; low < 2; ++low) {
      const int y = m0 + row + i * 16 + low * 8 + (lane >> 2);
      sum2_t v[FRAGMENTS_N];
      UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) {
        v[j] = low ? sums[j][i].zw : sums[j][i].xy;
#if ENDS
        v[j] = scaled_float2(v[j], end);
#endif
#if ADD_SELF
        // Without conditions, so that the loads of all columns are under way at once: past the matrix its
        // last rows and columns are read once more.
        const int x = n0 + column + j * 8 + (lane & 3) * 2;
        __global const STYPE(SELF_TYPE) *line = end.self + min(y, m - 1) * p.s_row;
        v[j] = with_self_float2(v[j],
                                in_pairs ? PAIR(SELF_TYPE, line + min(x, n - 2))
                                         : (float2)(LOAD(SELF_TYPE, line, min(x, n - 1) * p.s_col),
                                                    LOAD(SELF_TYPE, line, min(x + 1, n - 1) * p.s_col)),
                                end);
#endif
      }
      store_row(tiles, c + y * p.c_row + n0 + column, 1, y < m ? n - n0 - column : 0, v, FRAGMENTS_N);
    }
}
