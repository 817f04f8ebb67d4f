// Attention forward for GPUs without a matrix of scores: softmax(scale * query key^T + mask) value, with
// dropout of the weights, and the rows' log-sum-exp. A work-group has BM queries of a head and goes through
// the keys BN at a time: their scores are a product of tiles in registers, whose softmax over all keys so far
// is kept up to date (Dao and others, arXiv 2307.08691); the weights go to local memory, transposed, as one
// operand of the product with the values. Portable OpenCL C; 16-bit operands are converted as they are
// loaded, all sums are float.
// Defines: TYPE; DEPTH 32, 64 or 128, at least the width of the values; BM; ITEMS of a work-group, BM or
// twice as many; BK rows of operands in local memory at once; MASK, M and DROPOUT as in attention.h. Heads
// are multiples of 4 wide; all rows begin at multiples of 4 elements.
#include "attention_tiles.h"

#define RESULTS (DEPTH / (LX * WX))  // columns of an item's results, as TN of scores
#define LQ (BM * BK / 4 / ITEMS)     // vectors of four that an item loads: of queries,
#define LK (BN * BK / 4 / ITEMS)     // of keys,
#define LV (BK * DEPTH / 4 / ITEMS)  // of values

// Scores: step `step` of the depth, for ADD_STEPS.
#define LOAD_STEP(step)                                                                                \
  {                                                                                                    \
    UNROLL for (int i = 0; i < LQ; ++i) LOAD_ALONG(ra[i], query, p.query.row, first, queries, step, i) \
    UNROLL for (int i = 0; i < LK; ++i) LOAD_ALONG(rb[i], key, p.key.row, key0, keys, step, i)         \
  }
#define STORE_STEP(b)                                                \
  {                                                                  \
    UNROLL for (int i = 0; i < LQ; ++i) STORE_ALONG(As[b], ra[i], i) \
    UNROLL for (int i = 0; i < LK; ++i) STORE_ALONG(Bs[b], rb[i], i) \
  }
// Results: step `step` of the block's keys, whose weights are all in local memory.
#define LOAD_VALUES(step)                                                                         \
  UNROLL for (int i = 0; i < LV; ++i) {                                                           \
    const int row_ = key0 + (step) * BK + (t + i * ITEMS) / (DEPTH / 4);                          \
    const int column_ = (t + i * ITEMS) % (DEPTH / 4) * 4;                                        \
    rv[i] = (RAW(4, TYPE))(0);                                                                    \
    if (row_ < keys && column_ < width)                                                           \
      rv[i] = *(__global const RAW(4, TYPE) *)(value + (long)row_ * p.value.row + column_);       \
  }
#define STORE_VALUES(b)                                                                           \
  UNROLL for (int i = 0; i < LV; ++i)                                                             \
    *(__local float4 *)&Bs[b][(t + i * ITEMS) / (DEPTH / 4)][(t + i * ITEMS) % (DEPTH / 4) * 4] = \
        unpack_4(rv[i]);
#define WEIGHT_LINE(step, k) weights[step * BK + (k)]
#define VALUE_LINE(step, k) Bs[step & 1][k]
#define A_LINE(b, k) As[b][k]
#define B_LINE(b, k) Bs[b][k]

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_tiles(__global void *out_base, ulong out_offset, __global void *sums_base,
                              ulong sums_offset, __global const void *query_base, ulong query_offset,
                              __global const void *key_base, ulong key_offset,
                              __global const void *value_base, ulong value_offset,
                              __global const void *mask_base, ulong mask_offset, const FlashParams p) {
  __local float As[2][BK][PITCH] __attribute__((aligned(16)));
  __local float Bs[2][BK][DEPTH > PITCH ? DEPTH : PITCH] __attribute__((aligned(16)));
  __local float weights[BN][PITCH] __attribute__((aligned(16)));
  PLACES
  const int queries = p.scores.all_queries, keys = p.scores.keys, depth = p.depth, width = p.width;
  const bool causal = p.scores.causal;
  const int row_tiles = (queries + BM - 1) / BM, all_heads = (int)get_num_groups(0) / row_tiles;
  // Of causal tiles the longest begin first.
  const Tile tile = tile_at(get_group_id(0), p.bundle, row_tiles, p.heads, all_heads, causal, BM);
  const int first = tile.first, batch = tile.batch, head = tile.head, all = batch * (int)p.heads + head;
  const int end = causal ? min(keys, first + BM) : keys;
  __global const STYPE(TYPE) *query = OPERAND(query, head), *key = OPERAND(key, head / (int)p.groups),
                             *value = OPERAND(value, head / (int)p.groups);
  MASK_OF_HEAD
  const float scale = as_float((uint)p.scale) * (LOG2_E / LOG2_UNIT);

  float o[TM][RESULTS], top[TM], total[TM];
  UNROLL for (int i = 0; i < TM; ++i) {
    top[i] = -INFINITY;
    total[i] = 0.0f;
    UNROLL for (int j = 0; j < RESULTS; ++j) o[i][j] = 0.0f;
  }
  RAW(4, TYPE) ra[LQ], rb[LK], rv[LV];
  for (int key0 = 0; key0 < end; key0 += BN) {
    float acc[TM][SCORES];
    UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < SCORES; ++j) acc[i][j] = 0.0f;
    {
#define TN SCORES
      const int steps = (depth + BK - 1) / BK;
      ADD_STEPS(int, 0, steps, LOAD_STEP, STORE_STEP, A_LINE, B_LINE, scores, acc)
#undef TN
    }
    LOAD_VALUES(0)
    FINISH_SCORES(acc)

    // The largest score of each row, over the items that share it.
    __local float *meet = &As[0][0][0];
    UNROLL for (int i = 0; i < TM; ++i) {
      float largest = acc[i][0];
      UNROLL for (int j = 1; j < SCORES; ++j) largest = acc[i][j] > largest ? acc[i][j] : largest;
      meet[ROW(i) * SHARERS + sharer] = largest;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int i = 0; i < TM; ++i) {
      float largest = top[i];
      UNROLL for (int k = 0; k < SHARERS; k += 4) {
        const float4 v = *(__local const float4 *)&meet[ROW(i) * SHARERS + k];
        const float a = v.x > v.y ? v.x : v.y, b = v.z > v.w ? v.z : v.w, c = a > b ? a : b;
        largest = c > largest ? c : largest;
      }
      const float shift = largest == -INFINITY ? 0.0f : largest;  // a NaN makes the sum NaN anyway
      const float factor = exp2((top[i] - shift) * LOG2_UNIT);
      top[i] = largest;
      total[i] *= factor;
      UNROLL for (int j = 0; j < RESULTS; ++j) o[i][j] *= factor;
      UNROLL for (int j = 0; j < SCORES; ++j) {
        acc[i][j] = exp2((acc[i][j] - shift) * LOG2_UNIT);
        total[i] += acc[i][j];
      }
    }
    DROP(acc)
    UNROLL for (int j = 0; j < SCORES; ++j) UNROLL for (int i = 0; i < TM; i += 4)
      *(__local float4 *)&weights[COLUMN(j)][ROW(i)] =
          (float4)(acc[i][j], acc[i + 1][j], acc[i + 2][j], acc[i + 3][j]);
    STORE_VALUES(0)
    barrier(CLK_LOCAL_MEM_FENCE);
    {
#define TN RESULTS
      const int steps = (min(BN, end - key0) + BK - 1) / BK;
      for (int step = 0; step < steps; ++step) {
        if (step + 1 < steps) { LOAD_VALUES(step + 1) }
        MULTIPLY_TILES(WEIGHT_LINE, VALUE_LINE, step, results, o)
        if (step + 1 < steps) { STORE_VALUES((step + 1) & 1) }
        barrier(CLK_LOCAL_MEM_FENCE);
      }
#undef TN
    }
  }

  __local float *meet = &As[0][0][0];
  UNROLL for (int i = 0; i < TM; ++i) meet[ROW(i) * SHARERS + sharer] = total[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  __global STYPE(TYPE) *out = AT(TYPE, out_base, out_offset) + batch * p.out.batch + head * p.out.head;
  const float kept_scale = DROPOUT ? as_float((uint)p.scores.kept_scale) : 1.0f;
  UNROLL for (int i = 0; i < TM; ++i) {
    float sum = 0.0f;
    UNROLL for (int k = 0; k < SHARERS; ++k) sum += meet[ROW(i) * SHARERS + k];
    const int row = first + ROW(i);
    if (row >= queries) continue;
    const float part = sum == 0.0f ? 0.0f : kept_scale / sum;
    if (p.rows && sharer == 0)
      AT(f32, sums_base, sums_offset)[(long)all * queries + row] =
          sum == 0.0f ? -INFINITY : fma(top[i], LOG2_UNIT / LOG2_E, log2(sum) / LOG2_E);
    UNROLL for (int j = 0; j < RESULTS; j += 4) {
      const int column = result_column + j * LX;
      float v[4];
      UNROLL for (int u = 0; u < 4; ++u) v[u] = o[i][j + u] * part;
      if (column < width) STOREV(TYPE, out + row * p.out.row, column, v);
    }
  }
}
