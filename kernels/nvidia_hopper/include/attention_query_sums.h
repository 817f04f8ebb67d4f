// What attention backward on Hopper's matrix units does for the gradient of the query in the pass that keeps
// keys (backward.cl, PASS 2): gradients of scores go to local memory, are multiplied by the keys one block
// later, and the products are left for the items that add them to sums. Names are those of backward.cl.
#ifndef OCLTENSOR_ATTENTION_QUERY_SUMS_H
#define OCLTENSOR_ATTENTION_QUERY_SUMS_H

#if ADDS_QUERY
// dS of this block goes to local memory: for each 64 queries, a row of 128 swizzled bytes for each key.
#define STORE_SCORE_GRADIENTS                                                            \
  {                                                                             \
    UNROLL for (int j = 0; j < BN / 8; ++j) {                                   \
      const uint to_ = own_scores + buffer * SCORE_BYTES + j / 8 * (BM * 128) + \
                       (((uint)(j % 8) ^ (uint)(lane >> 2)) << 4);              \
      store_shared(to_, g[2 * j]);                                              \
      store_shared(to_ + 8 * 128, g[2 * j + 1]);                                \
    }                                                                           \
    written_for_copies();                                                       \
    warp_barrier();                                                             \
    RELEASE(full_scores + 8 * buffer)                                           \
  }
// Begins q, dQ of the block before this one. Without a block before it multiplies whatever there is: a
// condition around a product makes ptxas wait for every one (C7514).
#define BEGIN_QUERY                                                          \
  if (has_scores) {                                                          \
    barrier_wait(full_scores + 8 * buffer, scores_phase);                    \
    scores_phase ^= buffer;                                                  \
  }                                                                          \
  QUERY_PRODUCT(q, scores_matrix + buffer * STEP(SCORE_BYTES), keys_matrix); \
  buffer ^= has_scores;
// Leaves q in local memory, for the item that adds it to the sums.
#define ADD_QUERY                                                             \
  if (has_scores) {                                                           \
    barrier_wait(empty_sums + 8 * warpgroup, sums_phase ^ 1);                 \
    sums_phase ^= 1;                                                          \
    UNROLL for (int i = 0; i < QUERY_COUNT; i += 4)                           \
      store_shared_4(own_sums + i * 512, q[i], q[i + 1], q[i + 2], q[i + 3]); \
    written_for_copies();                                                     \
    warp_barrier();                                                           \
    RELEASE(full_sums + 8 * warpgroup)                                        \
  }
#define ADD_PREVIOUS_BLOCK_TO_QUERY                              \
  float q[QUERY_COUNT];                                    \
  BEGIN_QUERY                                              \
  SCORES(s, kept0, along0 + slot * STEP(2 * BLOCK_BYTES)); \
  ALL_BUT_ONE_DONE_OF(QUERY_COUNT, q);                     \
  ADD_QUERY                                                \
  has_scores = 1;
#define LAST_QUERY            \
  {                           \
    float q[QUERY_COUNT];     \
    BEGIN_QUERY               \
    ALL_DONE(QUERY_COUNT, q); \
    ADD_QUERY                 \
  }
#else
#define STORE_SCORE_GRADIENTS
#define ADD_PREVIOUS_BLOCK_TO_QUERY SCORES(s, kept0, along0 + slot * STEP(2 * BLOCK_BYTES));
#define LAST_QUERY
#endif
#endif
