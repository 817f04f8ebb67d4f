// Attention of few queries over many keys, for CPU drivers: a work-item takes a piece of a key head's keys
// and ROWS (1, 2, 4, 8) of the queries that share it, so that these read each key once. What it leaves in
// `parts` of each query are its results, [WIDTH] numbers, the largest score and the sum of weights relative
// to it; split_join.cl adds pieces up. Of 64 keys that a mask hides from all queries none is read: they are
// what a cache has room for, or what a window has left behind.
// Defines: TYPE; DEPTH, WIDTH, multiples of 16; ROWS; MASK and M as in attention.h.
#include "flash.h"

#define KEYS 64  // at once
#define KEY_VECTORS (DEPTH / 16)
#define VECTORS (WIDTH / 16)
#if ROWS > 1  // fewer copies of the code
#define EACH_KEY ROLLED
#else
#define EACH_KEY UNROLL
#endif

INLINE float largest_lane(float16 v) {
  const float8 a = LARGER(v.lo, v.hi);
  const float4 b = LARGER(a.lo, a.hi);
  const float2 c = LARGER(b.lo, b.hi);
  return c.x > c.y ? c.x : c.y;
}
// The rows of this work-item: of a key head, the `first`-th of all queries and the next ones.
typedef struct {
  long first, count;
#if MASK
  __global const STYPE(M) *mask[ROWS];
#endif
} Rows;

#if MASK == 1
#define IS_SEEN(m) ((m) != 0)
#else
#define IS_SEEN(m) ((m) != -INFINITY)
#endif
#if MASK
// Whether any row sees one of the keys.
INLINE bool sees_some(const Rows rows, long column, long first, int n) {
  bool some = false;
  UNROLL for (int r = 0; r < ROWS; ++r)
    ROLLED for (int j = 0; j < n && !some; ++j) some = IS_SEEN(LOAD(M, rows.mask[r], (first + j) * column));
  return some;
}
#endif

// scores[r][i] = query r times key i.
INLINE void multiply_keys(SCRATCH float *scores, SCRATCH const float16 *query,
                          __global const STYPE(TYPE) *key, long row, int n) {
  ROLLED for (int i = 0; i < n; i += 8) {
    float16 dots[ROWS][8];
    EACH_KEY for (int u = 0; u < 8; ++u) {
      __global const STYPE(TYPE) *at = key + min(i + u, n - 1) * row;
      float16 of_key[KEY_VECTORS];
      UNROLL for (int c = 0; c < KEY_VECTORS; ++c) of_key[c] = TO16(f32, LOAD16(TYPE, at, 16 * c));
      UNROLL for (int r = 0; r < ROWS; ++r) {
        float16 sum = query[r * KEY_VECTORS] * of_key[0];
        UNROLL for (int c = 1; c < KEY_VECTORS; ++c)
          sum = fma(query[r * KEY_VECTORS + c], of_key[c], sum);
        dots[r][u] = sum;
      }
    }
    UNROLL for (int r = 0; r < ROWS; ++r) vstore8(sums_of_8(dots[r]), 0, scores + r * KEYS + i);
  }
}

// Turns a row's scores into weights relative to its largest one so far; returns the factor for its results.
INLINE float soften(SCRATCH float *s, float *top, float *total) {
  float16 v[KEYS / 16], most = (float16)(-INFINITY), sum = (float16)(0);
  UNROLL for (int i = 0; i < KEYS / 16; ++i) {
    v[i] = vload16(i, s);
    most = LARGER(v[i], most);
  }
  const float largest = largest_lane(most), now = largest > *top ? largest : *top;
  const float shift = now == -INFINITY ? 0.0f : now;  // a NaN makes the sum NaN anyway
  UNROLL for (int i = 0; i < KEYS / 16; ++i) {
    v[i] = exp_16(v[i] - (float16)(shift));
    vstore16(v[i], i, s);
    sum += v[i];
  }
  const float factor = exp_16((float16)(*top - shift)).s0;
  *total = fma(*total, factor, sum_of_lanes(sum));
  *top = now;
  return factor;
}

// results[r] += the weights' products with the values of keys i to i + 3, of n: of none behind the end, as
// their weights, 0, would make NaN of infinity.
INLINE void add_four(SCRATCH float16 *results, SCRATCH const float *weights,
                     __global const STYPE(TYPE) *value, long row, int i, int n) {
  UNROLL for (int c = 0; c < VECTORS; ++c) {
    float16 v[4];
    UNROLL for (int u = 0; u < 4; ++u)
      v[u] = i + u < n ? TO16(f32, LOAD16(TYPE, value + (i + u) * row, 16 * c)) : (float16)(0);
    UNROLL for (int r = 0; r < ROWS; ++r) {
      float16 sum = results[r * VECTORS + c];
      UNROLL for (int u = 0; u < 4; ++u) sum = fma((float16)(weights[r * KEYS + i + u]), v[u], sum);
      results[r * VECTORS + c] = sum;
    }
  }
}
INLINE void add_values(SCRATCH float16 *results, SCRATCH const float *weights,
                       __global const STYPE(TYPE) *value, long row, int n) {
  int i = 0;
  ROLLED for (; i + 4 <= n; i += 4) add_four(results, weights, value, row, i, i + 4);
  if (i < n) add_four(results, weights, value, row, i, n);
}

ONE_ITEM __kernel void attention_split(__global void *parts_base, ulong parts_offset,
                                       __global const void *query_base, ulong query_offset,
                                       __global const void *key_base, ulong key_offset,
                                       __global const void *value_base, ulong value_offset,
                                       __global const void *mask_base, ulong mask_offset,
                                       const FlashParams p) {
  SCRATCH float16 query[ROWS * KEY_VECTORS], results[ROWS * VECTORS];
  SCRATCH float s[ROWS * KEYS];
  float tops[ROWS], totals[ROWS];
  const long queries = p.scores.queries, in_head = p.groups * queries, key_heads = p.heads / p.groups;
  const long blocks = (in_head + ROWS - 1) / ROWS, z = get_global_id(1) / blocks;
  const long row0 = get_global_id(1) % blocks * ROWS, batch = z / key_heads, key_head = z % key_heads;
  Rows rows;
  rows.first = z * in_head + row0;
  rows.count = min((long)ROWS, in_head - row0);
  UNROLL for (int r = 0; r < ROWS; ++r) {
    const long row = row0 + min((long)r, rows.count - 1);
    __global const STYPE(TYPE) *from =
        AT_CONST(TYPE, query_base, query_offset) +
        place_in(p.query, batch, key_head * p.groups + row / queries, row % queries);
    UNROLL for (int c = 0; c < KEY_VECTORS; ++c)
      query[r * KEY_VECTORS + c] =
          TO16(f32, LOAD16(TYPE, from, 16 * c)) * (float16)(as_float((uint)p.scale));
    UNROLL for (int c = 0; c < VECTORS; ++c) results[r * VECTORS + c] = (float16)(0);
    tops[r] = -INFINITY;
    totals[r] = 0;
#if MASK
    rows.mask[r] = AT_CONST(M, mask_base, mask_offset) + mask_offset_of(p.scores, z * in_head + row);
#endif
  }
  __global const STYPE(TYPE) *key =
      AT_CONST(TYPE, key_base, key_offset) + place_in(p.key, batch, key_head, 0);
  __global const STYPE(TYPE) *value =
      AT_CONST(TYPE, value_base, value_offset) + place_in(p.value, batch, key_head, 0);
  const long piece = get_global_id(0), from = piece * p.keys_at_once;
  const long end = min(p.scores.causal ? min((long)p.scores.keys, queries) : (long)p.scores.keys,
                       from + p.keys_at_once);
  for (long j = from; j < end; j += KEYS) {
    const int n = (int)min((long)KEYS, end - j);
#if MASK
    if (!sees_some(rows, p.scores.mask_column, j, n)) continue;
#endif
    multiply_keys(s, query, key + j * p.key.row, p.key.row, n);
    UNROLL for (int r = 0; r < ROWS; ++r) {
      const long of_head = (row0 + min((long)r, rows.count - 1)) % queries;
      const int sees = p.scores.causal ? (int)clamp(of_head + 1 - j, 0L, (long)n) : n;
#if MASK
      mask_scores(s + r * KEYS, rows.mask[r], p.scores.mask_column, j, sees);
#endif
      if (sees < KEYS) fill_rest(s + r * KEYS, sees, KEYS, -INFINITY);
      const float16 factor = (float16)(soften(s + r * KEYS, &tops[r], &totals[r]));
      UNROLL for (int c = 0; c < VECTORS; ++c) results[r * VECTORS + c] *= factor;
    }
    add_values(results, s, value + j * p.value.row, p.value.row, n);
  }
  UNROLL for (int r = 0; r < ROWS; ++r) {
    if (r >= rows.count) break;
    __global float *to =
        AT(f32, parts_base, parts_offset) + ((rows.first + r) * get_global_size(0) + piece) * (WIDTH + 2);
    UNROLL for (int c = 0; c < VECTORS; ++c) vstore16(results[r * VECTORS + c], c, to);
    to[WIDTH] = tops[r];
    to[WIDTH + 1] = totals[r];
  }
}
