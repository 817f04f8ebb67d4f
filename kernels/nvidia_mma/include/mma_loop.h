// The loop along k of a tile (mma_tile.h). Whoever includes this says before where operands come from: a type
// Operands and, where copies need no registers (ASYNC), copy_operands(), which copies an item's chunks of the
// next buffer, else read_operands() and write_operands(), which do it in two steps. WHOLE_BUFFERS(o): how
// many of the buffers, from the first, have no chunk that ends early or does not exist, the same for all
// items. Their copies have no conditions, so that the compiler spreads them among the products.
#ifndef OCLTENSOR_MMA_LOOP_H
#define OCLTENSOR_MMA_LOOP_H

// `row` and `column` are where the warp's results begin in the tile.
#define LOAD_FRAGMENTS(f, stage, s)         \
  UNROLL_ON_DEVICE for (int q_ = 0; q_ < LOADS; ++q_)  \
    load_fragment(tiles, &(f), BUFFER(stage), row, column, s, lane, q_);
#if AHEAD && FRAGMENTS_M + FRAGMENTS_N / 2 != FRAGMENTS_N
#error "a load for each column fragment is ahead"
#endif
#define NEXT(stage) ((stage) + 1 == STAGES ? 0 : (stage) + 1)

// The oldest buffer has arrived, and nobody reads the one before it any more.
#define ARRIVED               \
  WAIT_FOR_COPIES(STAGES - 2) \
  barrier(CLK_LOCAL_MEM_FENCE);
#define BUFFER(stage) (ring + (stage) * STAGE_BYTES)

#if ASYNC
#if AHEAD
#define FRAGMENTS_HELD 2
#else
#define FRAGMENTS_HELD 1
#endif
// Multiplies buffer `stage`. Operands of a later one are copied to buffer `free_stage` if it `copies` at all;
// `whole`: none of their chunks ends early or does not exist.
INLINE void sum_buffer(__local uchar *tiles, sum4_t d[][FRAGMENTS_M], Fragments *f, Operands *o, int stage,
                       int free_stage, bool copies, bool whole, int row, int column) {
  const uint ring = PLACE(tiles);
  const int lane = get_local_id(0) & 31;
#if !AHEAD
  ARRIVED
#endif
  if (copies) copy_operands(tiles, BUFFER(free_stage), o, whole);
  COMMIT_COPIES
  UNROLL_ON_DEVICE for (int s = 0; s < STEPS; ++s) {
#if AHEAD
    // The next step's loads are spread among this one's products. After the last one they load what nobody
    // needs.
    const int now = s & 1, is_last = s + 1 == STEPS;
    const uint next = is_last ? BUFFER(NEXT(stage)) : BUFFER(stage);
    UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j) {
      if (is_last && j == 0) { ARRIVED }
      load_fragment(tiles, &f[now ^ 1], next, row, column, is_last ? 0 : s + 1, lane, j);
      multiply(tiles, d[j], f[now].a, f[now].b[j][0], f[now].b[j][1]);
    }
#else
    LOAD_FRAGMENTS(*f, stage, s)
    multiply_fragments(tiles, d, f);
#endif
  }
}
#endif

INLINE void sum_along_k(__local uchar *tiles, sum4_t d[][FRAGMENTS_M], Operands o, int count, int row,
                        int column) {
  const uint ring = PLACE(tiles);
  const int lane = get_local_id(0) & 31;
  UNROLL_ON_DEVICE for (int j = 0; j < FRAGMENTS_N; ++j)
    UNROLL_ON_DEVICE for (int i = 0; i < FRAGMENTS_M; ++i) d[j][i] = (sum4_t)(0);
  int stage = 0;
#if !ASYNC  // two buffers: registers receive the next one while this one is multiplied
  Held held;
  Fragments f;
  read_operands(&held, &o);
  write_operands(tiles, ring, &held, &o);
  for (int tile = 0; tile < count; ++tile) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (tile + 1 < count) read_operands(&held, &o);
    UNROLL_ON_DEVICE for (int s = 0; s < STEPS; ++s) {
      LOAD_FRAGMENTS(f, stage, s)
      multiply_fragments(tiles, d, &f);
    }
    stage = NEXT(stage);
    if (tile + 1 < count) write_operands(tiles, BUFFER(stage), &held, &o);
  }
#else
  int free_stage = STAGES - 1;
  UNROLL_ON_DEVICE for (int s = 0; s < STAGES - 1; ++s) {
    if (s < count) copy_operands(tiles, BUFFER(s), &o, false);
    COMMIT_COPIES
  }
  Fragments f[FRAGMENTS_HELD];
#if AHEAD
  ARRIVED
  LOAD_FRAGMENTS(f[0], 0, 0)
#endif
  int tile = 0;
  for (; tile + STAGES - 1 < WHOLE_BUFFERS(o); ++tile) {
    sum_buffer(tiles, d, f, &o, stage, free_stage, true, true, row, column);
    stage = NEXT(stage);
    free_stage = NEXT(free_stage);
  }
  for (; tile < count; ++tile) {
    sum_buffer(tiles, d, f, &o, stage, free_stage, tile + STAGES - 1 < count, false, row, column);
    stage = NEXT(stage);
    free_stage = NEXT(free_stage);
  }
#endif
}
#endif
