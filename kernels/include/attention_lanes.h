// What attention kernels on matrix units share: masks and dropout of the scores that a lane of a warp has, in
// the layout of sums of mma.sync and wgmma. Lane 4 g + t has, of each fragment of 16 rows and 8 columns, x, y
// of row g and z, w of row g + 8, columns 2 t and 2 t + 1.
// Needs attention.h, and EXCHANGE(tiles, v, across): v of the lane whose number differs in the bits `across`.
#ifndef OCLTENSOR_ATTENTION_LANES_H
#define OCLTENSOR_ATTENTION_LANES_H
#include "attention.h"
#include "pair.h"
#define LOG2_E 1.44269504f

// ---- The mask: a score in units of log2, with it.
#if MASK == 1
#define WITH_MASK(s, m) ((m) != 0 ? (s) : -INFINITY)
#elif MASK == 2
#define WITH_MASK(s, m) fma((float)(m), LOG2_E, s)
#endif

// ---- Dropout: bit b is 1 if the weight of key b is kept, of the 4 keys of a counter.
#if DROPOUT
INLINE uint kept_of_4(const AttentionParams p, ulong counter) {
  uint w[4];
  words_of_block(p.seed, counter, w);
  const int dropped = (int)p.dropped;
  return (uint)((int)(w[0] >> 8) >= dropped) | (uint)((int)(w[1] >> 8) >= dropped) << 1 |
         (uint)((int)(w[2] >> 8) >= dropped) << 2 | (uint)((int)(w[3] >> 8) >= dropped) << 3;
}
// Which elements x, y, z, w (bits 0 to 3) of a fragment are kept whose rows are queries and whose columns are
// keys. Two lanes have halves of the same counters of two rows; each draws one of them. `first`: that of the
// lane's first row (by its place), plus the counters before the fragment's first key.
INLINE ulong first_across_keys(const AttentionParams p, long row_place) {
  const uint lane = get_local_id(0) & 31;
  return p.offset + (ulong)((row_place + (lane & 1) * 8) * p.row_blocks + ((lane & 2) >> 1));
}
INLINE uint kept_across_keys(__local uchar *tiles, const AttentionParams p, ulong first) {
  const uint odd = get_local_id(0) & 1;
  const uint mine = kept_of_4(p, first), theirs = EXCHANGE(tiles, mine, 1);
  const uint low = odd ? theirs : mine, high = odd ? mine : theirs;
  return ((low >> (2 * odd)) & 3) | ((high >> (2 * odd)) & 3) << 2;
}
// The same where rows are keys, from 4 * block on, and columns are queries, at places `column_place` (of the
// lane's first column) and the next. Four lanes have the same four counters; each draws one of them.
INLINE ulong first_along_keys(const AttentionParams p, long column_place, int block) {
  const uint lane = get_local_id(0) & 31, key = (lane >> 2) & 3;
  return p.offset + (ulong)((column_place + (key & 1)) * p.row_blocks + block + (lane >> 4) + (key >> 1) * 2);
}
INLINE uint kept_along_keys(__local uchar *tiles, const AttentionParams p, ulong first) {
  const uint key = ((get_local_id(0) & 31) >> 2) & 3;
  uint all = kept_of_4(p, first) << (4 * key);
  all |= EXCHANGE(tiles, all, 4);
  all |= EXCHANGE(tiles, all, 8);
  all >>= key;
  return (all & 1) | (all >> 3 & 2) | (all >> 6 & 4) | (all >> 9 & 8);
}
#endif
#endif
