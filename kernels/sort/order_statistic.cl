// The element at one place of each sorted row, and its position in the row; of equal elements the one that a
// stable sort would put there.
//   select_one  radix selection: digit by digit from the highest on, by counting the digit among elements
//               that agree in the digits before; on CPU drivers a work-item takes a row, on GPUs a
//               work-group
//   pick        from rows that are sorted already
// MEDIAN: 0 the place is p.wanted, 1 the lower middle, or the first NaN if there is one, 2 the lower middle
// of the elements that are not NaN.
#include "range.h"
#include "sort_key.h"
#include "order_statistic_params.h"

#define IN AT_BYTES(const WORD, in_base, in_offset)
#if ELEMENT == FLOAT
#define IS_NAN_KEY(key) ((key) == ALL_BITS)
#else
#define IS_NAN_KEY(key) false
#endif

INLINE long place_of(long nans, const OrderStatisticParams p) {
  const long numbers = p.length - nans;
#if MEDIAN == 0
  return p.wanted;
#elif MEDIAN == 1
  return nans > 0 ? numbers : (p.length - 1) / 2;
#else
  return max(numbers - 1, 0L) / 2;
#endif
}

#if CPU_STYLE
#define DIGIT 11
#define SHARED
#define ID 0
#define ITEMS 1
#define WAIT
#define COUNT(counter) ++(counter)
#define FOR_ROWS FOR_EACH(row, p.pieces, p.per_item)
#else
#define DIGIT 8
#define SHARED __local
#define ID (long)get_local_id(0)
#define ITEMS (long)get_local_size(0)
#define WAIT barrier(CLK_LOCAL_MEM_FENCE);
#define COUNT(counter) atomic_inc(&(counter))
#define FOR_ROWS for (long row = get_group_id(0), once = 1; once; once = 0)
#endif
#define BINS (1 << DIGIT)

GROUP __kernel void select_one(__global void *value_base, ulong value_offset, __global void *index_base,
                               ulong index_offset, __global const void *in_base, ulong in_offset,
                               const OrderStatisticParams p) {
  SHARED uint bins[BINS];
  SHARED long rank[1];
  SHARED Key prefix[1];
  FOR_ROWS {
    __global const WORD *in = IN + row * p.length;
    if (ID == 0) bins[0] = 0;
    WAIT
#if MEDIAN > 0 && ELEMENT == FLOAT
    uint nans = 0;
    for (long i = ID; i < p.length; i += ITEMS) nans += IS_NAN_KEY(key_of(in[i]));
#if CPU_STYLE
    bins[0] = nans;
#else
    if (nans > 0) atomic_add(&bins[0], nans);
#endif
    WAIT
#endif
    if (ID == 0) {
      rank[0] = place_of(bins[0], p);
      prefix[0] = 0;
    }
    WAIT
    Key mask = 0;
    for (int shift = (WIDTH - 1) / DIGIT * DIGIT; shift >= 0; shift -= DIGIT) {
      const Key known = prefix[0];
      for (long b = ID; b < BINS; b += ITEMS) bins[b] = 0;
      WAIT
      for (long i = ID; i < p.length; i += ITEMS) {
        const Key key = key_of(in[i]);
        if ((key & mask) == known) COUNT(bins[(uint)(key >> shift) & (BINS - 1)]);
      }
      WAIT
      if (ID == 0) {
        uint b = 0;
        long left = rank[0];
        for (; b < BINS - 1 && left >= bins[b]; ++b) left -= bins[b];
        rank[0] = left;
        prefix[0] = known | (Key)b << shift;
      }
      WAIT
      mask |= (Key)(BINS - 1) << shift;
    }
    // Finds the right one of the equal elements: each item searches a slice of the row.
    const Key key = prefix[0];
    const long slice = (p.length + ITEMS - 1) / ITEMS, low = ID * slice,
               high = min((long)p.length, low + slice);
    long before = 0;
#if !CPU_STYLE
    uint own = 0;
    for (long i = low; i < high; ++i) own += key_of(in[i]) == key;
    bins[ID] = own;
    WAIT
    for (long k = 0; k < ID; ++k) before += bins[k];
    if (rank[0] >= before && rank[0] < before + own)
#endif
    {
      before = rank[0] - before;
      for (long i = low; i < high; ++i) {
        if (key_of(in[i]) != key || before-- > 0) continue;
        AT_BYTES(WORD, value_base, value_offset)[row] = in[i];
        AT(i64, index_base, index_offset)[row] = i;
        break;
      }
    }
    WAIT
  }
}

GROUP __kernel void pick(__global void *value_base, ulong value_offset, __global void *index_base,
                         ulong index_offset, __global const void *in_base, ulong in_offset,
                         __global const void *position_base, ulong position_offset,
                         const OrderStatisticParams p) {
  FOR_EACH(row, p.pieces, p.per_item) {
    __global const WORD *in = IN + row * p.length;
    long low = 0, high = p.length;  // bisection for the first NaN
    while (low < high) {
      const long middle = (low + high) / 2;
      if (IS_NAN_KEY(key_of(in[middle]))) high = middle;
      else low = middle + 1;
    }
    const long at = place_of(p.length - low, p);
    AT_BYTES(WORD, value_base, value_offset)[row] = in[at];
    AT(i64, index_base, index_offset)[row] =
        AT_CONST(i64, position_base, position_offset)[row * p.length + at];
  }
}
