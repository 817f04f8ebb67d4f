// Attention backward on Hopper's matrix units, in two passes without atomics. Each recomputes the weights P
// from the rows' log-sum-exp. PASS 0: a work-group keeps rows of key and value and goes through queries and
// the gradient of the result, of all heads that share the key: P^T, dP^T; dV += P^T dO, dK += dS^T Q. PASS 1:
// it keeps query and gradient and goes through key and value: P, dP; dQ += dS K. Both compute S = K0 S0^T and
// E = K1 S1^T from the kept operands (K0, K1) and the streamed ones (S0, S1), turn them into P and dS in
// registers, and multiply these by the streamed operands. Roles of warpgroups, tiles and tensor maps are
// those of forward.cl.
// Defines: PASS; TYPE f16 or bf16; DEPTH 64 or 128; BN streamed rows in a block, 64 or 128; STAGES; CAUSAL;
// MASK, M, DROPOUT (attention.h).
#include "attention_hopper.h"

#define WARPGROUPS 2
#define BM (64 * WARPGROUPS)
#define HALVES (DEPTH / 64)
#define KEPT_BYTES (HALVES * BM * 128)
#define BLOCK_BYTES (HALVES * BN * 128)  // of one of the two streamed operands
#define ITEMS (128 * (WARPGROUPS + 1))
#define OUTPUTS CAT(OUTPUTS_, DEPTH)  // accumulators of a result
#define OUTPUTS_64 32
#define OUTPUTS_128 64
#if BN == 64
#define SCORE_COUNT 32
#define SCORE_SHAPE "m64n64k16"
#else
#define SCORE_COUNT 64
#define SCORE_SHAPE "m64n128k16"
#endif

// s = 64 kept rows at `a` times BN streamed rows at `b`, transposed; the second 64 columns are in the next
// box.
#define SCORE_STEP(a, b, add) PRODUCT_STEP(SCORE_COUNT, SCORE_SHAPE, TYPES, a, b, add, "0, 0")
#if DEPTH == 64
#define MORE_SCORE_STEPS
#elif BN == 64
#define MORE_SCORE_STEPS                                            \
  SCORE_STEP("1024", "512", "one") SCORE_STEP("1026", "514", "one") \
  SCORE_STEP("1028", "516", "one") SCORE_STEP("1030", "518", "one")
#else
#define MORE_SCORE_STEPS                                              \
  SCORE_STEP("1024", "1024", "one") SCORE_STEP("1026", "1026", "one") \
  SCORE_STEP("1028", "1028", "one") SCORE_STEP("1030", "1030", "one")
#endif
#define SCORES(s, a, b)                                                                                      \
  asm volatile(PRODUCT_TEMPORARIES SCORE_STEP("0", "0", "zero") SCORE_STEP("2", "2", "one")                  \
                   SCORE_STEP("4", "4", "one") SCORE_STEP("6", "6", "one") MORE_SCORE_STEPS PRODUCT_END_TEXT \
               : CAT(LIST_, SCORE_COUNT)("=f", s)                                                            \
               : "l"(a), "l"(b)                                                                              \
               : "memory")
// d += w (64 x BN, in registers) times BN streamed rows at `b`: 16 rows of 128 bytes per step.
#if DEPTH == 64
#define ROW_SHAPE "m64n64k16"
#else
#define ROW_SHAPE "m64n128k16"
#endif
#if DEPTH == 64 && BN == 64
#define ROWS_OPERAND "%48"
#elif DEPTH == 64
#define ROWS_OPERAND "%64"
#elif BN == 64
#define ROWS_OPERAND "%80"
#else
#define ROWS_OPERAND "%96"
#endif
#define ROW_STEP(k, offset) PRODUCT_STEP_OF_REGISTERS(OUTPUTS, ROW_SHAPE, TYPES, k, ROWS_OPERAND, offset, "1")
#if BN == 64
#define WORD_LIST LIST_16
#define MORE_ROW_STEPS
#else
#define WORD_LIST LIST_32
#define MORE_ROW_STEPS ROW_STEP(4, "512") ROW_STEP(5, "640") ROW_STEP(6, "768") ROW_STEP(7, "896")
#endif
#define ADD_ROWS(d, w, b)                                                                                    \
  asm volatile(PRODUCT_TEMPORARIES ROW_STEP(0, "0") ROW_STEP(1, "128") ROW_STEP(2, "256") ROW_STEP(3, "384") \
                   MORE_ROW_STEPS PRODUCT_END_TEXT                                                           \
               : CAT(TIES_, OUTPUTS)(d)                                                                      \
               : WORD_LIST("r", w), "l"(b)                                                                   \
               : "memory")

// The blocks that a tile at `first` goes through, and those of them with masked scores, which come first.
#if PASS == 0
#define FIRST_BLOCK(first) (CAUSAL ? (first) / BN : 0)
#define BLOCKS(first) max(0, (streamed + BN - 1) / BN - FIRST_BLOCK(first))
#define BLOCK_AT(k) (start + (k))
#define IS_MASKED(n) (CAUSAL && (n) * BN < t.first + BM - 1)
#else
#define FIRST_BLOCK(first) 0
#define BLOCKS(first) (((CAUSAL ? min(streamed, (first) + BM) : streamed) + BN - 1) / BN)
#define BLOCK_AT(k) (blocks - 1 - (k))
#define IS_MASKED(n) ((CAUSAL && ((n) + 1) * BN > t.first + 1) || ((n) + 1) * BN > streamed)
#endif

// This item holds columns 8 j + 2 quarter and the next, for all j, of rows `row` (numbers 4 j, 4 j + 1) and
// row + 8. Statistics of queries are in local memory in pass 0, in registers in pass 1: for each 64 queries
// 64 sums, then 64 deltas.
#if PASS == 0
#define STATISTICS_AT(j, which) \
  *(__local float2 *)(statistics + slot * 2 * BN + (j) / 8 * 128 + (j) % 8 * 8 + (which) + quarter * 2)
#define DRAIN            \
  ALL_DONE(OUTPUTS, d0); \
  ALL_DONE(OUTPUTS, d1);
#define MASK_CAUSAL(n)                                                 \
  {                                                                    \
    const int less = row - (n) * BN - quarter * 2;                     \
    UNROLL for (int j = 0; j < BN / 8; ++j) {                          \
      s[j * 4] = j * 8 >= less ? s[j * 4] : -INFINITY;                 \
      s[j * 4 + 1] = j * 8 + 1 >= less ? s[j * 4 + 1] : -INFINITY;     \
      s[j * 4 + 2] = j * 8 >= less + 8 ? s[j * 4 + 2] : -INFINITY;     \
      s[j * 4 + 3] = j * 8 + 1 >= less + 8 ? s[j * 4 + 3] : -INFINITY; \
    }                                                                  \
  }
// The mask of a head, where rows are keys.
#define MASK_KEYS(n)                                                                                     \
  {                                                                                                      \
    UNROLL for (int h = 0; h < 2; ++h) {                                                                 \
      __global const STYPE(M) *line_ = mask + min(row + h * 8, (int)p.kept_rows - 1) * p.scores.mask_column; \
      UNROLL for (int j = 0; j < BN / 8; ++j) {                                                          \
        const int x_ = min((n) * BN + quarter * 2 + j * 8, streamed - 1);                                \
        const float2 m_ = (float2)((float)LOAD(M, line_, x_ * p.scores.mask_row),                        \
                                   (float)LOAD(M, line_, min(x_ + 1, streamed - 1) * p.scores.mask_row)); \
        MASK_PAIR(s[j * 4 + h * 2], s[j * 4 + h * 2 + 1], scale_log2, m_)                                \
      }                                                                                                  \
    }                                                                                                    \
  }
#if MASK
#define MASK_BLOCK(masked, n) \
  {                           \
    MASK_KEYS(n)              \
    if (CAUSAL) MASK_CAUSAL(n) \
  }
#else
#define MASK_BLOCK(masked, n) \
  if (masked) MASK_CAUSAL(n)
#endif
#define FIRST_KEPT(n)                                                                                       \
  first_along_keys(p.scores, head_place + (n) * BN + quarter * 2, t.first + warpgroup * 64 + warp * 16)
#define DRAW_DROPOUT DRAW_BLOCK(kept_along_keys, FIRST_KEPT(BLOCK_AT(k)), 8 * p.scores.row_counters)
#if DROPOUT
#define PACK_WEIGHTS                                                                     \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                                              \
    const uint bits = KEPT_BITS(j);                                                      \
    w[2 * j] = PACK(bits & 1 ? s[j * 4] : 0.0f, bits & 2 ? s[j * 4 + 1] : 0.0f);         \
    w[2 * j + 1] = PACK(bits & 4 ? s[j * 4 + 2] : 0.0f, bits & 8 ? s[j * 4 + 3] : 0.0f); \
  }
#else
#define PACK_WEIGHTS UNROLL for (int i = 0; i < BN / 4; ++i) w[i] = PACK(s[2 * i], s[2 * i + 1]);
#endif
#define WEIGHTS                                                      \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                          \
    const float2 sum = STATISTICS_AT(j, 0);                          \
    s[j * 4] = fast_exp2(fma(s[j * 4], unit, -sum.x));               \
    s[j * 4 + 1] = fast_exp2(fma(s[j * 4 + 1], unit, -sum.y));       \
    s[j * 4 + 2] = fast_exp2(fma(s[j * 4 + 2], unit, -sum.x));       \
    s[j * 4 + 3] = fast_exp2(fma(s[j * 4 + 3], unit, -sum.y));       \
  }                                                                  \
  PACK_WEIGHTS                                                       \
  ADD_ROWS(d1, w, across1 + slot * (2 * BLOCK_BYTES >> 4));                    \
  ALL_BUT_ONE_DONE_OF(SCORE_COUNT, e);
#define GRADIENTS                                                                                          \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                                                                \
    const float2 delta = STATISTICS_AT(j, 64);                                                             \
    DROP_GRADIENTS(j)                                                                                      \
    g[j * 2] = PACK(s[j * 4] * (e[j * 4] - delta.x), s[j * 4 + 1] * (e[j * 4 + 1] - delta.y));             \
    g[j * 2 + 1] = PACK(s[j * 4 + 2] * (e[j * 4 + 2] - delta.x), s[j * 4 + 3] * (e[j * 4 + 3] - delta.y)); \
  }
#else
#define DRAIN ALL_DONE(OUTPUTS, d0);
#if MASK
#define MASK_BLOCK(masked, n) ADD_MASK(n, mask, (int)p.kept_rows, streamed, scale_log2)
#else
#define MASK_BLOCK(masked, n) \
  if (masked) MASK_ROWS(n)
#endif
#define FIRST_KEPT(n) (first_across_keys(p.scores, head_place + row) + (ulong)((n) * (BN / 8)))
#define DRAW_DROPOUT DRAW_BLOCK(kept_across_keys, FIRST_KEPT(BLOCK_AT(k)), 1)
#define WEIGHTS                                               \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                   \
    s[j * 4] = fast_exp2(fma(s[j * 4], unit, -sum0));         \
    s[j * 4 + 1] = fast_exp2(fma(s[j * 4 + 1], unit, -sum0)); \
    s[j * 4 + 2] = fast_exp2(fma(s[j * 4 + 2], unit, -sum1)); \
    s[j * 4 + 3] = fast_exp2(fma(s[j * 4 + 3], unit, -sum1)); \
  }                                                           \
  ALL_DONE(SCORE_COUNT, e);
#define GRADIENTS                                                                                        \
  UNROLL for (int j = 0; j < BN / 8; ++j) {                                                              \
    DROP_GRADIENTS(j)                                                                                    \
    g[j * 2] = PACK(s[j * 4] * (e[j * 4] - delta0), s[j * 4 + 1] * (e[j * 4 + 1] - delta0));             \
    g[j * 2 + 1] = PACK(s[j * 4 + 2] * (e[j * 4 + 2] - delta1), s[j * 4 + 3] * (e[j * 4 + 3] - delta1)); \
  }
#endif
#if DROPOUT
#define DROP_GRADIENTS(j)                                          \
  {                                                                \
    UNROLL for (int i = 0; i < 4; ++i) e[(j)*4 + i] *= kept_scale; \
    DROP(e, j, KEPT_BITS(j))                                       \
  }
#else
#undef DRAW_DROPOUT
#define DRAW_DROPOUT
#define DROP_GRADIENTS(j)
#endif
// No product may be in flight at the end: see forward.cl.
#define BLOCK(MASKED)                                         \
  {                                                           \
    barrier_wait(full + 8 * slot, phase);                     \
    SCORES(s, kept0, along0 + slot * (2 * BLOCK_BYTES >> 4)); \
    SCORES(e, kept1, along1 + slot * (2 * BLOCK_BYTES >> 4)); \
    DRAW_DROPOUT                                              \
    ALL_BUT_ONE_DONE_OF(SCORE_COUNT, s);                      \
    MASK_BLOCK(MASKED, BLOCK_AT(k))                           \
    WEIGHTS                                                   \
    GRADIENTS                                                 \
    ADD_ROWS(d0, g, across0 + slot * (2 * BLOCK_BYTES >> 4)); \
    DRAIN                                                     \
    RELEASE(empty + 8 * slot)                                 \
    NEXT_SLOT(slot, phase)                                    \
  }

// Parameters: the gradients; kept and streamed operands; statistics of hopper_backward_rows.cl; room for four
// tensor maps per work-group.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void attention_hopper_backward(__global void *out0_base, ulong out0_offset, __global void *out1_base,
                                        ulong out1_offset, __global const void *kept0_base,
                                        ulong kept0_offset, __global const void *kept1_base,
                                        ulong kept1_offset, __global const void *streamed0_base,
                                        ulong streamed0_offset, __global const void *streamed1_base,
                                        ulong streamed1_offset, __global const void *rows_base,
                                        ulong rows_offset, __global const void *mask_base, ulong mask_offset,
                                        __global void *maps_base, ulong maps_offset,
                                        const AttentionHopperBackwardParams p) {
  __local uchar tiles[2 * KEPT_BYTES + 2 * STAGES * BLOCK_BYTES] __attribute__((aligned(1024)));
  __local float statistics[PASS == 0 ? 2 * STAGES * BN : 1] __attribute__((aligned(128)));
  __local uint words[4 * MAP_WORDS] __attribute__((aligned(128)));
  __local ulong bars[2 + 2 * STAGES] __attribute__((aligned(16)));
  const uint at_kept = SHARED(tiles), at_streamed = at_kept + 2 * KEPT_BYTES,
             at_statistics = SHARED(statistics);
  const uint full_kept = SHARED(bars), empty_kept = full_kept + 8, full = full_kept + 16,
             empty = full + 8 * STAGES;
  const int item = get_local_id(0), warpgroup = item >> 7, lane = item & 31;
  const int streamed = p.streamed_rows;
  __global const float *rows = AT_CONST(f32, rows_base, rows_offset);
  if (item == 0) {
    barrier_init(full_kept, 1);
    barrier_init(empty_kept, 4 * WARPGROUPS);
    for (int i = 0; i < STAGES; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, 4 * WARPGROUPS);
    }
    barriers_made();
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int slot = 0;
  uint phase = 0, kept_phase = 0;
#define TILE_AT(index) tile_at(index, p.bundle, p.row_tiles, p.heads, p.all_heads, CAUSAL && PASS == 1, BM)
#define PASSES (PASS == 0 ? (int)p.groups : 1)  // query heads that a tile of keys goes through

  if (warpgroup == WARPGROUPS) {
    __global uint *map =
        (__global uint *)((__global char *)maps_base + maps_offset) + get_group_id(0) * 4 * MAP_WORDS;
    if (item < WARPGROUPS * 128 + 32) {
      MAP_OF(p.kept[0], words, map, kept0_base, kept0_offset, p.kept_rows, BM)
      MAP_OF(p.kept[1], words + MAP_WORDS, map + MAP_WORDS, kept1_base, kept1_offset, p.kept_rows, BM)
      MAP_OF(p.streamed[0], words + 2 * MAP_WORDS, map + 2 * MAP_WORDS, streamed0_base, streamed0_offset,
             p.streamed_rows, BN)
      MAP_OF(p.streamed[1], words + 3 * MAP_WORDS, map + 3 * MAP_WORDS, streamed1_base, streamed1_offset,
             p.streamed_rows, BN)
    }
    asm volatile("//@ setmaxnreg.dec.sync.aligned.u32 24;\n" ::: "memory");
    if (item == WARPGROUPS * 128) {
      for (int round = 0, index = turn(0); index < (int)p.tiles; index = turn(++round)) {
        const Tile t = TILE_AT(index);
        barrier_wait(empty_kept, kept_phase ^ 1);
        kept_phase ^= 1;
        barrier_expect(full_kept, 2 * KEPT_BYTES);
        UNROLL for (int i = 0; i < 2 * HALVES; ++i) {
          const int one = i / HALVES;
          copy_tile_4(at_kept + i * BM * 128, map + one * MAP_WORDS, i % HALVES * 64, t.first,
                      p.kept[one].heads ? t.head : 0, p.kept[one].batches ? t.batch : 0, full_kept);
        }
        const int start = FIRST_BLOCK(t.first), blocks = BLOCKS(t.first);
        for (int pass = 0; pass < PASSES; ++pass) {
          const int head = PASS == 0 ? t.head * (int)p.groups + pass : t.head / (int)p.groups;
          for (int k = 0; k < blocks; ++k) {
            const int first = BLOCK_AT(k) * BN;
            const uint bar = full + 8 * slot, to = at_streamed + slot * 2 * BLOCK_BYTES;
            barrier_wait(empty + 8 * slot, phase ^ 1);
            barrier_expect(bar, 2 * BLOCK_BYTES + (PASS == 0 ? 8 * BN : 0));
            UNROLL for (int i = 0; i < 2 * HALVES; ++i) {
              const int one = i / HALVES;
              copy_tile_4(to + i * BN * 128, map + (2 + one) * MAP_WORDS, i % HALVES * 64, first,
                          p.streamed[one].heads ? head : 0, p.streamed[one].batches ? t.batch : 0, bar);
            }
#if PASS == 0
            const size_t at =
                (size_t)(t.batch * (int)(p.heads * p.groups) + head) * (uint)p.padded + (uint)first;
            copy_line(at_statistics + slot * 8 * BN, rows + 2 * at, 8 * BN, bar);
#endif
            NEXT_SLOT(slot, phase)
          }
        }
      }
    }
    return;
  }

  asm volatile("//@ setmaxnreg.inc.sync.aligned.u32 240;\n" ::: "memory");
  const int warp = (item >> 5) & 3, quarter = lane & 3;
  const ulong kept0 = matrix_at(at_kept + warpgroup * 8192, 16, 1024);
  const ulong kept1 = matrix_at(at_kept + KEPT_BYTES + warpgroup * 8192, 16, 1024);
  const ulong along0 = matrix_at(at_streamed, 16, 1024),
              along1 = matrix_at(at_streamed + BLOCK_BYTES, 16, 1024);
  const ulong across0 = matrix_at(at_streamed, BN * 128, 1024),
              across1 = matrix_at(at_streamed + BLOCK_BYTES, BN * 128, 1024);
  const float scale_log2 = as_float((uint)p.scale_log2), unit = UNIT(scale_log2);
  const float kept_scale = DROPOUT ? as_float((uint)p.scores.kept_scale) : 1.0f;
  float s[SCORE_COUNT], e[SCORE_COUNT], d0[OUTPUTS];
  uint w[BN / 4], g[BN / 4];
#if PASS == 0
  float d1[OUTPUTS];
#endif
  for (int round = 0, index = turn(0); index < (int)p.tiles; index = turn(++round)) {
    const Tile t = TILE_AT(index);
    const int row = t.first + warpgroup * 64 + warp * 16 + (lane >> 2);
    const int start = FIRST_BLOCK(t.first), blocks = BLOCKS(t.first);
    UNROLL for (int i = 0; i < OUTPUTS; ++i) d0[i] = 0.0f;
#if PASS == 0
    UNROLL for (int i = 0; i < OUTPUTS; ++i) d1[i] = 0.0f;
#else
    __global const float *own =
        rows + 2 * ((size_t)(t.batch * (int)p.heads + t.head) * (uint)p.padded + (row & ~63)) + (row & 63);
    const float sum0 = own[0], sum1 = own[8], delta0 = own[64], delta1 = own[72];
    const int end0 = CAUSAL ? min(streamed, row + 1) : streamed,
              end1 = CAUSAL ? min(streamed, row + 9) : streamed;
#endif
    barrier_wait(full_kept, kept_phase);
    kept_phase ^= 1;
    for (int pass = 0; pass < PASSES; ++pass) {
#if MASK || DROPOUT
      const int head = PASS == 0 ? t.head * (int)p.groups + pass : t.head;
#endif
#if MASK
      __global const STYPE(M) *mask = MASK_OF(p, t.batch, head);
#endif
#if DROPOUT
      const long all_heads = PASS == 0 ? p.heads * p.groups : p.heads;
      const long head_place = (t.batch * all_heads + head) * (PASS == 0 ? p.streamed_rows : p.kept_rows);
#endif
      int k = 0;
#if !MASK
      for (; k < blocks && IS_MASKED(BLOCK_AT(k)); ++k) BLOCK(1)
#endif
      for (; k < blocks; ++k) BLOCK(0)
    }
    RELEASE(empty_kept)
    UNROLL for (int h = 0; h < 2; ++h) {
      const int r = row + h * 8;
      const bool inside = r < (int)p.kept_rows;
#define GRADIENT_AT(i, base, offset)                                                   \
  (__global ushort *)((__global char *)(base) + (offset)) + t.batch * p.out[i].batch + \
      t.head * p.out[i].head + r * p.out[i].row
      __global ushort *to0 = GRADIENT_AT(0, out0_base, out0_offset);
      STORE_ROW(d0, as_float((uint)p.scale), to0, inside && p.wanted[0])
#if PASS == 0
      __global ushort *to1 = GRADIENT_AT(1, out1_base, out1_offset);
      STORE_ROW(d1, kept_scale, to1, inside && p.wanted[1])
#endif
    }
  }
}
