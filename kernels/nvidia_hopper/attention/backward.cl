// Attention backward on Hopper's matrix units. The weights P are recomputed from the rows' log-sum-exp: S =
// K0 S0^T and E = K1 S1^T from operands of which a work-group keeps rows (K0, K1) and others that it goes
// through (S0, S1) are turned into P and its gradient dS in registers, and multiplied by the streamed
// operands. Roles of warpgroups, tiles and tensor maps are those of forward.cl.
// PASS 0: keys and values are kept, queries and gradients of the result streamed, of all heads that share the
// key: P^T, dS^T; dV += P^T dO, dK += dS^T Q.
// PASS 1: queries and gradients of the result are kept: dQ += dS K.
// PASS 2 is pass 0, and adds dS K to sums of floats in memory, for backward_query.cl: five products in all
// instead of seven, but added in any order. dS goes through local memory, and is multiplied one block later,
// so that neither warpgroup waits for the other's half of it. The copy engine adds to the sums, on behalf of
// items of warps that would be idle.
// Defines: PASS; TYPE f16 or bf16; DEPTH 64 or 128; BN streamed rows in a block, 64 or 128; STAGES;
// LOADER_REGISTERS and MULTIPLIER_REGISTERS of an item; CAUSAL; MASK, M, DROPOUT (attention.h), MASK_TILES
// (attention_mask.h).
#define KEYS_KEPT (PASS != 1)
#define ADDS_QUERY (PASS == 2)
#define WARPGROUPS 2
#define BM (64 * WARPGROUPS)
#define MASK_ROWS_OF_BOX (KEYS_KEPT ? BN : BM)
#include "attention_backward_scores.h"
#include "attention_query_sums.h"

#define HALVES (DEPTH / 64)
#define KEPT_BYTES (HALVES * BM * 128)
#define BLOCK_BYTES (HALVES * BN * 128)  // of one of the two streamed operands
#define SCORE_BYTES (ADDS_QUERY ? BM * BN * 2 : 0)  // of one of two buffers of dS, blocks of 64 queries
#define SUM_BYTES (QUERY_COUNT * 512)    // what a warpgroup adds to the sums of a block
#define ITEMS (128 * (WARPGROUPS + 1))
#define STEP(bytes) ((bytes) >> 4)       // in descriptors of matrices

// The blocks that a tile at `first` goes through, those of them with masked scores, which come first, and
// whether the last tiles go through the most. FOR_BLOCKS has their first rows, in order.
#if KEYS_KEPT
#define LONGEST_LAST 0
#define FIRST_BLOCK(first) (CAUSAL ? (first) / BN : 0)
#define BLOCKS(first) max(0, (streamed + BN - 1) / BN - FIRST_BLOCK(first))
#define BLOCK_AT(k) (start + (k))
#define FOR_BLOCKS(first, of) for (int first = FIRST_BLOCK(of) * BN; first < streamed; first += BN)
#define IS_MASKED(n) (CAUSAL && (n) * BN < t.first + BM - 1)
#else
#define LONGEST_LAST CAUSAL
#define FIRST_BLOCK(first) 0
#define BLOCKS(first) (((CAUSAL ? min(streamed, (first) + BM) : streamed) + BN - 1) / BN)
#define BLOCK_AT(k) (blocks - 1 - (k))
#define FOR_BLOCKS(first, of) for (int first = (BLOCKS(of) - 1) * BN; first >= 0; first -= BN)
#define IS_MASKED(n) ((CAUSAL && ((n) + 1) * BN > t.first + 1) || ((n) + 1) * BN > streamed)
#endif

// No product may be in flight at the end: see forward.cl. dQ's accumulators are free before those of E begin.
#define BLOCK(MASKED)                                        \
  {                                                          \
    barrier_wait(full + 8 * slot, phase);                    \
    ADD_PREVIOUS_BLOCK_TO_QUERY                                    \
    SCORES(e, kept1, along1 + slot * STEP(2 * BLOCK_BYTES)); \
    DRAW_DROPOUT                                             \
    ALL_BUT_ONE_DONE_OF(SCORE_COUNT, s);                     \
    MASK_BLOCK(MASKED, BLOCK_AT(k))                          \
    WEIGHTS                                                  \
    GRADIENTS                                                \
    STORE_SCORE_GRADIENTS                                             \
    ADD_ROWS(d0, g, across0 + slot * STEP(2 * BLOCK_BYTES)); \
    WAIT_FOR_PRODUCTS                                                    \
    RELEASE(empty + 8 * slot)                                \
    NEXT_SLOT(slot, phase)                                   \
  }

// Parameters: the gradients; kept and streamed operands; statistics of backward_rows.cl; the sums of dQ; a
// counter of tiles, which begins at 0; room for MAPS tensor maps per work-group.
#define MAPS (4 + MASK_TILES)
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_hopper_backward(__global void *out0_base, ulong out0_offset, __global void *out1_base,
                                        ulong out1_offset, __global const void *kept0_base,
                                        ulong kept0_offset, __global const void *kept1_base,
                                        ulong kept1_offset, __global const void *streamed0_base,
                                        ulong streamed0_offset, __global const void *streamed1_base,
                                        ulong streamed1_offset, __global const void *rows_base,
                                        ulong rows_offset, __global const void *mask_base, ulong mask_offset,
                                        __global void *sums_base, ulong sums_offset,
                                        __global void *counter_base, ulong counter_offset,
                                        __global void *maps_base, ulong maps_offset,
                                        const AttentionHopperBackwardParams p) {
  __local uchar tiles[2 * KEPT_BYTES + STAGES * (2 * BLOCK_BYTES + MASK_BYTES) + 2 * SCORE_BYTES +
                      (ADDS_QUERY ? WARPGROUPS * SUM_BYTES : 0)] __attribute__((aligned(1024)));
  __local float statistics[KEYS_KEPT ? 2 * STAGES * BN : 1] __attribute__((aligned(128)));
  __local uint words[MAPS * MAP_WORDS] __attribute__((aligned(128)));
  __local int4 next_tile;
  __local ulong bars[8 + 2 * STAGES] __attribute__((aligned(16)));
  const uint at_kept = SHARED(tiles), at_streamed = at_kept + 2 * KEPT_BYTES,
             at_statistics = SHARED(statistics);
  const uint full_kept = SHARED(bars), empty_kept = full_kept + 8, full = full_kept + 16,
             empty = full + 8 * STAGES, full_scores = empty + 8 * STAGES, full_sums = full_scores + 16,
             empty_sums = full_sums + 16;
  const uint at_scores = at_streamed + 2 * STAGES * BLOCK_BYTES, at_sums = at_scores + 2 * SCORE_BYTES;
#if MASK_TILES
  const uint at_mask = ADDS_QUERY ? at_sums + WARPGROUPS * SUM_BYTES : at_scores;
#endif
  const int item = get_local_id(0), warpgroup = item >> 7, lane = item & 31;
  const int streamed = p.streamed_rows;
  __global const float *rows = AT_CONST(f32, rows_base, rows_offset);
  if (item == 0) {
    barrier_init(full_kept, 1);
    barrier_init(empty_kept, 4 * WARPGROUPS + ADDS_QUERY * WARPGROUPS);
    for (int i = 0; i < 2; ++i) {
      barrier_init(full_scores + 8 * i, 4 * WARPGROUPS);
      barrier_init(full_sums + 8 * i, 4);
      barrier_init(empty_sums + 8 * i, 1);
    }
    for (int i = 0; i < STAGES; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, 4 * WARPGROUPS);
    }
    barriers_made();
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int slot = 0;
  uint phase = 0, kept_phase = 0;
#define PASSES (KEYS_KEPT ? (int)p.groups : 1)  // query heads that a tile of keys goes through

  if (warpgroup == WARPGROUPS) {
    __global uint *map =
        (__global uint *)((__global char *)maps_base + maps_offset) + get_group_id(0) * MAPS * MAP_WORDS;
    if (item < WARPGROUPS * 128 + 32) {
      MAP_OF(p.kept[0], words, map, kept0_base, kept0_offset, p.kept_rows, BM)
      MAP_OF(p.kept[1], words + MAP_WORDS, map + MAP_WORDS, kept1_base, kept1_offset, p.kept_rows, BM)
      MAP_OF(p.streamed[0], words + 2 * MAP_WORDS, map + 2 * MAP_WORDS, streamed0_base, streamed0_offset,
             p.streamed_rows, BN)
      MAP_OF(p.streamed[1], words + 3 * MAP_WORDS, map + 3 * MAP_WORDS, streamed1_base, streamed1_offset,
             p.streamed_rows, BN)
#if MASK_TILES
      MASK_MAP(words + 4 * MAP_WORDS, map + 4 * MAP_WORDS)
#endif
    }
    SET_REGISTERS(dec, LOADER_REGISTERS)
    if (item == WARPGROUPS * 128) {
      for (int round = 0;; ++round) {
        const int index = tile_number(AT(u32, counter_base, counter_offset), round);
        const Tile t = tile_at(index, p.bundle, p.row_tiles, p.heads, p.all_heads, LONGEST_LAST, BM);
        barrier_wait(empty_kept, kept_phase ^ 1);
        kept_phase ^= 1;
        PUBLISH_TILE(t, index < (int)p.tiles, full_kept)
        barrier_expect(full_kept, 2 * KEPT_BYTES);
        UNROLL for (int i = 0; i < 2 * HALVES; ++i) {
          const int one = i / HALVES;
          copy_tile_4(at_kept + i * BM * 128, map + one * MAP_WORDS, i % HALVES * 64, t.first,
                      p.kept[one].heads ? t.head : 0, p.kept[one].batches ? t.batch : 0, full_kept);
        }
        for (int pass = 0; pass < PASSES; ++pass) {
          const int head = KEYS_KEPT ? t.head * (int)p.groups + pass : t.head / (int)p.groups;
          FOR_BLOCKS(first, t.first) {
            const uint bar = full + 8 * slot, to = at_streamed + slot * 2 * BLOCK_BYTES;
            barrier_wait(empty + 8 * slot, phase ^ 1);
            barrier_expect(bar, 2 * BLOCK_BYTES + (KEYS_KEPT ? 8 * BN : 0) + MASK_EXPECTED);
            UNROLL for (int i = 0; i < 2 * HALVES; ++i) {
              const int one = i / HALVES;
              copy_tile_4(to + i * BN * 128, map + (2 + one) * MAP_WORDS, i % HALVES * 64, first,
                          p.streamed[one].heads ? head : 0, p.streamed[one].batches ? t.batch : 0, bar);
            }
#if KEYS_KEPT
            const size_t at =
                (size_t)(t.batch * (int)(p.heads * p.groups) + head) * (uint)p.padded + (uint)first;
            copy_line(at_statistics + slot * 8 * BN, rows + 2 * at, 8 * BN, bar);
#endif
#if MASK_TILES
            UNROLL for (int i = 0; i < (KEYS_KEPT ? BM : BN) / 64; ++i)
              COPY_MASK(at_mask + slot * MASK_BYTES + i * MASK_ROWS_OF_BOX * 128, map + 4 * MAP_WORDS,
                        (KEYS_KEPT ? t.first : first) + i * 64, KEYS_KEPT ? first : t.first,
                        KEYS_KEPT ? head : t.head, t.batch, bar)
#endif
            NEXT_SLOT(slot, phase)
          }
        }
      }
    }
#if ADDS_QUERY
    // For each warpgroup an item of another warp adds what that leaves of dQ to the sums.
    else if ((item & 31) == 0 && item <= WARPGROUPS * (128 + 32)) {
      const int of = (item >> 5) - 4 * WARPGROUPS - 1;
      const uint own_sums = at_sums + of * SUM_BYTES, own_full = full_sums + 8 * of;
      uint sums_phase = 0;
      for (;;) {
        barrier_wait(full_kept, kept_phase);
        kept_phase ^= 1;
        TAKE_TILE(t)
        barrier_arrive(empty_kept);
        const int start = FIRST_BLOCK(t.first);
        __global float *to =
            AT(f32, sums_base, sums_offset) + of * (SUM_BYTES / 4) +
            ((long)((t.batch * (int)p.heads + t.head) * (int)p.groups) * p.padded + start * BN) * DEPTH;
        for (int pass = 0; pass < PASSES; ++pass) {
          __global float *at = to;
          for (int k = BLOCKS(t.first); k > 0; --k) {
            barrier_wait(own_full, sums_phase);
            sums_phase ^= 1;
            add_line(at, own_sums, SUM_BYTES);
            at += BN * DEPTH;
            copies_read();
            barrier_arrive(own_full + 8 * WARPGROUPS);
          }
          to += p.padded * DEPTH;
        }
      }
      copies_done();
    }
#endif
    return;
  }

  SET_REGISTERS(inc, MULTIPLIER_REGISTERS)
  const int warp = (item >> 5) & 3, quarter = lane & 3;
  const ulong kept0 = matrix_at(at_kept + warpgroup * 8192, 16, 1024);
  const ulong kept1 = matrix_at(at_kept + KEPT_BYTES + warpgroup * 8192, 16, 1024);
  const ulong along0 = matrix_at(at_streamed, 16, 1024),
              along1 = matrix_at(at_streamed + BLOCK_BYTES, 16, 1024);
  const ulong across0 = matrix_at(at_streamed, BN * 128, 1024),
              across1 = matrix_at(at_streamed + BLOCK_BYTES, BN * 128, 1024);
  const float scale = as_float((uint)p.score_scale), unit = UNIT(scale);
#if MASK_TILES
  const uint own_mask = KEYS_KEPT ? OWN_MASK_COLUMN(at_mask + warpgroup * (BN * 128), warp * 16)
                                  : OWN_MASK_ROW(at_mask, warpgroup * 64 + warp * 16);
#endif
  const float kept_scale = DROPOUT ? as_float((uint)p.scores.kept_scale) : 1.0f;
  float s[SCORE_COUNT], e[SCORE_COUNT], d0[OUTPUTS];
  uint w[BN / 4], g[BN / 4];
#if KEYS_KEPT
  float d1[OUTPUTS];
#endif
#if ADDS_QUERY
  const uint own_scores = at_scores + (warpgroup * 64 + warp * 16 + (lane >> 2)) * 128 + quarter * 4,
             own_sums = at_sums + warpgroup * SUM_BYTES + (item & 127) * 16;
  const ulong scores_matrix = matrix_at(at_scores + (BN == 128 ? warpgroup * (BM * 128) : 0), BM * 128, 1024);
  const ulong keys_matrix = matrix_at(
      at_kept + (BN == 128 ? 0 : warpgroup * (DEPTH == 128 ? BM * 128 : 64)), BM * 128, 1024);
  uint buffer = 0, scores_phase = 0, sums_phase = 0;
#endif
  for (;;) {
    barrier_wait(full_kept, kept_phase);
    kept_phase ^= 1;
    TAKE_TILE(t)
    const int row = t.first + warpgroup * 64 + warp * 16 + (lane >> 2);
    const int start = FIRST_BLOCK(t.first), blocks = BLOCKS(t.first);
    UNROLL for (int i = 0; i < OUTPUTS; ++i) d0[i] = 0.0f;
#if ADDS_QUERY
    uint has_scores = 0;
#endif
#if KEYS_KEPT
    UNROLL for (int i = 0; i < OUTPUTS; ++i) d1[i] = 0.0f;
#else
    __global const float *own =
        rows + 2 * ((size_t)(t.batch * (int)p.heads + t.head) * (uint)p.padded + (row & ~63)) + (row & 63);
    const float sum0 = own[0], sum1 = own[8], delta0 = own[64], delta1 = own[72];
    const int end0 = CAUSAL ? min(streamed, row + 1) : streamed,
              end1 = CAUSAL ? min(streamed, row + 9) : streamed;
#endif
    for (int pass = 0; pass < PASSES; ++pass) {
#if ITEMS_READ_MASK || DROPOUT
      const int head = KEYS_KEPT ? t.head * (int)p.groups + pass : t.head;
#endif
#if ITEMS_READ_MASK
      __global const STYPE(M) *mask = MASK_OF(p, t.batch, head);
#endif
#if DROPOUT
      const long all_heads = KEYS_KEPT ? p.heads * p.groups : p.heads;
      const long matrix = t.batch * all_heads + head;
      const ulong first_kept = FIRST_KEPT;
#endif
      int k = 0;
#if !ITEMS_READ_MASK
      for (; k < blocks && IS_MASKED(BLOCK_AT(k)); ++k) BLOCK(1)
#endif
      for (; k < blocks; ++k) BLOCK(0)
    }
    LAST_QUERY
    RELEASE(empty_kept)
    UNROLL for (int h = 0; h < 2; ++h) {
      const int r = row + h * 8;
      const bool inside = r < (int)p.kept_rows;
#define GRADIENT_AT(i, base, offset)                                                   \
  (__global ushort *)((__global char *)(base) + (offset)) + t.batch * p.out[i].batch + \
      t.head * p.out[i].head + r * p.out[i].row
      __global ushort *to0 = GRADIENT_AT(0, out0_base, out0_offset);
      STORE_ROW(d0, as_float((uint)p.scale), to0, inside && p.wanted[0])
#if KEYS_KEPT
      __global ushort *to1 = GRADIENT_AT(1, out1_base, out1_offset);
      STORE_ROW(d1, kept_scale, to1, inside && p.wanted[1])
#endif
    }
  }
}
