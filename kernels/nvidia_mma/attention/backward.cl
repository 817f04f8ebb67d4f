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

// What is streamed: a block's rows of two operands and, of queries, log-sum-exp and delta in pairs.
typedef struct {
  Rows rows[2];
  __global const float2 *statistics;
} Streamed;

// Copies the block that begins at row `first`.
INLINE void bring_block(__local uchar *tiles, uint to, const Streamed o, int first) {
  bring_rows(tiles, to, o.rows[0], first, BN);
  bring_rows(tiles, to + BN * ROW_BYTES, o.rows[1], first, BN);
#if IS_KEYS
  if (get_local_id(0) < BN / 2) {
    const uint at = get_local_id(0) * CHUNK;
    __global const char *from = (__global const char *)(o.statistics + first) + at;
#if ASYNC
    copy_whole_chunk(tiles, to + 2 * BN * ROW_BYTES + at, from);
#else
    store_chunk(tiles, to + 2 * BN * ROW_BYTES + at, load_chunk(from, CHUNK));
#endif
  }
#endif
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
  OFTEN for (int e = 0; e < 4; ++e) {
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
  const int queries = p.scores.queries, keys = p.scores.keys, groups = p.groups, heads = p.heads;
  const int kept_rows = IS_KEYS ? keys : queries, streamed_rows = IS_KEYS ? queries : keys;
  const int kept_heads = IS_KEYS ? heads / groups : heads;
  const int row_tiles = (kept_rows + BM - 1) / BM, z = get_group_id(0) / row_tiles;
  const int tile = get_group_id(0) % row_tiles;
  const int first = (PASS * CAUSAL ? row_tiles - 1 - tile : tile) * BM;  // the longest first
  const int batch = z / kept_heads, kept_head = z % kept_heads;
  const int lane = get_local_id(0) & 31, warp_row = (get_local_id(0) >> 5) * WARP_ROWS;
  const int row = first + warp_row + (lane >> 2);
  const uint at_kept = PLACE(tiles), ring = at_kept + KEPT_BYTES;
  const float scale = as_float((uint)p.scale);
  __global const float2 *statistics =
      (__global const float2 *)((__global const char *)statistics_base + statistics_offset);
  const float kept_scale = DROPOUT ? as_float((uint)p.scores.kept_scale) : 1.0f;
  // The blocks of a head that the kept rows have to do with, for each head that shares them.
  const int all_blocks = (streamed_rows + BN - 1) / BN;
  const int begin = IS_KEYS * CAUSAL ? min(first / BN, all_blocks) : 0;
  const int end = PASS * CAUSAL ? min(all_blocks, (first + BM + BN - 1) / BN) : all_blocks;
  const int span = end - begin, count = IS_KEYS ? span * groups : span;

  const Rows kept0 = rows_of(kept0_base, kept0_offset, p.kept[0], batch, kept_head, kept_rows, p.depth);
  const Rows kept1 = rows_of(kept1_base, kept1_offset, p.kept[1], batch, kept_head, kept_rows, p.width);
  bring_rows(tiles, at_kept, kept0, first, BM);
  bring_rows(tiles, at_kept + BM * ROW_BYTES, kept1, first, BM);
#if !IS_KEYS
  float4 row_lse[FRAGMENTS_M], row_delta[FRAGMENTS_M];
  OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) {
    __global const float2 *from = statistics + (long)z * p.padded + row + i * 16;
    const float2 low = from[0], high = from[8];
    row_lse[i] = (float4)(low.x, low.x, high.x, high.x);
    row_delta[i] = (float4)(low.y, low.y, high.y, high.y);
  }
#endif
  float4 out0[FRAGMENTS_D][FRAGMENTS_M];
  OFTEN for (int i = 0; i < FRAGMENTS_M; ++i)
    OFTEN for (int j = 0; j < FRAGMENTS_D; ++j) out0[j][i] = (float4)(0.0f);
#if IS_KEYS
  float4 out1[FRAGMENTS_D][FRAGMENTS_M];
  OFTEN for (int i = 0; i < FRAGMENTS_M; ++i)
    OFTEN for (int j = 0; j < FRAGMENTS_D; ++j) out1[j][i] = (float4)(0.0f);
#endif

#define HEAD_OF(n) (IS_KEYS ? kept_head * groups + (n) / span : kept_head / groups)
#define FIRST_OF(n) ((begin + (n) % span) * BN)
#define BRING_BLOCK(n)                                                                                   \
  {                                                                                                      \
    Streamed o_;                                                                                         \
    const int head_ = HEAD_OF(n);                                                                        \
    o_.rows[0] =                                                                                         \
        rows_of(streamed0_base, streamed0_offset, p.streamed[0], batch, head_, streamed_rows, p.depth);  \
    o_.rows[1] =                                                                                         \
        rows_of(streamed1_base, streamed1_offset, p.streamed[1], batch, head_, streamed_rows, p.width);  \
    o_.statistics = statistics + ((long)batch * heads + head_) * p.padded;                               \
    bring_block(tiles, ring + ((n) % STAGES) * STREAMED_BYTES, o_, FIRST_OF(n));                         \
    COMMIT_COPIES                                                                                        \
  }
#if STAGES > 1
  if (count > 0) BRING_BLOCK(0)
#endif
  for (int n = 0; n < count; ++n) {
    const uint at_0 = ring + (n % STAGES) * STREAMED_BYTES, at_1 = at_0 + BN * ROW_BYTES;
#if STAGES > 1
    WAIT_FOR_COPIES(0)
    barrier(CLK_LOCAL_MEM_FENCE);  // this block is there, and nobody reads the one before it any more
    if (n + 1 < count) BRING_BLOCK(n + 1)
#else
    barrier(CLK_LOCAL_MEM_FENCE);
    BRING_BLOCK(n)
    WAIT_FOR_COPIES(0)
    barrier(CLK_LOCAL_MEM_FENCE);
#endif
    float4 s[FRAGMENTS_N][FRAGMENTS_M], d[FRAGMENTS_N][FRAGMENTS_M];
    multiply_rows(tiles, s, at_kept, warp_row, at_0);
    multiply_rows(tiles, d, at_kept + BM * ROW_BYTES, warp_row, at_1);

    const int block_first = FIRST_OF(n), head = IS_KEYS ? HEAD_OF(n) : kept_head;
    const int warp_first = first + warp_row;
    bool check = MASK != 0;  // whether some weights may be 0
    if (CAUSAL) check |= IS_KEYS ? warp_first + WARP_ROWS > block_first : block_first + BN > warp_first;
    if (!IS_KEYS) check |= block_first + BN > keys;
#if MASK
    const ulong mask_at =
        mask_offset + (batch * p.scores.mask_strides[0] + head * p.scores.mask_strides[1]) * sizeof(STYPE(M));
#else
    const ulong mask_at = 0;
#endif
#if DROPOUT
    const long matrix = (long)batch * heads + head;
    uint kept_ones[(FRAGMENTS_N + 3) / 4][FRAGMENTS_M];
    FOR_FOURS {
#if IS_KEYS
      const int query = block_first + j * 8 + (lane & 3) * 2;
      kept_ones[j / 4][i] = kept_along_keys(
          tiles, p.scores, first_along_keys(p.scores, matrix, query, first + warp_row + i * 16));
#else
      kept_ones[j / 4][i] = kept_across_keys(
          tiles, p.scores, first_across_keys(p.scores, matrix, row + i * 16) + block_first / 8 + j);
#endif
    }
#endif
    FOR_FRAGMENTS {
      const int column = block_first + j * 8 + (lane & 3) * 2;
#if IS_KEYS
      const uint at = at_1 + BN * ROW_BYTES + (j * 8 + (lane & 3) * 2) * 8;
      const float lse_0 = as_float(load_word(tiles, at)), lse_1 = as_float(load_word(tiles, at + 8));
      const float delta_0 = as_float(load_word(tiles, at + 4)), delta_1 = as_float(load_word(tiles, at + 12));
      const float4 lse = (float4)(lse_0, lse_1, lse_0, lse_1);
      const float4 delta = (float4)(delta_0, delta_1, delta_0, delta_1);
#else
      const float4 lse = row_lse[i], delta = row_delta[i];
#endif
      const float4 w = weights_of(s[j][i], lse, scale, check, row + i * 16, column, keys, queries,
                                  mask_base, mask_at, p.scores);
      float4 gradient = d[j][i];
      s[j][i] = w;
#if DROPOUT
      s[j][i] = KEEP(w, kept_ones[j / 4][i], j % 4, KEPT_AT);
      gradient = KEEP(gradient, kept_ones[j / 4][i], j % 4, KEPT_AT);
#endif
      d[j][i] = w * (gradient - delta);
    }
#if IS_KEYS
    add_products(tiles, out1, s, at_1);
#endif
    add_products(tiles, out0, d, at_0);
  }
  float4 factor[FRAGMENTS_M];
  OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) factor[i] = (float4)(as_float((uint)p.scale) * kept_scale);
  if (p.wanted[0])
    store_results(tiles, out0, factor, head_of(out0_base, out0_offset, p.out[0], batch, kept_head),
                  p.out[0].row, row, kept_rows, p.depth);
#if IS_KEYS
  OFTEN for (int i = 0; i < FRAGMENTS_M; ++i) factor[i] = (float4)(kept_scale);
  if (p.wanted[1])
    store_results(tiles, out1, factor, head_of(out1_base, out1_offset, p.out[1], batch, kept_head),
                  p.out[1].row, row, kept_rows, p.width);
#endif
}
