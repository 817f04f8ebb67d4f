// Attention of few queries over many keys, for GPUs: as split_cpu.cl, by work-groups. Of a block of KEYS keys
// LANES items share a row, and leave their parts of the scores in local memory; then the items of a column
// of the values share the block's keys. Portable OpenCL C; all sums are float, in a fixed order.
// Defines: TYPE; DEPTH, WIDTH, multiples of 4, of at most 256; ROWS (1, 2, 4, 8); MASK and M as in
// attention.h. Rows begin at multiples of 4 elements.
#include "types.h"
#define VEC 4
#include "element_vectors.h"
#include "register_tile.h"
#define COMPUTE f32
typedef float T;
#include "flash_params.h"
#include "attention.h"

#define ITEMS 128
#define KEYS 64
#define LANES 8
#define AT_ONCE (ITEMS / LANES)        // keys whose scores are computed at once
#define PITCH (ROWS * KEYS + 4)        // of scores' parts: neighbouring lanes' in other banks
#define DEPTH_4 (DEPTH / 4)
#define COLUMNS (WIDTH / 4)
#define SHARERS (ITEMS / COLUMNS)      // items of a column
#define SCORES_OF_ITEM ((ROWS * KEYS + ITEMS - 1) / ITEMS)
#define PART_FLOATS (LANES * PITCH)
#define RESULT_FLOATS (SHARERS * ROWS * WIDTH)
#define SHARED_FLOATS (PART_FLOATS > RESULT_FLOATS ? PART_FLOATS : RESULT_FLOATS)

#define FOUR(p) CAT(unpack4_, TYPE)(*(__global const RAW(4, TYPE) *)(p))

// Which score of the block is this item's number i: of row s / KEYS, key s % KEYS.
#define SCORE_OF(i) ((int)get_local_id(0) + (i) * ITEMS)

// Of the queries that share key head z: those from row `first` on.
typedef struct {
  long first, z, all;
  int count;
} Rows;
INLINE long row_of(const Rows rows, int r) { return rows.first + min(r, rows.count - 1); }

// What is added to this item's scores of n keys from j on: the mask's numbers, or minus infinity where a key
// is not seen. Returns whether one is.
INLINE bool mask_scores(float added[SCORES_OF_ITEM], const Rows rows, long j, int n,
                        __global const STYPE(M) *mask, const FlashParams p) {
  bool some = false;
  UNROLL for (int i = 0; i < SCORES_OF_ITEM; ++i) {
    const int s = SCORE_OF(i), k = s % KEYS;
    added[i] = -INFINITY;
    if (s < ROWS * KEYS && k < n) {
      const long row = row_of(rows, s / KEYS);
      bool sees = !p.scores.causal || j + k <= row % p.scores.queries;
      float number = 0;
#if MASK
      const long at = mask_offset_of(p.scores, rows.z * rows.all + row) + (j + k) * p.scores.mask_column;
#if MASK == 1
      sees = sees && LOAD(M, mask, at) != 0;
#else
      number = (float)LOAD(M, mask, at);
      sees = sees && number != -INFINITY;
#endif
#endif
      if (sees) added[i] = number;
      some = some || sees;
    }
  }
  return some;
}

// Whether any item says so; the items meet.
INLINE bool any_item(bool mine, __local int *flag) {
  if (get_local_id(0) == 0) *flag = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (mine) *flag = 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  const bool any = *flag != 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  return any;
}

// parts[lane][row][key]: what a lane's elements add to the score.
INLINE void multiply_keys(__local float *parts, __local const float4 *query, __global const STYPE(TYPE) *key,
                          long stride, int n) {
  const int lane = get_local_id(0) % LANES;
  for (int k = get_local_id(0) / LANES; k < n; k += AT_ONCE) {
    __global const STYPE(TYPE) *at = key + k * stride;
    float sum[ROWS];
    UNROLL for (int r = 0; r < ROWS; ++r) sum[r] = 0;
    UNROLL for (int c = 0; c < (DEPTH_4 + LANES - 1) / LANES; ++c) {
      const int element = c * LANES + lane;
      if (DEPTH_4 % LANES == 0 || element < DEPTH_4) {
        const float4 v = FOUR(at + 4 * element);
        UNROLL for (int r = 0; r < ROWS; ++r) {
          const float4 q = query[r * DEPTH_4 + element];
          sum[r] = fma(v.w, q.w, fma(v.z, q.z, fma(v.y, q.y, fma(v.x, q.x, sum[r]))));
        }
      }
    }
    UNROLL for (int r = 0; r < ROWS; ++r) parts[lane * PITCH + r * KEYS + k] = sum[r];
  }
}

// Rows' state so far: their largest scores, sums of weights of this item's scores, results of its column.
typedef struct {
  float top[ROWS], total[SCORES_OF_ITEM];
  float4 result[ROWS];
} State;

// Adds up the scores' parts, and makes weights[key][row] of them, relative to the largest score so far.
INLINE void soften(State *state, float added[SCORES_OF_ITEM], __local const float *parts,
                   __local float *weights, __local float *tops) {
  const int id = get_local_id(0);
  UNROLL for (int i = 0; i < SCORES_OF_ITEM; ++i) {
    const int s = SCORE_OF(i);
    if (s < ROWS * KEYS) {
      float sum = parts[s];
      UNROLL for (int lane = 1; lane < LANES; ++lane) sum += parts[lane * PITCH + s];
      added[i] = added[i] == -INFINITY ? -INFINITY : sum + added[i];
      weights[s % KEYS * ROWS + s / KEYS] = added[i];
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id < ROWS * 8) {
    float largest = -INFINITY;
    UNROLL for (int k = 0; k < KEYS / 8; ++k) {
      const float s = weights[(id % 8 + 8 * k) * ROWS + id / 8];
      largest = s > largest ? s : largest;
    }
    tops[id] = largest;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  float shift[ROWS];
  UNROLL for (int r = 0; r < ROWS; ++r) {
    float largest = state->top[r];
    UNROLL for (int k = 0; k < 8; ++k) largest = tops[r * 8 + k] > largest ? tops[r * 8 + k] : largest;
    shift[r] = largest == -INFINITY ? 0.0f : largest;  // a NaN makes the sum NaN anyway
    const float factor = exp(state->top[r] - shift[r]);
    state->top[r] = largest;
    state->result[r] *= (float4)(factor);
    UNROLL for (int i = 0; i < SCORES_OF_ITEM; ++i)
      if (SCORE_OF(i) / KEYS == r) state->total[i] *= factor;
  }
  UNROLL for (int i = 0; i < SCORES_OF_ITEM; ++i) {
    const int s = SCORE_OF(i);
    if (s < ROWS * KEYS) {
      float by = shift[0];
      UNROLL for (int r = 1; r < ROWS; ++r) by = s / KEYS == r ? shift[r] : by;
      const float weight = exp(added[i] - by);
      state->total[i] += weight;
      weights[s % KEYS * ROWS + s / KEYS] = weight;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// Stores what this piece leaves, `next` numbers from row to row.
INLINE void store_piece(__global float *to, long next, const State *state, int count, __local float *shared,
                        __local float *totals) {
  const int id = get_local_id(0), column = id % COLUMNS, sharer = id / COLUMNS;
  if (sharer < SHARERS)
    UNROLL for (int r = 0; r < ROWS; ++r)
      *(__local float4 *)(shared + (sharer * ROWS + r) * WIDTH + 4 * column) = state->result[r];
  UNROLL for (int i = 0; i < SCORES_OF_ITEM; ++i)
    if (SCORE_OF(i) < ROWS * KEYS) totals[SCORE_OF(i)] = state->total[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = id; i < count * WIDTH; i += ITEMS) {
    float sum = shared[i];
    UNROLL for (int k = 1; k < SHARERS; ++k) sum += shared[k * ROWS * WIDTH + i];
    to[i / WIDTH * next + i % WIDTH] = sum;
  }
  if (id < count) {
    float sum = 0;
    for (int k = 0; k < KEYS; ++k) sum += totals[id * KEYS + k];
    float largest = state->top[0];
    UNROLL for (int r = 1; r < ROWS; ++r) largest = id == r ? state->top[r] : largest;
    to[id * next + WIDTH] = largest;
    to[id * next + WIDTH + 1] = sum;
  }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_split(__global void *parts_base, ulong parts_offset, __global const void *query_base,
                              ulong query_offset, __global const void *key_base, ulong key_offset,
                              __global const void *value_base, ulong value_offset,
                              __global const void *mask_base, ulong mask_offset, const FlashParams p) {
  __local float shared[SHARED_FLOATS] __attribute__((aligned(16)));
  __local float4 query[ROWS * DEPTH_4];
  __local float weights[KEYS * ROWS], tops[ROWS * 8], totals[ROWS * KEYS];
  __local int flag;
  const int id = get_local_id(0), column = id % COLUMNS, sharer = id / COLUMNS;
  const long queries = p.scores.queries, in_head = p.groups * queries, key_heads = p.heads / p.groups;
  const long blocks = (in_head + ROWS - 1) / ROWS, z = get_group_id(1) / blocks;
  const long batch = z / key_heads, key_head = z % key_heads, first = get_group_id(1) % blocks * ROWS;
  const Rows rows = {first, z, in_head, (int)min((long)ROWS, in_head - first)};
  for (int i = id; i < ROWS * DEPTH_4; i += ITEMS) {
    const long row = row_of(rows, i / DEPTH_4), head = key_head * p.groups + row / queries;
    query[i] = FOUR(AT_CONST(TYPE, query_base, query_offset) + batch * p.query.batch + head * p.query.head +
                    row % queries * p.query.row + i % DEPTH_4 * 4) *
               (float4)(as_float((uint)p.scale));
  }
  __global const STYPE(TYPE) *key =
      AT_CONST(TYPE, key_base, key_offset) + batch * p.key.batch + key_head * p.key.head;
  __global const STYPE(TYPE) *value =
      AT_CONST(TYPE, value_base, value_offset) + batch * p.value.batch + key_head * p.value.head;
  const long from = get_group_id(0) * p.keys_at_once;
  const long end = min(p.scores.causal ? min((long)p.scores.keys, queries) : (long)p.scores.keys,
                       from + p.keys_at_once);
  State state;
  UNROLL for (int r = 0; r < ROWS; ++r) {
    state.top[r] = -INFINITY;
    state.result[r] = (float4)(0);
  }
  UNROLL for (int i = 0; i < SCORES_OF_ITEM; ++i) state.total[i] = 0;
  for (long j = from; j < end; j += KEYS) {
    const int n = (int)min((long)KEYS, end - j);
    float added[SCORES_OF_ITEM];
    if (!any_item(mask_scores(added, rows, j, n, AT_CONST(M, mask_base, mask_offset), p), &flag)) continue;
    multiply_keys(shared, query, key + j * p.key.row, p.key.row, n);
    barrier(CLK_LOCAL_MEM_FENCE);
    soften(&state, added, shared, weights, tops);
    if (sharer < SHARERS)
      for (int k = sharer; k < n; k += SHARERS) {
        const float4 v = FOUR(value + (j + k) * p.value.row + 4 * column);
        UNROLL for (int r = 0; r < ROWS; ++r)
          state.result[r] = fma((float4)(weights[k * ROWS + r]), v, state.result[r]);
      }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const long next = get_num_groups(0) * (WIDTH + 2);
  barrier(CLK_LOCAL_MEM_FENCE);
  __global float *to = AT(f32, parts_base, parts_offset) + (z * in_head + first) * next;
  store_piece(to + get_group_id(0) * (WIDTH + 2), next, &state, rows.count, shared, totals);
}
