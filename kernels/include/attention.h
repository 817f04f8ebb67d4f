// What the attention kernels share: which keys a query attends to, the mask's values, dropout. Needs COMPUTE,
// MASK (0 none, 1 false means minus infinity, 2 a number of type M is added) and DROPOUT.
#ifndef OCLTENSOR_ATTENTION_H
#define OCLTENSOR_ATTENTION_H
#include "attention_params.h"
#if DROPOUT
#include "philox.h"
#endif

// The query of a row of the block, and its place among all queries of the whole batch.
INLINE long query_of(const AttentionParams p, long row) { return p.first + row % p.queries; }
INLINE long place_of(const AttentionParams p, long row) {
  return (p.first_matrix + row / p.queries) * p.all_queries + query_of(p, row);
}

// The mask's offset for a row, and how many keys the row sees.
INLINE long mask_offset_of(const AttentionParams p, long row) {
  long rest = p.first_matrix + row / p.queries, offset = query_of(p, row) * p.mask_row;
  EACH_AXIS_BACK(d, p.rank, ATTENTION_BATCH_RANK) {
    const long next = rest / p.batch[d];
    offset += (rest - next * p.batch[d]) * p.mask_strides[d];
    rest = next;
  }
  return offset;
}
INLINE long seen(const AttentionParams p, long row) {
  return p.causal ? min((long)p.keys, query_of(p, row) + 1) : (long)p.keys;
}
#if MASK == 1
#define MASKED(s, j) (LOAD(bool, mask, (j) * p.mask_column) ? (s) : (T)(-INFINITY))
#elif MASK == 2
#define MASKED(s, j) ((s) + (T)LOAD(M, mask, (j) * p.mask_column))
#else
#define MASKED(s, j) (s)
#endif

#if DROPOUT
// Dropout draws as src/base/philox.h says. A matrix is a head of a batch.
// The first counter of a pair of rows, by a query and by a row of the block, and the counters from there to
// the one of key j.
INLINE ulong pair_counter(const AttentionParams p, long matrix, long query) {
  const long pairs = (p.all_queries + 15) / 16 * 8;
  return p.offset + (ulong)((matrix * pairs + query / 16 * 8 + query % 8) * p.pair_counters);
}
INLINE ulong row_counter(const AttentionParams p, long row) {
  return pair_counter(p, p.first_matrix + row / p.queries, query_of(p, row));
}
INLINE ulong counters_before(long j) { return (ulong)(j / 16 * 2 + j % 8 / 4); }
// Of a counter's weights, bit 16 + weight_of() of kept_of_counter() tells.
INLINE int weight_of(long query, long j) { return (int)(j % 4 * 4 + j % 16 / 8 * 2 + query % 16 / 8); }
// Whether numbers are not below the limit, for 16 of them side by side: from the lowest bit on, a bit that
// differs from the limit's decides whatever those before it did. The lower 32 bits, which the 16 share, are
// from words 0 and 3. V: uint or a vector of them; `all_ones` turns a comparison of them into masks.
#define DECIDE(kept, word, limit) kept = ((word) & ~(limit)) | (kept & ~((word) ^ (limit)));
#define KEPT_FUNCTION(V, all_ones)                                                              \
  INLINE V OVERLOADED kept_of_counters(const AttentionParams p, V c0, V c1) {                   \
    V c2 = (V)(0), c3 = (V)(0);                                                                 \
    UNROLL for (uint round = 0; round < 7; ++round)                                             \
      PHILOX_ROUND(V, c0, c1, c2, c3, PHILOX_KEY_0(p.seed, round), PHILOX_KEY_1(p.seed, round)) \
    V kept = all_ones(c0 * (V)(0x9E3779B1u) + c3 >= (V)((uint)p.dropped_rest));                 \
    UNROLL for (int upper = 0; upper < 2; ++upper) {                                            \
      kept <<= 16 * upper;                                                                      \
      DECIDE(kept, c0, p.dropped[0])                                                            \
      DECIDE(kept, c1, p.dropped[1])                                                            \
      DECIDE(kept, c2, p.dropped[2])                                                            \
      DECIDE(kept, c3, p.dropped[3])                                                            \
    }                                                                                           \
    return kept;                                                                                \
  }
#define MASK_OF_ONE(is) ((is) ? ~0u : 0)
KEPT_FUNCTION(uint, MASK_OF_ONE)
KEPT_FUNCTION(uint16, as_uint16)
// In bits 16 to 31, whether the counter's weights are kept.
INLINE uint kept_of_counter(const AttentionParams p, ulong counter) {
  return kept_of_counters(p, (uint)counter, (uint)(counter >> 32));
}
// Dropout's factor for weight j of a row of the block: 0 or kept_scale.
INLINE CTYPE(COMPUTE) kept(const AttentionParams p, long row, long j) {
  const uint all = kept_of_counter(p, row_counter(p, row) + counters_before(j));
  return all >> (16 + weight_of(query_of(p, row), j)) & 1 ? FROM_BITS(COMPUTE, p.kept_scale)
                                                          : (CTYPE(COMPUTE))0;
}
// Bits 0, 4, 8 and 12: whether the weights j .. j + 3 of a query are kept; j is a multiple of 4.
INLINE uint kept_of_4(const AttentionParams p, long matrix, long query, long j) {
  const uint all = kept_of_counter(p, pair_counter(p, matrix, query) + counters_before(j));
  return all >> (16 + weight_of(query, j));
}
#endif
#endif
