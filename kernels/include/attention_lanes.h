// What attention kernels on matrix units share: masks and dropout of the scores that a lane of a warp has, in
// the layout of sums of mma.sync and wgmma. Lane 4 g + t has, of each fragment of 16 rows and 8 columns, x, y
// of row g and z, w of row g + 8, columns 2 t and 2 t + 1.
// Needs attention.h, and EXCHANGE(tiles, v, across): v of the lane whose number differs in the bits `across`.
#ifndef OCLTENSOR_ATTENTION_LANES_H
#define OCLTENSOR_ATTENTION_LANES_H
#include "attention.h"
#include "pair.h"
#define LOG2_E 1.44269504f
#define LN_2 0.69314718f

// ---- Scores: products of a query and a key, with a mask of numbers scaled and masked. In units of log2 the
// lowest number that a mask may have would be infinite.
#if MASK == 2
#define WITH_MASK(s, scale, m) fma(s, scale, (float)(m))
#define UNIT(scale) LOG2_E  // scores times it are in units of log2; `scale` is positive
// That of a row by its largest score. Where floats are 8 and more apart only equal scores count, and a power
// of two keeps them equal: largest * log2(e) is rounded by as much. The lowest numbers stay finite.
#define ROW_UNIT(largest, unit) \
  (fabs(largest) < 0x1p26f ? (unit) : fabs(largest) < 1e38f ? 2.0f : 0x1p-93f)
#define LOG_WEIGHT(s, unit, sum) (((s) - (sum)) * LOG2_E)  // by a log-sum-exp in the scores' units
#else
#define WITH_MASK(s, scale, m) ((m) != 0 ? (s) : -INFINITY)
#define UNIT(scale) ((scale) * LOG2_E)
#define ROW_UNIT(largest, unit) (unit)
#define LOG_WEIGHT(s, unit, sum) fma(s, unit, -(sum))  // by one in units of log2
#endif

// A row's log-sum-exp by its largest score and log2 of the sum of its weights.
#define LOG_SUM(largest, unit, log2_total) fma(log2_total, LN_2, (largest) * ((unit) * LN_2))

// ---- Dropout: the 16 weights of a counter are of two rows, 8 apart, of each 4 keys of a fragment and the 4
// that are 8 further. Lanes that need parts of the same counters draw one each, and exchange them. The
// functions tell in 16 bits which elements of four adjacent fragments are kept: those of fragment j in byte
// j / 2, in its lower half those of the lane's first column, in the upper one those of the second; there bit
// ACROSS_KEYS(j, h) or ALONG_KEYS(j, h) is that of row h (0, or 1: 8 rows further).
#if DROPOUT
#define ACROSS_KEYS(j, h) ((j) % 2 * 2 + (h))
#define ALONG_KEYS(j, h) ((h)*2 + (j) % 2)
// Whether element (h, e) of fragment j is kept, e 0 or 1 the column, by `kept` of eight fragments.
#define KEPT_BIT(j, e, at) ((j) % 8 / 2 * 8 + (e)*4 + (at))
#define IS_KEPT(kept, j, e, at) ((kept) >> KEPT_BIT(j, e, at) & 1)
// A word's mask for a row's pair of 16-bit elements.
#define KEPT_PAIR(kept, j, at) \
  permute_bytes((kept) << (7 - (at)), (kept) << (3 - (at)), 0xCC88 + (j) % 8 / 2 * 0x1111)
// A byte of both words of two lanes, the first lane's first, and both once more: byte 2 for the first lane,
// byte 3 for the `second`.
INLINE uint same_bytes(uint mine, uint theirs, bool second) {
  return permute_bytes(mine, theirs, second ? 0x3737 : 0x6262);
}
// Rows are queries, columns 32 keys: two lanes need halves of the same two counters. `row`: the lane's first;
// counters_before() the first key is to be added to `first`.
INLINE ulong first_across_keys(const AttentionParams p, long matrix, long row) {
  const uint lane = get_local_id(0) & 31;
  return pair_counter(p, matrix, row) + ((lane & 2) >> 1) + (lane & 1) * 2;
}
INLINE uint kept_across_keys(__local uchar *tiles, const AttentionParams p, ulong first) {
  const uint mine = kept_of_counter(p, first);
  return same_bytes(mine, EXCHANGE(tiles, mine, 1), get_local_id(0) & 1);
}
// Rows are 16 keys from `key` on, columns 32 queries: that in `column` (the lane's first one), the next, and
// those 8, 16 and 24 further. Four lanes need parts of the same four counters.
INLINE ulong first_along_keys(const AttentionParams p, long matrix, long column, int key) {
  const uint lane = get_local_id(0) & 31, drawn = (lane >> 2) & 3;
  return pair_counter(p, matrix, column + (drawn & 1) + (drawn & 2) * 8) + key / 8 + (lane >> 4);
}
INLINE uint kept_along_keys(__local uchar *tiles, const AttentionParams p, ulong first) {
  const uint lane = get_local_id(0), mine = kept_of_counter(p, first);
  const uint own = same_bytes(mine, EXCHANGE(tiles, mine, 8), lane & 8);
  // Of each byte, one half is of the lane's key.
  const bool odd = lane & 4;
  const uint theirs = EXCHANGE(tiles, own >> (odd ? 12 : 4), 4), of_own = odd ? 0xF0F0 : 0x0F0F;
  return (own & of_own) | (theirs & ~of_own);
}
#endif
#endif
