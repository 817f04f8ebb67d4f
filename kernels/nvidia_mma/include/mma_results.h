// Results of a tile in memory: numbers of the operands' type, or sums as they are: of TF32, of int8, of
// pieces (PARTIAL), and where the result is float (FLOAT_RESULT). The four lanes of a row have two adjacent
// results of every fragment of 8 columns.
#ifndef OCLTENSOR_MMA_RESULTS_H
#define OCLTENSOR_MMA_RESULTS_H
#include "mma.h"
#include "fragment_exchange.h"

#ifndef FLOAT_RESULT
#define FLOAT_RESULT 0
#endif
#define SUMS_STORED (PARTIAL || TF32_PARTS || KIND == KIND_i8 || FLOAT_RESULT)
#if SUMS_STORED
typedef sum_t result_t;
#define STORED_AT_ONCE 2
#else
typedef ushort result_t;
#define STORED_AT_ONCE 8
#endif

// Stores a row of a warp's results, at `to`, `step` elements from column to column, of which `left` exist
// (none, if the row does not). `v`: the lane's pair of each of the `fragments`, a multiple of 4. 16-bit
// results change places between lanes, so that 16 bytes are stored at once, 64 of a row. All lanes must call
// it.
INLINE void store_row(__local uchar *tiles, __global result_t *to, long step, int left,
                      const sum2_t *v, int fragments) {
  const int t = get_local_id(0) & 3;
  const bool aligned = step == 1 && ((size_t)to & (STORED_AT_ONCE * sizeof(result_t) - 1)) == 0;
#if SUMS_STORED
  UNROLL_ON_DEVICE for (int j = 0; j < fragments; ++j) {
    const int x = j * 8 + t * 2;
    if (aligned && left - x > 1) *(__global sum2_t *)(to + x) = v[j];
    else {
      if (left > x) to[x * step] = v[j].x;
      if (left - x > 1) to[(x + 1) * step] = v[j].y;
    }
  }
#else
  UNROLL_ON_DEVICE for (int j = 0; j < fragments; j += 4) {
    uint pairs[4];
    UNROLL_ON_DEVICE for (int e = 0; e < 4; ++e) pairs[e] = pair_from(v[j + e].x, v[j + e].y);
    const uint4 all = fragment_of_pairs(tiles, (uint4)(pairs[0], pairs[1], pairs[2], pairs[3]));
    const int x = (j + t) * 8;
    if (aligned && left - x >= 8) *(__global uint4 *)(to + x) = all;
    else {
      const uint words[4] = {all.x, all.y, all.z, all.w};
      UNROLL_ON_DEVICE for (int e = 0; e < 8; ++e)
        if (left - x > e) to[(x + e) * step] = (ushort)(words[e / 2] >> (16 * (e & 1)));
    }
  }
#endif
}
#endif
