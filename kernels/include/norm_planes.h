// What the kernels planes_cpu*.cl share: their planes, and sums over them in vectors of 16. A plane has 16
// elements or more. Its last vector overlaps the one before it; the lanes that were there already are masked.
#ifndef OCLTENSOR_NORM_PLANES_H
#define OCLTENSOR_NORM_PLANES_H
#include "norm_planes_params.h"
#include "types.h"
typedef CTYPE(COMPUTE) T;
typedef CVEC(COMPUTE) T16;
#include "norm_operands.h"
#include "row_sums.h"

#define FOR_EACH_STATISTIC(s)                      \
  const long s##_first = get_global_id(0) * p.per; \
  for (long s = s##_first; s < min((long)p.stats, s##_first + (long)p.per); ++s)
#define PLANE(s, j) ((s) * p.stat_step + (j) * p.piece_step)
// BY_CHANNEL: each statistic is that of a channel.
#define CHANNEL(s, plane) (BY_CHANNEL ? (s) : (plane) % p.channels)

// v with its first 16 - n lanes set to 0.
INLINE T16 last_lanes(T16 v, long n) {
  const T16 lane = (T16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return lane >= (T16)((T)(16 - n)) ? v : (T16)((T)0);
}

// total += TERM16(i) over the elements of a plane.
#define ADD_PLANE(total, n, TERM16)                                \
  {                                                                \
    long i = 0;                                                    \
    ADD_VECTORS(total, i, n, TERM16)                               \
    if (i < (n)) total += last_lanes(TERM16((n) - 16), (n) - i);   \
  }
#endif
