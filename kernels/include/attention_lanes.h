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

// ---- Dropout: the 16 numbers of a counter are of two rows, 8 apart (bits 0 to 7, 8 to 15: 1 if the weight
// is kept), of each 4 keys of a fragment (bits 0 to 3) and the 4 that are 8 further. Lanes that need parts of
// the same counters draw one each, and exchange them. The functions say which elements x, y, z, w of four
// adjacent fragments are kept, in bits 0 to 3, 4 to 7, 8 to 11 and 12 to 15.
#if DROPOUT
INLINE uint kept_of_16(const AttentionParams p, ulong counter) {
  uint w[4], bits = 0;
  philox_block_7(p.seed, (uint)counter, (uint)(counter >> 32), (uint)0, w, w + 1, w + 2, w + 3);
  const uint dropped = (uint)p.dropped;
  UNROLL for (int k = 0; k < 4; ++k) UNROLL for (int r = 0; r < 4; ++r)
    bits |= ROTATED(w[k], 8 * r) >= dropped ? 1u << (4 * r + k) : 0;
  return bits;
}
// Rows are queries, columns 32 keys: two lanes need halves of the same two counters. `row`: the lane's first;
// counters_before() the first key is to be added to `first`.
INLINE ulong first_across_keys(const AttentionParams p, long matrix, long row) {
  const uint lane = get_local_id(0) & 31;
  return pair_counter(p, matrix, row) + ((lane & 2) >> 1) + (lane & 1) * 2;
}
INLINE uint kept_across_keys(__local uchar *tiles, const AttentionParams p, ulong first) {
  const uint odd = get_local_id(0) & 1;
  const uint mine = kept_of_16(p, first), theirs = EXCHANGE(tiles, mine, 1);
  uint all = odd ? theirs | mine << 16 : mine | theirs << 16;
  all = (all >> (2 * odd)) & 0x33333333;  // x, y of two fragments, z, w of them
  all = (all | all >> 6) & 0x00FF00FF;
  return (all | all >> 8) & 0xFFFF;
}
// Rows are 16 keys from `key` on, columns 32 queries: that in `column` (the lane's first one), the next, and
// those 8, 16 and 24 further. Four lanes need parts of the same four counters.
INLINE ulong first_along_keys(const AttentionParams p, long matrix, long column, int key) {
  const uint lane = get_local_id(0) & 31, drawn = (lane >> 2) & 3;
  return pair_counter(p, matrix, column + (drawn & 1) + (drawn & 2) * 8) + key / 8 + (lane >> 4);
}
INLINE uint kept_along_keys(__local uchar *tiles, const AttentionParams p, ulong first) {
  const uint key = ((get_local_id(0) & 31) >> 2) & 3;
  const uint mine = kept_of_16(p, first), theirs = EXCHANGE(tiles, mine, 4);
  const uint pairs = key & 1 ? theirs | mine << 16 : mine | theirs << 16;
  const uint others = EXCHANGE(tiles, pairs, 8);
  // Of each 16 queries: the lane's two keys, for two queries and those 8 further.
  uint low = ((key & 2 ? others : pairs) >> key) & 0x11111111;
  uint high = ((key & 2 ? pairs : others) >> key) & 0x11111111;
  low = (low | low >> 15) & 0x3333;  // x, y; z, w; those of the next fragment
  high = (high | high >> 15) & 0x3333;
  uint all = low | high << 16;
  all = (all | all >> 2) & 0x0F0F0F0F;
  all = (all | all >> 4) & 0x00FF00FF;
  return (all | all >> 8) & 0xFFFF;
}
#endif
#endif
