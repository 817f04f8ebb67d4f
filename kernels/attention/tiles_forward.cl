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

#define LQ (BM * BK / 4 / ITEMS)     // vectors of four that an item loads: of queries,
#define LK (BN * BK / 4 / ITEMS)     // of keys,
#define LV (BK * DEPTH / 4 / ITEMS)  // of values

#define PITCH_B (DEPTH > PITCH ? DEPTH : PITCH)

INLINE long offset_in(const FlashTensor t, int batch, int head) { return batch * t.batch + head * t.head; }

// Numbers on their way, as they are in memory: of queries, of keys, and of values.
typedef struct {
  RAW(4, TYPE) query[LQ], key[LK], value[LV];
} Step;

// Loads step `step` of the depth, and stores it in a buffer of local memory.
INLINE void load_step(Step *to, const Head head, int key0, int step, const FlashParams p) {
  const int depth = p.depth;
  UNROLL for (int i = 0; i < LQ; ++i)
    to->query[i] =
        load_along(head.query, p.query.row, head.first, (int)p.scores.all_queries, depth, step, i);
  UNROLL for (int i = 0; i < LK; ++i)
    to->key[i] = load_along(head.key, p.key.row, key0, (int)p.scores.keys, depth, step, i);
}
INLINE void store_step(const Step *from, __local float A[BK][PITCH], __local float B[BK][PITCH_B]) {
  UNROLL for (int i = 0; i < LQ; ++i) store_along(&A[0][0], PITCH, from->query[i], i);
  UNROLL for (int i = 0; i < LK; ++i) store_along(&B[0][0], PITCH_B, from->key[i], i);
}

// The same of values: step `step` of the block's keys.
#define VALUE_KEY(i) ((int)(get_local_id(0) + (i) * ITEMS) / (DEPTH / 4))
#define VALUE_COLUMN(i) ((int)(get_local_id(0) + (i) * ITEMS) % (DEPTH / 4) * 4)
INLINE void load_values(Step *to, const Head head, int key0, int step, const FlashParams p) {
  UNROLL for (int i = 0; i < LV; ++i) {
    const int row = key0 + step * BK + VALUE_KEY(i), column = VALUE_COLUMN(i);
    to->value[i] = (RAW(4, TYPE))(0);
    if (row < (int)p.scores.keys && column < (int)p.width)
      to->value[i] = *(__global const RAW(4, TYPE) *)(head.value + (long)row * p.value.row + column);
  }
}
INLINE void store_values(const Step *from, __local float B[BK][PITCH_B]) {
  UNROLL for (int i = 0; i < LV; ++i)
    *(__local float4 *)&B[VALUE_KEY(i)][VALUE_COLUMN(i)] = unpack_4(from->value[i]);
}

// acc = the products of the group's queries and the block's keys.
#define TN SCORES
INLINE void multiply_keys(float acc[TM][SCORES], __local float As[2][BK][PITCH],
                          __local float Bs[2][BK][PITCH_B], Step *numbers, const Head head, int key0,
                          const ItemTile at, const FlashParams p) {
  UNROLL for (int i = 0; i < TM; ++i) UNROLL for (int j = 0; j < SCORES; ++j) acc[i][j] = 0.0f;
  const int steps = ((int)p.depth + BK - 1) / BK;
#define LOAD_STEP(step) load_step(numbers, head, key0, step, p)
#define STORE_STEP(b) store_step(numbers, As[b], Bs[b])
#define A_LINE(b, k) As[b][k]
#define B_LINE(b, k) Bs[b][k]
  ADD_STEPS(int, 0, steps, LOAD_STEP, STORE_STEP, A_LINE, B_LINE, at, acc)
}
#undef TN

// o += the products of the weights in local memory and the `count` keys' values, whose first step is in local
// memory, too.
#define TN RESULTS
INLINE void add_values(float o[TM][RESULTS], __local float weights[BN][PITCH],
                       __local float Bs[2][BK][PITCH_B], Step *numbers, const Head head, int key0, int count,
                       const ItemTile at, const FlashParams p) {
#define WEIGHT_LINE(step, k) weights[step * BK + (k)]
#define VALUE_LINE(step, k) Bs[step & 1][k]
  const int steps = (count + BK - 1) / BK;
  for (int step = 0; step < steps; ++step) {
    if (step + 1 < steps) load_values(numbers, head, key0, step + 1, p);
    MULTIPLY_TILES(WEIGHT_LINE, VALUE_LINE, step, at, o)
    if (step + 1 < steps) store_values(numbers, Bs[(step + 1) & 1]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
#undef TN

// The rows' state so far: their largest scores and the sums of this item's weights.
typedef struct {
  float top[TM], total[TM];
} Rows;

// Where in local memory the items that share row i of this one meet.
INLINE __local float *meeting(__local float *meet, const Place at, int i) {
  return meet + (at.scores.row + row_offset(i)) * SHARERS;
}

// Turns scores into weights relative to the largest score so far, and the results so far with them.
INLINE void soften(float acc[TM][SCORES], float o[TM][RESULTS], Rows *rows, __local float *meet,
                   const Place at) {
  UNROLL for (int i = 0; i < TM; ++i) {
    float largest = acc[i][0];
    UNROLL for (int j = 1; j < SCORES; ++j) largest = acc[i][j] > largest ? acc[i][j] : largest;
    meeting(meet, at, i)[at.sharer] = largest;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (int i = 0; i < TM; ++i) {
    float largest = rows->top[i];
    UNROLL for (int k = 0; k < SHARERS; k += 4) {
      const float4 v = *(__local const float4 *)(meeting(meet, at, i) + k);
      const float a = v.x > v.y ? v.x : v.y, b = v.z > v.w ? v.z : v.w, c = a > b ? a : b;
      largest = c > largest ? c : largest;
    }
    const float shift = largest == -INFINITY ? 0.0f : largest;  // a NaN makes the sum NaN anyway
    const float factor = exp2((rows->top[i] - shift) * LOG2_UNIT);
    rows->top[i] = largest;
    rows->total[i] *= factor;
    UNROLL for (int j = 0; j < RESULTS; ++j) o[i][j] *= factor;
    UNROLL for (int j = 0; j < SCORES; ++j) {
      acc[i][j] = exp2((acc[i][j] - shift) * LOG2_UNIT);
      rows->total[i] += acc[i][j];
    }
  }
}

INLINE void store_weights(float acc[TM][SCORES], __local float weights[BN][PITCH], const ItemTile at) {
  UNROLL for (int j = 0; j < SCORES; ++j) UNROLL for (int i = 0; i < TM; i += 4)
    *(__local float4 *)&weights[at.column + column_offset(j)][at.row + row_offset(i)] =
        (float4)(acc[i][j], acc[i + 1][j], acc[i + 2][j], acc[i + 3][j]);
}

// Stores results, divided by the sums of all weights, and the rows' log-sum-exp, if p.rows.
INLINE void store_results(float o[TM][RESULTS], const Rows rows, __local float *meet, const Head head,
                          const Place at, __global STYPE(TYPE) *out, __global float *sums,
                          const FlashParams p) {
  UNROLL for (int i = 0; i < TM; ++i) meeting(meet, at, i)[at.sharer] = rows.total[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  const int queries = p.scores.all_queries, width = p.width;
  const float kept_scale = DROPOUT ? as_float((uint)p.scores.kept_scale) : 1.0f;
  UNROLL for (int i = 0; i < TM; ++i) {
    float sum = 0.0f;
    UNROLL for (int k = 0; k < SHARERS; ++k) sum += meeting(meet, at, i)[k];
    const int row = head.first + at.scores.row + row_offset(i);
    if (row >= queries) continue;
    const float part = sum == 0.0f ? 0.0f : kept_scale / sum;
    if (p.rows && at.sharer == 0)
      sums[(long)head.all * queries + row] =
          sum == 0.0f ? -INFINITY : fma(rows.top[i], LOG2_UNIT / LOG2_E, log2(sum) / LOG2_E);
    UNROLL for (int j = 0; j < RESULTS; j += 4) {
      const int column = at.results.column + j * LX;
      float v[4];
      UNROLL for (int u = 0; u < 4; ++u) v[u] = o[i][j + u] * part;
      if (column < width) STOREV(TYPE, out + row * p.out.row, column, v);
    }
  }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_tiles(__global void *out_base, ulong out_offset, __global void *sums_base,
                              ulong sums_offset, __global const void *query_base, ulong query_offset,
                              __global const void *key_base, ulong key_offset,
                              __global const void *value_base, ulong value_offset,
                              __global const void *mask_base, ulong mask_offset, const FlashParams p) {
  __local float As[2][BK][PITCH] __attribute__((aligned(16)));
  __local float Bs[2][BK][PITCH_B] __attribute__((aligned(16)));
  __local float weights[BN][PITCH] __attribute__((aligned(16)));
  const Place at = place_of_item(get_local_id(0));
  const int queries = p.scores.all_queries, keys = p.scores.keys;
  const bool causal = p.scores.causal;
  const int row_tiles = (queries + BM - 1) / BM, all_heads = (int)get_num_groups(0) / row_tiles;
  // Of causal tiles the longest begin first.
  const Tile tile = tile_at(get_group_id(0), p.bundle, row_tiles, p.heads, all_heads, causal, BM);
  const int key_head = tile.head / (int)p.groups;
  Head head;
  head.first = tile.first;
  head.all = tile.batch * (int)p.heads + tile.head;
  head.query = AT_CONST(TYPE, query_base, query_offset) + offset_in(p.query, tile.batch, tile.head);
  head.key = AT_CONST(TYPE, key_base, key_offset) + offset_in(p.key, tile.batch, key_head);
  head.value = AT_CONST(TYPE, value_base, value_offset) + offset_in(p.value, tile.batch, key_head);
  head.mask = AT_CONST(M, mask_base, mask_offset) + tile.batch * p.scores.mask_strides[0] +
              tile.head * p.scores.mask_strides[1];
  const int end = causal ? min(keys, head.first + BM) : keys;
  const float scale = as_float((uint)p.scale) * (LOG2_E / LOG2_UNIT);

  float o[TM][RESULTS];
  Rows rows;
  UNROLL for (int i = 0; i < TM; ++i) {
    rows.top[i] = -INFINITY;
    rows.total[i] = 0.0f;
    UNROLL for (int j = 0; j < RESULTS; ++j) o[i][j] = 0.0f;
  }
  Step numbers;
  for (int key0 = 0; key0 < end; key0 += BN) {
    float acc[TM][SCORES];
    multiply_keys(acc, As, Bs, &numbers, head, key0, at.scores, p);
    load_values(&numbers, head, key0, 0, p);
    finish_scores(acc, head, key0, at.scores, scale, p);
    soften(acc, o, &rows, &As[0][0][0], at);
#if DROPOUT
    drop(acc, head, key0, at.scores, p.scores);
#endif
    store_weights(acc, weights, at.scores);
    store_values(&numbers, Bs[0]);
    barrier(CLK_LOCAL_MEM_FENCE);
    add_values(o, weights, Bs, &numbers, head, key0, min(BN, end - key0), at.results, p);
  }
  store_results(o, rows, &As[0][0][0], head, at,
                AT(TYPE, out_base, out_offset) + offset_in(p.out, tile.batch, tile.head),
                AT(f32, sums_base, sums_offset), p);
}
