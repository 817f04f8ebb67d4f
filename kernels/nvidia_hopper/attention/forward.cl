// Attention forward on Hopper's matrix units: softmax(scale * query key^T + mask) value, with dropout of the
// weights, and the rows' log-sum-exp, without a matrix of scores. Work-groups are persistent and take tiles
// of query rows in turn. One warpgroup fills buffers in local memory through the copy engine, the others have
// 64 query rows each: the scores of the next block of keys are started before this block's weights are
// multiplied by its values, and the softmax runs at the same time. Blocks of keys are taken from the last to
// the first, so that masked ones come first. After Dao and others (arXiv 2307.08691) and Shah and others
// (arXiv 2407.08608).
// Defines: TYPE f16 or bf16; DEPTH 64 or 128, the padded head size (the copy engine fills with zeros);
// WARPGROUPS that multiply, 2 or (DEPTH 64) 3; LOADER_REGISTERS and MULTIPLIER_REGISTERS of an item; CAUSAL;
// MASK, M and DROPOUT as in attention.h, MASK_TILES as in attention_mask.h. Head sizes are multiples of 8,
// lines of all tensors start at multiples of 16 bytes.
#define BM (64 * WARPGROUPS)
#define BN 128
#define MASK_ROWS_OF_BOX BM
#include "attention_forward_scores.h"

#define STAGES 2
#define HALVES (DEPTH / 64)  // boxes of 64 columns: 128 bytes, the swizzle's width
#define Q_BYTES (HALVES * BM * 128)
#define KV_BYTES (HALVES * BN * 128)
#define ITEMS (128 * (WARPGROUPS + 1))

// Two warpgroups take turns at the matrix unit, so that the softmax of one overlaps with the products of the
// other. Named barriers 1 and 2, of both warpgroups' 256 items.
#if WARPGROUPS == 2
#define MY_TURN asm volatile("bar.sync %0, 256;" ::"r"(warpgroup + 1) : "memory");
#define YOUR_TURN asm volatile("bar.arrive %0, 256;" ::"r"(2 - warpgroup) : "memory");
#else
#define MY_TURN
#define YOUR_TURN
#endif

// Where drawing is hidden best: products of 128 columns last longer.
#if DEPTH == 128
#define DRAW_EARLY DRAW_DROPOUT
#define DRAW_LATE
#else
#define DRAW_EARLY
#define DRAW_LATE DRAW_DROPOUT
#endif
// Computes the scores of block n and adds block n + 1 to the result. No product may be in flight at the end:
// if accumulators are in flight across a loop's back edge, ptxas inserts a wait after every product.
#define BLOCK(MASKED)                                         \
  {                                                           \
    barrier_wait(full_k + 8 * k_slot, k_phase);               \
    MY_TURN                                                   \
    SCORES(s, q_matrix, k_matrix + k_slot * (KV_BYTES >> 4)); \
    DRAW_EARLY                                                \
    barrier_wait(full_v + 8 * v_slot, v_phase);               \
    ADD_ROWS(o, w, v_matrix + v_slot * (KV_BYTES >> 4));      \
    YOUR_TURN                                                 \
    DRAW_LATE                                                 \
    ALL_BUT_ONE_DONE_OF(64, s);                               \
    FINISH_SCORES(MASKED)                                     \
    SOFTEN                                                    \
    ALL_DONE(OUTPUTS, o);                                     \
    RELEASE(empty_v + 8 * v_slot)                             \
    NEXT_SLOT(v_slot, v_phase)                                \
    PACK_WEIGHTS                                              \
    if (any_lane(factor0 != 1.0f || factor1 != 1.0f)) {       \
      UNROLL for (int j = 0; j < DEPTH / 8; ++j) {            \
        o[j * 4] *= factor0;                                  \
        o[j * 4 + 1] *= factor0;                              \
        o[j * 4 + 2] *= factor1;                              \
        o[j * 4 + 3] *= factor1;                              \
      }                                                       \
    }                                                         \
  }

// Parameters: the result, the log-sum-exp [batch][heads][queries]; a counter of tiles, or nothing; room for
// MAPS tensor maps per work-group.
#define MAPS (3 + MASK_TILES)
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_hopper(__global void *out_base, ulong out_offset, __global void *sums_base,
                               ulong sums_offset, __global const void *query_base, ulong query_offset,
                               __global const void *key_base, ulong key_offset,
                               __global const void *value_base, ulong value_offset,
                               __global const void *mask_base, ulong mask_offset,
                               __global void *counter_base, ulong counter_offset, __global void *maps_base,
                               ulong maps_offset, const AttentionHopperParams p) {
  __local uchar tiles[Q_BYTES + STAGES * (2 * KV_BYTES + MASK_BYTES)] __attribute__((aligned(1024)));
  __local uint words[MAPS * MAP_WORDS] __attribute__((aligned(128)));
  __local int4 next_tile;
  __local ulong bars[2 + 4 * STAGES] __attribute__((aligned(16)));
  const uint at_q = SHARED(tiles), at_k = at_q + Q_BYTES, at_v = at_k + STAGES * KV_BYTES;
#if MASK_TILES
  const uint at_mask = at_v + STAGES * KV_BYTES;
#endif
  const uint full_q = SHARED(bars), empty_q = full_q + 8, full_k = full_q + 16, empty_k = full_k + 8 * STAGES;
  const uint full_v = empty_k + 8 * STAGES, empty_v = full_v + 8 * STAGES;
  const int item = get_local_id(0), warpgroup = item >> 7, lane = item & 31;
  const int queries = p.queries, keys = p.keys, heads = p.heads, all_heads = p.all_heads, bundle = p.bundle;
  const int row_tiles = p.row_tiles, count = p.tiles;
  if (item == 0) {
    barrier_init(full_q, 1);
    barrier_init(empty_q, 4 * WARPGROUPS);
    for (int i = 0; i < STAGES; ++i) {
      barrier_init(full_k + 8 * i, 1);
      barrier_init(empty_k + 8 * i, 4 * WARPGROUPS);
      barrier_init(full_v + 8 * i, 1);
      barrier_init(empty_v + 8 * i, 4 * WARPGROUPS);
    }
    barriers_made();
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int k_slot = 0, v_slot = 0;
  uint k_phase = 0, v_phase = 0, q_phase = 0;

  if (warpgroup == WARPGROUPS) {
    __global uint *map_q =
        (__global uint *)((__global char *)maps_base + maps_offset) + get_group_id(0) * MAPS * MAP_WORDS;
    __global uint *map_k = map_q + MAP_WORDS, *map_v = map_k + MAP_WORDS;
    const int groups = p.groups;
    if (item < WARPGROUPS * 128 + 32) {
      MAP_OF(p.query, words, map_q, query_base, query_offset, p.queries, BM)
      MAP_OF(p.key, words + MAP_WORDS, map_k, key_base, key_offset, p.keys, BN)
      MAP_OF(p.value, words + 2 * MAP_WORDS, map_v, value_base, value_offset, p.keys, BN)
#if MASK_TILES
      MASK_MAP(words + 3 * MAP_WORDS, map_v + MAP_WORDS)
#endif
    }
    SET_REGISTERS(dec, LOADER_REGISTERS)
    if (item == WARPGROUPS * 128) {
      for (int round = 0;; ++round) {
        const int index = tile_number(AT(u32, counter_base, counter_offset), round);
        const Tile t = tile_at(index, bundle, row_tiles, heads, all_heads, CAUSAL, BM);
        barrier_wait(empty_q, q_phase ^ 1);
        q_phase ^= 1;
        PUBLISH_TILE(t, index < count, full_q)
        const int blocks = ((CAUSAL ? min(keys, t.first + BM) : keys) + BN - 1) / BN;
        const int key_head = t.head / groups;
        barrier_expect(full_q, Q_BYTES);
        UNROLL for (int i = 0; i < HALVES; ++i)
          copy_tile_4(at_q + i * BM * 128, map_q, i * 64, t.first, p.query.heads ? t.head : 0,
                      p.query.batches ? t.batch : 0, full_q);
        for (int n = blocks; n >= 0; --n) {
          if (n > 0) {
            const uint bar = full_k + 8 * k_slot;
            barrier_wait(empty_k + 8 * k_slot, k_phase ^ 1);
            barrier_expect(bar, KV_BYTES + MASK_EXPECTED);
            UNROLL for (int i = 0; i < HALVES; ++i)
              copy_tile_4(at_k + k_slot * KV_BYTES + i * BN * 128, map_k, i * 64, (n - 1) * BN,
                          p.key.heads ? key_head : 0, p.key.batches ? t.batch : 0, bar);
#if MASK_TILES
            UNROLL for (int i = 0; i < 2; ++i)
              COPY_MASK(at_mask + k_slot * MASK_BYTES + i * BM * 128, map_v + MAP_WORDS,
                        (n - 1) * BN + i * 64, t.first, t.head, t.batch, bar)
#endif
            NEXT_SLOT(k_slot, k_phase)
          }
          if (n < blocks) {
            const uint bar = full_v + 8 * v_slot;
            barrier_wait(empty_v + 8 * v_slot, v_phase ^ 1);
            barrier_expect(bar, KV_BYTES);
            UNROLL for (int i = 0; i < HALVES; ++i)
              copy_tile_4(at_v + v_slot * KV_BYTES + i * BN * 128, map_v, i * 64, n * BN,
                          p.value.heads ? key_head : 0, p.value.batches ? t.batch : 0, bar);
            NEXT_SLOT(v_slot, v_phase)
          }
        }
      }
    }
    return;
  }

  SET_REGISTERS(inc, MULTIPLIER_REGISTERS)
  const int warp = (item >> 5) & 3, quarter = lane & 3;
  const ulong q_matrix = matrix_at(at_q + warpgroup * 8192, 16, 1024), k_matrix = matrix_at(at_k, 16, 1024);
  const ulong v_matrix = matrix_at(at_v, BN * 128, 1024);
  const float scale = as_float((uint)p.scale), unit = UNIT(scale);
#if MASK_TILES
  const uint own_mask = OWN_MASK_ROW(at_mask, warpgroup * 64 + warp * 16);
#endif
  const float kept_scale = DROPOUT ? as_float((uint)p.scores.kept_scale) : 1.0f;
  float s[BN / 2], o[DEPTH / 2];
  uint w[BN / 4];
  if (warpgroup == 1) { YOUR_TURN }
  for (;;) {
    barrier_wait(full_q, q_phase);
    q_phase ^= 1;
    TAKE_TILE(t)
    const int blocks = ((CAUSAL ? min(keys, t.first + BM) : keys) + BN - 1) / BN;
    const int row = t.first + warpgroup * 64 + warp * 16 + (lane >> 2);
    const int end0 = CAUSAL ? min(keys, row + 1) : keys, end1 = CAUSAL ? min(keys, row + 9) : keys;
#if ITEMS_READ_MASK
    __global const STYPE(M) *mask = MASK_OF(p, t.batch, t.head);
#endif
#if DROPOUT
    const ulong first_kept = first_across_keys(p.scores, (long)t.batch * heads + t.head, row);
#endif
    float top0 = -INFINITY, top1 = -INFINITY, total0 = 0.0f, total1 = 0.0f, factor0, factor1;
    UNROLL for (int i = 0; i < DEPTH / 2; ++i) o[i] = 0.0f;
    int n = blocks - 1;
    barrier_wait(full_k + 8 * k_slot, k_phase);
    MY_TURN
    SCORES(s, q_matrix, k_matrix + k_slot * (KV_BYTES >> 4));
    YOUR_TURN
    {
      DRAW_DROPOUT
      ALL_DONE(64, s);
      FINISH_SCORES(CAUSAL || (n + 1) * BN > keys)
      SOFTEN
      PACK_WEIGHTS
      --n;
    }
#if CAUSAL && !ITEMS_READ_MASK
    for (; n >= 0 && (n + 1) * BN > t.first + 1; --n) BLOCK(1)
#endif
    for (; n >= 0; --n) BLOCK(0)
    RELEASE(empty_q)
    barrier_wait(full_v + 8 * v_slot, v_phase);
    ADD_ROWS(o, w, v_matrix + v_slot * (KV_BYTES >> 4));
    ALL_DONE(OUTPUTS, o);
    RELEASE(empty_v + 8 * v_slot)
    NEXT_SLOT(v_slot, v_phase)

    UNROLL for (int h = 0; h < 2; ++h) {
      float total = h ? total1 : total0;
      total += from_neighbour_float(total, 1);
      total += from_neighbour_float(total, 2);
      const float part = total > 0.0f ? kept_scale / total : 0.0f;
      const int r = row + h * 8;
      if (p.sums && quarter == 0 && r < queries)
        AT(f32, sums_base, sums_offset)[((size_t)t.batch * heads + t.head) * queries + r] =
            LOG_SUM(h ? top1 : top0, unit, fast_log2(total));
      __global ushort *to = (__global ushort *)((__global char *)out_base + out_offset) +
                            t.batch * p.out.batch + t.head * p.out.head + r * p.out.row;
      STORE_ROW(o, part, to, r < queries)
    }
  }
}
