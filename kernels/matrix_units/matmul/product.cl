// Matrix product on a vendor's matrix unit: a work-group computes a tile of BM x BN of one matrix of the
// batch, or of one piece of k.
// Defines: those of unit_tile.h, matrix_unit.h and epilogue.h; RESULT, the results' type; ADD_SELF (0, 1);
// PARTIAL (1: k is divided into pieces, whose sums are written for split_k_sum.cl, a matrix for each piece of
// each product).
#include "epilogue.h"
#include "unit_tile.h"

#define GROUP_ROWS 8  // rows of tiles computed together: their operands stay in the cache
#define ENDS (!PARTIAL && KIND != KIND_i8)  // sums of pieces end later, and those of int8 are the results
#if ENDS
#define ENDED(sum, y, x, end) ended(sum, y, x, end)
#else
#define ENDED(sum, y, x, end) (sum)
#endif

typedef struct {
  int m0, n0, z;  // its first row and column; the matrix, or the matrix of a piece
} Tile;
INLINE Tile tile_of(int group, int m, int n) {
  const int m_tiles = (m + BM - 1) / BM, n_tiles = (n + BN - 1) / BN;
  const int tile = group % (m_tiles * n_tiles), span = GROUP_ROWS * n_tiles, top = tile / span * GROUP_ROWS;
  const int rows = min(m_tiles - top, GROUP_ROWS);
  Tile t;
  t.z = group / (m_tiles * n_tiles);
  t.m0 = (top + tile % span % rows) * BM;
  t.n0 = tile % span / rows * BN;
  return t;
}

// sums = the tile's, of buffers `first` .. `end` - 1 of k.
INLINE void sum_along_k(sums_t sums[][FRAGMENTS_N], __local uint *lines, const Lines a, const Lines b, Tile t,
                        const MatmulParams p, int first, int end) {
  const int lane = get_local_id(0) % LANES, subgroup = get_local_id(0) / LANES;
  const int m = subgroup / SUBGROUPS_N, n = subgroup % SUBGROUPS_N;
#define CLEAR(i, j) sums[i][j] = (sums_t)(0);
#define CLEAR_COLUMN(j, x) EACH_M(CLEAR, j)
  EACH_N(CLEAR_COLUMN, )
  const int whole = t.m0 + BM <= p.m && t.n0 + BN <= p.n ? p.k / BK : 0;  // buffers that lack nothing
  uint4 held_a[SHARE_OF_A * UNIT_CHUNKS(A_ALONG_K)], held_b[SHARE_OF_B * UNIT_CHUNKS(B_ALONG_K)];
#define READ_A(i, at) read_unit(held_a, a, A_ALONG_K, BM, t.m0, (at)*BK, (at) < whole, i);
#define READ_B(i, at) read_unit(held_b, b, B_ALONG_K, BN, t.n0, (at)*BK, (at) < whole, i);
#define READ_LINES(at) { EACH_A(READ_A, at) EACH_B(READ_B, at) }
#define WRITE_A(i, x) write_unit(to, held_a, false, A_ALONG_K, BM, i);
#define WRITE_B(i, x) write_unit(to + A_WORDS, held_b, true, B_ALONG_K, BN, i);
#if AHEAD
  if (first < end) READ_LINES(first)
#endif
  for (int buffer = first; buffer < end; ++buffer) {
#if BUFFERS == 1
    __local uint *to = lines;
    barrier(CLK_LOCAL_MEM_FENCE);  // nobody reads the lines before these any more
#else
    __local uint *to = lines + (buffer & 1) * BUFFER_WORDS;
#endif
#if !AHEAD
    READ_LINES(buffer)
#endif
    EACH_A(WRITE_A, )
    EACH_B(WRITE_B, )
    barrier(CLK_LOCAL_MEM_FENCE);
#if AHEAD
    if (buffer + 1 < end) READ_LINES(buffer + 1)
#endif
    multiply_lines(sums, to, lines + TILE_WORDS, m, n, lane);
  }
}

// What is left of the results from a lane's first one on, and where that is.
typedef struct {
  __global STYPE(RESULT) *c;
  long step;  // from row to row
  int rows, columns;
  Epilogue end;
} Results;
// Ends and stores the sums of a fragment that begins `down` and `right` of the lane's first. The others lie
// in equal steps from its first one, so that only constants are multiplied by strides.
INLINE void store_fragment(const sums_t sums, const Results to, int down, int right) {
#define STORE_SUM(e, x)                                                                              \
  if (down + SUM_ROW(0, e) < to.rows && right + SUM_COLUMN(0, e) < to.columns)                       \
    STORE(RESULT, to.c, (down + SUM_ROW(0, e)) * to.step + right + SUM_COLUMN(0, e),                 \
          ENDED(((const sum_t *)&sums)[e], down + SUM_ROW(0, e), right + SUM_COLUMN(0, e), to.end));
  EACH_SUM(STORE_SUM, )
}
INLINE void store_sums(sums_t sums[][FRAGMENTS_N], __global STYPE(RESULT) *c, const Epilogue end, Tile t,
                       const MatmulParams p) {
  const int lane = get_local_id(0) % LANES, subgroup = get_local_id(0) / LANES;
  const int y = t.m0 + subgroup / SUBGROUPS_N * FRAGMENT_M + SUM_ROW(lane, 0);
  const int x = t.n0 + subgroup % SUBGROUPS_N * FRAGMENT_N + SUM_COLUMN(lane, 0);
  Results to;
  to.c = c + y * p.c_row + x;
  to.step = p.c_row;
  to.rows = p.m - y;
  to.columns = p.n - x;
  to.end = epilogue_from(end, y, x);
#define STORE_FRAGMENT(i, j) \
  store_fragment(sums[i][j], to, i * SUBGROUPS_M * FRAGMENT_M, j * SUBGROUPS_N * FRAGMENT_N);
#define STORE_COLUMN(j, x) EACH_M(STORE_FRAGMENT, j)
  EACH_N(STORE_COLUMN, )
}

// Parameters: c, a and b, self; `matrices` of the batch; buffers of k in a piece.
__attribute__((reqd_work_group_size(ITEMS, 1, 1))) UNIT_ATTRIBUTES
__kernel void matmul_units(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                           __global const void *b_base, ulong b_offset, __global const void *s_base,
                           ulong s_offset, int matrices, int piece_buffers, const MatmulParams p) {
  __local uint lines[TILE_WORDS + ITEMS * HELD_WORDS] __attribute__((aligned(16)));
  const Tile t = tile_of(get_group_id(0), p.m, p.n);
  const int matrix = PARTIAL ? t.z % matrices : t.z;
  const int first = PARTIAL ? t.z / matrices * piece_buffers : 0, all = (p.k + BK - 1) / BK;
  Lines a, b;
  a.from = (__global const char *)a_base + a_offset + matrix * p.a_batch * ELEMENT_BYTES;
  a.step = (A_ALONG_K ? p.a_row : p.a_col) * ELEMENT_BYTES;
  a.runs = A_ALONG_K ? p.m : p.k;
  a.elements = A_ALONG_K ? p.k : p.m;
  b.from = (__global const char *)b_base + b_offset + matrix * p.b_batch * ELEMENT_BYTES;
  b.step = (B_ALONG_K ? p.b_col : p.b_row) * ELEMENT_BYTES;
  b.runs = B_ALONG_K ? p.n : p.k;
  b.elements = B_ALONG_K ? p.k : p.n;
  sums_t sums[FRAGMENTS_M][FRAGMENTS_N];
  sum_along_k(sums, lines, a, b, t, p, first, PARTIAL ? min(first + piece_buffers, all) : all);
  const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, t.z, p);
  store_sums(sums, AT(RESULT, c_base, c_offset) + t.z * p.c_batch, end, t, p);
}
