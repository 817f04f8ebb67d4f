// Products of groups: each takes its part of one dimension, and where the parts end stands in memory.
// GROUPED: 0: one product; 1: parts of the rows; 2: of the columns; 3: of k. The host knows no end: tiles are
// counted as if each part began in a tile of its own, so that some have nothing to do.
#ifndef OCLTENSOR_GROUPED_H
#define OCLTENSOR_GROUPED_H
#include "faults.h"
#include "matmul_params.h"

#define PARTS_OF_M 1
#define PARTS_OF_N 2
#define PARTS_OF_K 3

typedef struct {
  long begin, count;
} Part;
// Where a tile is: its group's matrix of an operand that has one for each group, the group's part of each
// dimension, and the tile's first row and column in it. A tile that does not exist, as one of them is past
// its part, has no terms: a return before the tile's barriers would be sooner, but with it PoCL 3.1 compiles
// stores past the last row.
typedef struct {
  long group;
  Part m, n, k;
  long m0, n0;
} Place;

INLINE long end_of(__global const int *ends, long group, long size) {
  return group < 0 ? 0 : clamp((long)ends[group], 0L, size);
}
INLINE Part part_of(__global const int *ends, long group, long size) {
  const long begin = end_of(ends, group - 1, size);
  return (Part){begin, max(end_of(ends, group, size) - begin, 0L)};
}

// Of tiles of `width` along the dimension that is in parts, the one in `slot`: a group's slots begin at
// begin / width + group. Behind the groups is a last part, which no group has: its sums have no terms.
INLINE Part part_in_slot(__global const int *ends, int groups, long size, long width, long slot, Place *at,
                         long *first) {
  long low = 0, high = groups;
  while (low < high) {
    const long middle = (low + high + 1) / 2;
    if (end_of(ends, middle - 1, size) / width + middle <= slot) low = middle;
    else high = middle - 1;
  }
  const long begin = end_of(ends, low - 1, size);
  const bool is_last = low == groups;
  *first = (slot - (begin / width + low)) * width;
  at->group = is_last ? 0 : low;
  if (is_last) at->k.count = 0;
  return is_last ? (Part){begin, size - begin} : part_of(ends, low, size);
}

// A tile of `rows` x `columns` at these places of the grid; `group` is told where parts are those of k.
INLINE Place place_of_tile(__global const int *ends, int groups, int grouped, const MatmulParams p, long rows,
                           long columns, long tile_m, long tile_n, long group) {
  Place at = {group, {0, p.m}, {0, p.n}, {0, p.k}, tile_m * rows, tile_n * columns};
  if (grouped == PARTS_OF_M) at.m = part_in_slot(ends, groups, p.m, rows, tile_m, &at, &at.m0);
  else if (grouped == PARTS_OF_N) at.n = part_in_slot(ends, groups, p.n, columns, tile_n, &at, &at.n0);
  else at.k = part_of(ends, group, p.k);
  if (at.m0 >= at.m.count || at.n0 >= at.n.count) at.k.count = 0;
  return at;
}
// The number of tiles along a dimension in parts.
#define SLOTS(size, width, groups) ((size) / (width) + (groups) + 1)

// Reports ends that are less than the one before, or more than the dimension has: every `step`-th from
// `first`.
INLINE void check_ends(__global const int *ends, int groups, int grouped, const MatmulParams p, int first,
                       int step, FAULT_PARAMETERS) {
  const long size = grouped == PARTS_OF_M ? p.m : grouped == PARTS_OF_N ? p.n : p.k;
  for (int g = first; g < groups; g += step)
    if (ends[g] < (g == 0 ? 0 : ends[g - 1]) || ends[g] > size)
      report_fault(faults, fault_site, ends[g], size);
}
#endif
