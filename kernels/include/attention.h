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
  for (int d = p.rank - 1; d >= 0; --d) {
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
// By how many bits the word of a query's weight j is rotated, of whose result the upper 16 bits count.
INLINE uint rotation_of(long query, long j) { return (uint)(query % 16 / 8 * 16 + j % 16 / 8 * 8); }
#define ROTATED(word, left) ((word) << (left) | (word) >> ((32 - (left)) & 31))
// Dropout's factor for weight j of a row of the block: 0 or kept_scale.
INLINE CTYPE(COMPUTE) kept(const AttentionParams p, long row, long j) {
  const ulong counter = row_counter(p, row) + counters_before(j);
  const uint left = rotation_of(query_of(p, row), j);
  uint w[4];
  philox_block_7(p.seed, (uint)counter, (uint)(counter >> 32), (uint)0, w, w + 1, w + 2, w + 3);
  const uint bits = ROTATED(w[j % 4], left);
  return bits >= (uint)p.dropped ? FROM_BITS(COMPUTE, p.kept_scale) : (CTYPE(COMPUTE))0;
}
// Bits 0 to 3: whether the weights j .. j + 3 of a query are kept; j is a multiple of 4.
INLINE uint kept_of_4(const AttentionParams p, long matrix, long query, long j) {
  const ulong counter = pair_counter(p, matrix, query) + counters_before(j);
  const uint left = rotation_of(query, j);
  uint w[4], bits = 0;
  philox_block_7(p.seed, (uint)counter, (uint)(counter >> 32), (uint)0, w, w + 1, w + 2, w + 3);
  UNROLL for (int k = 0; k < 4; ++k) bits |= ROTATED(w[k], left) >= (uint)p.dropped ? 1u << k : 0;
  return bits;
}
#endif
#endif
