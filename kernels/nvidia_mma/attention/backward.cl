// Gradients of attention on matrix units by mma.sync: weights are recomputed from the rows' log-sum-exp, and
// no matrix of scores is in memory. A work-group keeps BM rows and goes through the rows of the other side,
// BN at once: PASS 0 keeps keys (and values) and goes through queries (and the result's gradients), for the
// gradients of keys and values; PASS 1 keeps queries and goes through keys, for the gradient of queries. Each
// pass computes scores and the weights' gradients in the order of its rows, so that they are left operands as
// they are, and every sum has one order. After Dao, arXiv 2307.08691.
// Defines: those of attention_mma.h and mma.h; PASS; STAGES (2: the next rows are copied meanwhile).
#define STREAMED_BYTES (2 * BN * ROW_BYTES + BN * 8)  // two operands, and statistics of queries
#define KEPT_BYTES (2 * BM * ROW_BYTES)
#define RING_BYTES (KEPT_BYTES + STAGES * STREAMED_BYTES)
#include "attention_mma_backward_params.h"
#include "attention_mma.h"

#define IS_KEYS (PASS == 0)  // rows are keys, columns queries
#if IS_KEYS
#define KEPT_AT ALONG_KEYS
#else
#define KEPT_AT ACROSS_KEYS
#endif

// What a work-group computes: of a head of the kept operands, rows from `first` on, by `count` blocks of the
// streamed ones. Of queries these are blocks `begin` .. begin + span - 1 of each head that shares the keys.
typedef struct {
  int batch, head, first;
  int rows, streamed_rows;  // that the operands have
  int begin, span, count;
} Share;

INLINE Share share_of(const AttentionMmaBackwardParams p) {
  const int queries = p.scores.queries, keys = p.scores.keys, groups = p.groups, heads = p.heads;
  Share a;
  a.rows = IS_KEYS ? keys : queries;
  a.streamed_rows = IS_KEYS ? queries : keys;
  const int kept_heads = IS_KEYS ? heads / groups : heads;
  const int row_tiles = (a.rows + BM - 1) / BM, z = get_group_id(0) / row_tiles;
  const int tile = get_group_id(0) % row_tiles;
  a.first = (PASS * CAUSAL ? row_tiles - 1 - tile : tile) * BM;  // the longest first
  a.batch = z / kept_heads;
  a.head = z % kept_heads;
  const int all_blocks = (a.streamed_rows + BN - 1) / BN;
  a.begin = IS_KEYS * CAUSAL ? min(a.first / BN, all_blocks) : 0;
  const int end = PASS * CAUSAL ? min(all_blocks, (a.first + BM + BN - 1) / BN) : all_blocks;
  a.span = end - a.begin;
  a.count = IS_KEYS ? a.span * groups : a.span;
  return a;
}

// Of streamed block n: its head, among those of its operands, and its first row.
INLINE int head_of_block(const Share a, int n, int groups) {
  return IS_KEYS ? a.head * groups + n / a.span : a.head / groups;
}
INLINE int first_of_block(const Share a, int n) { return (a.begin + n % a.span) * BN; }

// The streamed operands, and of queries log-sum-exp and delta in pairs.
typedef struct {
  __global const void *base[2];
  ulong offset[2];
  __global const float2 *statistics;
} Streamed;

// Copies block n: its rows of two operands and, of queries, their statistics.
INLINE void bring_block(__local uchar *tiles, uint to, const Streamed o, const Share a, int n,
                        const AttentionMmaBackwardParams p) {
  const int head = head_of_block(a, n, p.groups), first = first_of_block(a, n);
  const Rows rows0 =
      rows_of(o.base[0], o.offset[0], p.streamed[0], a.batch, head, a.streamed_rows, p.depth);
  const Rows rows1 =
      rows_of(o.base[1], o.offset[1], p.streamed[1], a.batch, head, a.streamed_rows, p.width);
  bring_rows(tiles, to, rows0, first, BN);
  bring_rows(tiles, to + BN * ROW_BYTES, rows1, first, BN);
#if IS_KEYS
  if (get_local_id(0) < BN / 2) {
    const uint at = get_local_id(0) * CHUNK;
    __global const float2 *statistics = o.statistics + ((long)a.batch * p.heads + head) * p.padded;
    __global const char *from = (__global const char *)(statistics + first) + at;
#if ASYNC
    copy_whole_chunk(tiles, to + 2 * BN * ROW_BYTES + at, from);
#else
    store_chunk(tiles, to + 2 * BN * ROW_BYTES + at, load_chunk(from, CHUNK));
#endif
  }
#endif
  COMMIT_COPIES
}

// Turns scores s into weights (their dropout is left to the caller), by the log-sum-exp of `lse`, four
// numbers for the elements of fragment (j, i). `row` and `column` are the lane's first ones.
INLINE float4 weights_of(float4 s, float4 lse, float scale, bool check, int row, int column, int keys,
                         int queries, __global const void *mask_base, ulong mask_offset,
                         const AttentionParams p) {
  float x[4] = {s.x, s.y, s.z, s.w};
  const float less[4] = {lse.x, lse.y, lse.z, lse.w};
#if MASK
  __global const STYPE(M) *mask = AT_CONST(M, mask_base, mask_offset);
#endif
  UNROLL_ON_DEVICE for (int e = 0; e < 4; ++e) {
    if (check) {
      const int r = row + (e >> 1) * 8, c = column + (e & 1);
      const int key = IS_KEYS ? r : c, query = IS_KEYS ? c : r;
      if ((key < keys) & (query < queries) & (!CAUSAL | (key <= query)))
        x[e] = MASKED_AT(x[e], scale, mask, query * p.mask_row + key * p.mask_column);
      else
        x[e] = -INFINITY;
    }
    x[e] = fast_exp2(LOG_WEIGHT(x[e], UNIT(scale), less[e]));
  }
  return (float4)(x[0], x[1], x[2], x[3]);
}

#if DROPOUT
// Draws which of a block's weights are kept; the block begins at row `block_first`, the warp's rows at
// `warp_first`, the lane's at `row`.
INLINE void draw_kept(__local uchar *tiles, uint kept_ones[][FRAGMENTS_M], long matrix, int block_first,
                      int warp_first, int row, const AttentionParams p) {
  const int lane = get_local_id(0) & 31;
  FOR_FOURS {
#if IS_KEYS
    const int query = block_first + j * 8 + (lane & 3) * 2;
    kept_ones[j / 4][i] =
        kept_along_keys(tiles, p, first_along_keys(p, matrix, query, warp_first + i * 16));
#else
    kept_ones[j / 4][i] = kept_across_keys(
        tiles, p, first_across_keys(p, matrix, row + i * 16) + block_first / 8 + j);
#endif
  }
}
#endif

// Log-sum-exp and delta for the elements of fragments.
typedef struct {
  float4 lse, delta;
} Statistics;

#if IS_KEYS
// Those of the queries of fragments j, which are at `at` in local memory.
INLINE Statistics statistics_of(__local uchar *tiles, uint at, int j) {
  const int lane = get_local_id(0) & 31;
  at += (j * 8 + (lane & 3) * 2) * 8;
  const float lse_0 = as_float(load_word(tiles, at)), lse_1 = as_float(load_word(tiles, at + 8));
  const float delta_0 = as_float(load_word(tiles, at + 4)), delta_1 = as_float(load_word(tiles, at + 12));
  Statistics s = {(float4)(lse_0, lse_1, lse_0, lse_1), (float4)(delta_0, delta_1, delta_0, delta_1)};
  return s;
}
#else
// Those of the lane's queries in fragments i.
INLINE void load_statistics(Statistics s[FRAGMENTS_M], __global const float2 *from) {
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) {
    const float2 low = from[i * 16], high = from[i * 16 + 8];
    s[i].lse = (float4)(low.x, low.x, high.x, high.x);
    s[i].delta = (float4)(low.y, low.y, high.y, high.y);
  }
}
#endif

// Turns scores s into weights, and the gradients of weights d into gradients of scores (before scaling), of
// block n. The warp's rows begin at `warp_row` of the work-group's, `row` is the lane's first one.
INLINE void differentiate(__local uchar *tiles, float4 s[][FRAGMENTS_M], float4 d[][FRAGMENTS_M],
                          const Statistics *own, uint at_statistics, int warp_row, int row, const Share a,
                          int n, __global const void *mask_base, ulong mask_offset,
                          const AttentionMmaBackwardParams p) {
  const int lane = get_local_id(0) & 31, warp_first = a.first + warp_row;
  const int queries = p.scores.queries, keys = p.scores.keys;
  const float scale = as_float((uint)p.scale);
  const int block_first = first_of_block(a, n), head = IS_KEYS ? head_of_block(a, n, p.groups) : a.head;
  bool check = MASK != 0;  // whether some weights may be 0
  if (CAUSAL) check |= IS_KEYS ? warp_first + WARP_ROWS > block_first : block_first + BN > warp_first;
  if (!IS_KEYS) check |= block_first + BN > keys;
#if MASK
  mask_offset +=
      (a.batch * p.scores.mask_strides[0] + head * p.scores.mask_strides[1]) * sizeof(STYPE(M));
#endif
#if DROPOUT
  uint kept_ones[(FRAGMENTS_N + 3) / 4][FRAGMENTS_M];
  draw_kept(tiles, kept_ones, (long)a.batch * p.heads + head, block_first, warp_first, row, p.scores);
#endif
  FOR_FRAGMENTS {
    const int column = block_first + j * 8 + (lane & 3) * 2;
#if IS_KEYS
    const Statistics of = statistics_of(tiles, at_statistics, j);
#else
    const Statistics of = own[i];
#endif
    const float4 w = weights_of(s[j][i], of.lse, scale, check, row + i * 16, column, keys, queries,
                                mask_base, mask_offset, p.scores);
    float4 gradient = d[j][i];
    s[j][i] = w;
#if DROPOUT
    s[j][i] = KEEP(w, kept_ones[j / 4][i], j % 4, KEPT_AT);
    gradient = KEEP(gradient, kept_ones[j / 4][i], j % 4, KEPT_AT);
#endif
    d[j][i] = w * (gradient - of.delta);
  }
}

INLINE void clear(float4 sums[][FRAGMENTS_M]) {
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i)
    UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_D; ++j) sums[j][i] = (float4)(0.0f);
}

// Stores a kept operand's gradient, times `factor`.
INLINE void store_gradient(__local uchar *tiles, float4 sums[][FRAGMENTS_M], float factor,
                           __global void *base, ulong offset, const FlashTensor t, int depth, const Share a) {
  const int row = a.first + (get_local_id(0) >> 5) * WARP_ROWS + ((get_local_id(0) & 31) >> 2);
  float4 factors[FRAGMENTS_M];
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) factors[i] = (float4)(factor);
  store_results(tiles, sums, factors, head_of(base, offset, t, a.batch, a.head), t.row, row, a.rows, depth);
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_mma_backward(__global void *out0_base, ulong out0_offset, __global void *out1_base,
                                     ulong out1_offset, __global const void *kept0_base, ulong kept0_offset,
                                     __global const void *kept1_base, ulong kept1_offset,
                                     __global const void *streamed0_base, ulong streamed0_offset,
                                     __global const void *streamed1_base, ulong streamed1_offset,
                                     __global const void *statistics_base, ulong statistics_offset,
                                     __global const void *mask_base, ulong mask_offset,
                                     const AttentionMmaBackwardParams p) {
  __local uchar tiles[TILE_BYTES] __attribute__((aligned(128)));
  const Share a = share_of(p);
  const int lane = get_local_id(0) & 31, warp_row = (get_local_id(0) >> 5) * WARP_ROWS;
  const int row = a.first + warp_row + (lane >> 2);  // the lane's first one
  const uint at_kept = PLACE(tiles), ring = at_kept + KEPT_BYTES;
  Streamed streamed;
  streamed.base[0] = streamed0_base, streamed.offset[0] = streamed0_offset;
  streamed.base[1] = streamed1_base, streamed.offset[1] = streamed1_offset;
  streamed.statistics =
      (__global const float2 *)((__global const char *)statistics_base + statistics_offset);
  const Rows kept0 = rows_of(kept0_base, kept0_offset, p.kept[0], a.batch, a.head, a.rows, p.depth);
  const Rows kept1 = rows_of(kept1_base, kept1_offset, p.kept[1], a.batch, a.head, a.rows, p.width);
  bring_rows(tiles, at_kept, kept0, a.first, BM);
  bring_rows(tiles, at_kept + BM * ROW_BYTES, kept1, a.first, BM);
#if IS_KEYS
  const Statistics *own = 0;
  float4 out1[FRAGMENTS_D][FRAGMENTS_M];
  clear(out1);
#else
  Statistics own[FRAGMENTS_M];
  load_statistics(own, streamed.statistics + ((long)a.batch * p.heads + a.head) * p.padded + row);
#endif
  float4 out0[FRAGMENTS_D][FRAGMENTS_M];
  clear(out0);

#if STAGES > 1
  if (a.count > 0) bring_block(tiles, ring, streamed, a, 0, p);
#endif
  for (int n = 0; n < a.count; ++n) {
    const uint at_0 = ring + (n % STAGES) * STREAMED_BYTES, at_1 = at_0 + BN * ROW_BYTES;
#if STAGES > 1
    WAIT_FOR_COPIES(0)
    barrier(CLK_LOCAL_MEM_FENCE);  // this block is there, and nobody reads the one before it any more
    if (n + 1 < a.count)
      bring_block(tiles, ring + ((n + 1) % STAGES) * STREAMED_BYTES, streamed, a, n + 1, p);
#else
    barrier(CLK_LOCAL_MEM_FENCE);
    bring_block(tiles, ring, streamed, a, n, p);
    WAIT_FOR_COPIES(0)
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    float4 s[FRAGMENTS_N][FRAGMENTS_M], d[FRAGMENTS_N][FRAGMENTS_M];
    multiply_rows(tiles, s, at_kept, warp_row, at_0);
    multiply_rows(tiles, d, at_kept + BM * ROW_BYTES, warp_row, at_1);
    differentiate(tiles, s, d, own, at_1 + BN * ROW_BYTES, warp_row, row, a, n, mask_base, mask_offset, p);
#if IS_KEYS
    add_products(tiles, out1, s, at_1);
#endif
    add_products(tiles, out0, d, at_0);
  }
  const float kept_scale = DROPOUT ? as_float((uint)p.scores.kept_scale) : 1.0f;
  if (p.wanted[0])
    store_gradient(tiles, out0, as_float((uint)p.scale) * kept_scale, out0_base, out0_offset, p.out[0],
                   p.depth, a);
#if IS_KEYS
  if (p.wanted[1])
    store_gradient(tiles, out1, kept_scale, out1_base, out1_offset, p.out[1], p.width, a);
#endif
}
