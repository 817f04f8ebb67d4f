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

// ---- Dropout: a counter's 8 keys are 4 of a fragment (bits 0 to 3: 1 if the weight is kept) and the 4 that
// are 8 further (bits 4 to 7).
#if DROPOUT
INLINE uint kept_of_8(const AttentionParams p, ulong counter) {
  uint w[4], bits = 0;
  philox_block_7(p.seed, (uint)counter, (uint)(counter >> 32), (uint)0, w, w + 1, w + 2, w + 3);
  const uint dropped = (uint)p.dropped;
  UNROLL for (int k = 0; k < 4; ++k) {
    bits |= (w[k] << 16) >= dropped ? 1u << k : 0;
    bits |= w[k] >= dropped ? 16u << k : 0;
  }
  return bits;
}
// Which elements x, y, z, w of two adjacent fragments (bits 0 to 3, 4 to 7) are kept, whose rows are queries
// and whose 16 columns are keys. Two lanes have halves of the same counters of two rows; each draws one of
// them. `first`: that of the lane's first row (by its place), plus the counters before the first key.
INLINE ulong first_across_keys(const AttentionParams p, long row_place) {
  const uint lane = get_local_id(0) & 31;
  return p.offset + (ulong)((row_place + (lane & 1) * 8) * p.row_counters + ((lane & 2) >> 1));
}
INLINE uint kept_across_keys(__local uchar *tiles, const AttentionParams p, ulong first) {
  const uint odd = get_local_id(0) & 1;
  const uint mine = kept_of_8(p, first), theirs = EXCHANGE(tiles, mine, 1);
  const uint low = odd ? theirs : mine, high = odd ? mine : theirs;
  return ((low >> (2 * odd)) & 0x33) | ((high >> (2 * odd)) & 0x33) << 2;
}
// The same where rows are 16 keys from `key` on, and columns are queries: that at `column_place` (the lane's
// first one), the next, and those 8 further. Four lanes have the same four counters; each draws one of them.
INLINE ulong first_along_keys(const AttentionParams p, long column_place, int key) {
  const uint lane = get_local_id(0) & 31, drawn = (lane >> 2) & 3;
  const long place = column_place + (drawn & 1) + (drawn & 2) * 4;
  return p.offset + (ulong)(place * p.row_counters + key / 8 + (lane >> 4));
}
INLINE uint kept_along_keys(__local uchar *tiles, const AttentionParams p, ulong first) {
  const uint key = ((get_local_id(0) & 31) >> 2) & 3;
  uint all = kept_of_8(p, first) << (8 * key);  // a byte for each of the four queries
  all |= EXCHANGE(tiles, all, 4);
  all |= EXCHANGE(tiles, all, 8);
  all = (all >> key) & 0x11111111;      // of each query: the lane's first key, its second
  all = (all | all >> 7) & 0x00330033;  // two queries beside one another
  all = (all | all >> 2) & 0x000F000F;  // x, y, z, w of a fragment
  return (all | all >> 12) & 0xFF;
}
#endif
#endif
