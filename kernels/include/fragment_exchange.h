// Results that four lanes of a row exchange, so that each stores 16 bytes at once. Fragments of 8 columns are
// laid out as sums of mma.sync and wgmma are: lane t of the four has columns 2 t and 2 t + 1 of each.
// Needs EXCHANGE(tiles, v, across): v of the lane whose number differs in the bits `across`.
#ifndef OCLTENSOR_FRAGMENT_EXCHANGE_H
#define OCLTENSOR_FRAGMENT_EXCHANGE_H

// `v`: the lane's pairs of 16 bits of four fragments. Lane t receives the four pairs of fragment t. All lanes
// must call it.
INLINE uint4 fragment_of_pairs(__local uchar *tiles, uint4 v) {
  const bool odd = get_local_id(0) & 1, high = get_local_id(0) & 2;
  uint x = EXCHANGE(tiles, odd ? v.x : v.y, 1), y = EXCHANGE(tiles, odd ? v.z : v.w, 1);
  v = odd ? (uint4)(x, v.y, y, v.w) : (uint4)(v.x, x, v.z, y);
  x = EXCHANGE(tiles, high ? v.x : v.z, 2);
  y = EXCHANGE(tiles, high ? v.y : v.w, 2);
  return high ? (uint4)(x, y, v.z, v.w) : (uint4)(v.x, v.y, x, y);
}
#endif
