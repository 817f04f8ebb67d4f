// Attention on matrix units by mma.sync: softmax(scale * query key^T + mask) value. A work-group takes BM
// queries of a head and goes through its keys, BN at once; scores and the result stay in registers. After
// Dao, arXiv 2307.08691. While keys are multiplied, their values are copied, and the other way round.
// Defines: those of attention_mma.h and mma.h.
#define RING_BYTES ((BM + 2 * BN) * ROW_BYTES)
#include "attention_mma.h"

#define AT_KEYS (BM * ROW_BYTES)
#define AT_VALUES ((BM + BN) * ROW_BYTES)
// FETCH begins to copy BN rows; after PUT and a barrier they are there.
#if ASYNC
#define HELD
#define FETCH(to, r, first)            \
  {                                    \
    bring_rows(tiles, to, r, first, BN); \
    COMMIT_COPIES                      \
  }
#define PUT(to) WAIT_FOR_COPIES(0)
#else
#define HELD uint4 held[COPIES(BN)];
#define FETCH(to, r, first) read_rows(held, r, first);
#define PUT(to) write_rows(tiles, to, held);
INLINE void read_rows(uint4 *held, const Rows r, int first) {
  int item = get_local_id(0);
  HIDE(item)
  UNROLL_ON_DEVICE for (int i = 0; i < COPIES(BN); ++i)
    held[i] = load_chunk(source_of(r, first, item, i), bytes_of(r, first, item, i));
}
INLINE void write_rows(__local uchar *tiles, uint to, const uint4 *held) {
  int item = get_local_id(0);
  HIDE(item)
  UNROLL_ON_DEVICE for (int i = 0; i < COPIES(BN); ++i) store_chunk(tiles, to + PLACE_OF(item, i), held[i]);
}
#endif

// A row's state so far: its largest score and the sum of its weights, of the rows lane / 4 and 8 further.
typedef struct {
  float top, total;
} Row;

// Sets scores that a row does not see to minus infinity, and adds a mask. `row` and `column` are the lane's
// first ones.
INLINE void mask_scores(float4 s[][FRAGMENTS_M], int row, int column, int queries, int keys, float scale,
                        __global const void *mask_base, ulong mask_offset, const AttentionParams p) {
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i)
    UNROLL_ON_DEVICE for (int h = 0; h < 2; ++h) {
      const int r = row + i * 16 + h * 8;
      const int end = r >= queries ? 0 : CAUSAL ? min(keys, r + 1) : keys;
#if MASK
      __global const STYPE(M) *mask =
          AT_CONST(M, mask_base, mask_offset) + r * p.mask_row + column * p.mask_column;
#endif
      UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) {
        const int c = column + j * 8;
        float x = h ? s[j][i].z : s[j][i].x, y = h ? s[j][i].w : s[j][i].y;
        x = c < end ? MASKED_AT(x, scale, mask, 0) : -INFINITY;
        y = c + 1 < end ? MASKED_AT(y, scale, mask, p.mask_column) : -INFINITY;
        if (h) s[j][i].z = x, s[j][i].w = y;
        else s[j][i].x = x, s[j][i].y = y;
#if MASK
        mask += 8 * p.mask_column;
#endif
      }
    }
}

// Turns scores into weights relative to the largest score so far, and the result so far with them.
INLINE void soften(__local uchar *tiles, float4 s[][FRAGMENTS_M], float4 o[][FRAGMENTS_M],
                   Row state[][2], float unit) {
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) {
    float factor[2], less[2], units[2];
    UNROLL_ON_DEVICE for (int h = 0; h < 2; ++h) {
      float top = state[i][h].top;
      UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j)
        top = larger(top, h ? larger(s[j][i].z, s[j][i].w) : larger(s[j][i].x, s[j][i].y));
      top = larger(top, float_from_neighbour(tiles, top, 1));
      top = larger(top, float_from_neighbour(tiles, top, 2));
      const float shift = top == -INFINITY ? 0.0f : top;
      factor[h] = fast_exp2((state[i][h].top - shift) * unit);
      units[h] = ROW_UNIT(shift, unit);
      less[h] = -shift * units[h];
      state[i][h].top = top;
      state[i][h].total *= factor[h];
    }
    UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) {
      const float4 v = s[j][i];
      const float4 w =
          (float4)(fast_exp2(fma(v.x, units[0], less[0])), fast_exp2(fma(v.y, units[0], less[0])),
                   fast_exp2(fma(v.z, units[1], less[1])), fast_exp2(fma(v.w, units[1], less[1])));
      state[i][0].total += w.x + w.y;
      state[i][1].total += w.z + w.w;
      s[j][i] = w;
    }
    UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_D; ++j)
      o[j][i] *= (float4)(factor[0], factor[0], factor[1], factor[1]);
  }
}

// Parameters: the result, the log-sum-exp [batch][heads][queries], the operands. Of p, `rows` is not 0 if the
// log-sum-exp is wanted.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_mma(__global void *out_base, ulong out_offset, __global void *sums_base,
                            ulong sums_offset, __global const void *query_base, ulong query_offset,
                            __global const void *key_base, ulong key_offset,
                            __global const void *value_base, ulong value_offset,
                            __global const void *mask_base, ulong mask_offset, const FlashParams p) {
  __local uchar tiles[TILE_BYTES] __attribute__((aligned(128)));
  const int queries = p.scores.queries, keys = p.scores.keys, heads = p.heads;
  const int row_tiles = (queries + BM - 1) / BM, z = get_group_id(0) / row_tiles;
  const int tile = get_group_id(0) % row_tiles, first = (CAUSAL ? row_tiles - 1 - tile : tile) * BM;
  const int batch = z / heads, head = z % heads, key_head = head / (int)p.groups;
  const int lane = get_local_id(0) & 31, warp_row = (get_local_id(0) >> 5) * WARP_ROWS;
  const int row = first + warp_row + (lane >> 2);  // the lane's first one
  const uint at_query = PLACE(tiles), at_key = at_query + AT_KEYS, at_value = at_query + AT_VALUES;
  const Rows query = rows_of(query_base, query_offset, p.query, batch, head, queries, p.depth);
  const Rows key = rows_of(key_base, key_offset, p.key, batch, key_head, keys, p.depth);
  const Rows value = rows_of(value_base, value_offset, p.value, batch, key_head, keys, p.width);
  const float scale = as_float((uint)p.scale), unit = UNIT(scale);
  const int blocks = ((CAUSAL ? min(keys, first + BM) : keys) + BN - 1) / BN;
  const int seen_by_all = CAUSAL ? min(keys, first + warp_row + 1) : keys;  // of the warp's rows
#if MASK
  mask_offset += (batch * p.scores.mask_strides[0] + head * p.scores.mask_strides[1]) * sizeof(STYPE(M));
#endif

  float4 o[FRAGMENTS_D][FRAGMENTS_M];
  Row state[FRAGMENTS_M][2];
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) {
    UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_D; ++j) o[j][i] = (float4)(0.0f);
    UNROLL_ON_DEVICE for (int h = 0; h < 2; ++h) state[i][h].top = -INFINITY, state[i][h].total = 0.0f;
  }
  HELD
  bring_rows(tiles, at_query, query, first, BM);
  FETCH(at_key, key, 0)
  PUT(at_key)
  for (int n = 0; n < blocks; ++n) {
    float4 s[FRAGMENTS_N][FRAGMENTS_M];
    barrier(CLK_LOCAL_MEM_FENCE);  // keys are there, and nobody reads values any more
    FETCH(at_value, value, n * BN)
    multiply_rows(tiles, s, at_query, warp_row, at_key);
    PUT(at_value)
    barrier(CLK_LOCAL_MEM_FENCE);
    if (n + 1 < blocks) FETCH(at_key, key, (n + 1) * BN)
    if (MASK != 0 || (n + 1) * BN > seen_by_all)
      mask_scores(s, row, n * BN + (lane & 3) * 2, queries, keys, scale, mask_base, mask_offset, p.scores);
    soften(tiles, s, o, state, unit);
#if DROPOUT
    FOR_FOURS {
      const ulong first_kept = first_across_keys(p.scores, z, row + i * 16);
      const uint kept_ones = kept_across_keys(tiles, p.scores, first_kept + n * (BN / 8) + j);
      UNROLL for (int u = 0; u < 4; ++u) s[j + u][i] = KEEP(s[j + u][i], kept_ones, u, ACROSS_KEYS);
    }
#endif
    add_products(tiles, o, s, at_value);
    if (n + 1 < blocks) { PUT(at_key) }
  }

  const float kept_scale = DROPOUT ? as_float((uint)p.scores.kept_scale) : 1.0f;
  float4 factor[FRAGMENTS_M];
  UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) {
    float part[2];
    UNROLL_ON_DEVICE for (int h = 0; h < 2; ++h) {
      float total = state[i][h].total;
      total += float_from_neighbour(tiles, total, 1);
      total += float_from_neighbour(tiles, total, 2);
      part[h] = total == 0.0f ? 0.0f : kept_scale / total;
      const int r = row + i * 16 + h * 8;
      if (p.rows && (lane & 3) == 0 && r < queries)
        AT(f32, sums_base, sums_offset)[(long)z * queries + r] =
            LOG_SUM(state[i][h].top, unit, log2(total));
    }
    factor[i] = (float4)(part[0], part[0], part[1], part[1]);
  }
  __global ushort *to = head_of(out_base, out_offset, p.out, batch, head);
  store_results(tiles, o, factor, to, p.out.row, row, queries, p.width);
}
