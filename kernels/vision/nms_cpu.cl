// Rounds of nms for CPU drivers, 16 boxes at a time. WIDE: the boxes are float64.
//   settle  one work-item goes through the round's boxes, and lists those that it keeps
//   sweep   a work-item removes the boxes behind the round that a kept one suppresses
#include "nms.h"
typedef CVEC(A) T16;
#if WIDE
typedef long16 M16;
#define TO_M16 convert_long16
#else
typedef int16 M16;
#define TO_M16 convert_int16
#endif

// Which of 16 boxes from `i` on box `a` suppresses: -1 or 0.
INLINE M16 suppressed16(const Box a, __global const T *rows, long i, T threshold, const NmsParams p) {
  const T16 b_x1 = vload16(0, rows + i), b_y1 = vload16(0, rows + p.boxes + i),
            b_x2 = vload16(0, rows + 2 * p.boxes + i), b_y2 = vload16(0, rows + 3 * p.boxes + i),
            b_area = vload16(0, rows + 4 * p.boxes + i);
  const T16 a_x1 = (T16)(a.x1), a_y1 = (T16)(a.y1), a_x2 = (T16)(a.x2), a_y2 = (T16)(a.y2), zero = (T16)(0);
  const T16 x1 = a_x1 < b_x1 ? b_x1 : a_x1, y1 = a_y1 < b_y1 ? b_y1 : a_y1;
  const T16 x2 = b_x2 < a_x2 ? b_x2 : a_x2, y2 = b_y2 < a_y2 ? b_y2 : a_y2;
  const T16 w = x2 - x1, h = y2 - y1;
  const T16 common = (zero < w ? w : zero) * (zero < h ? h : zero);
  return common / (a.area + b_area - common) > (T16)(threshold);
}

INLINE void mark16(__global uchar *removed, long i, M16 gone) {
  vstore16(convert_uchar16(-gone), 0, removed + i);
}

ONE_ITEM __kernel void settle(__global void *kept_base, ulong kept_offset, __global void *list_base,
                              ulong list_offset, __global void *removed_base, ulong removed_offset,
                              __global void *counts_base, ulong counts_offset,
                              __global const void *rows_base, ulong rows_offset,
                              __global const void *order_base, ulong order_offset, const NmsParams p) {
  __global const T *rows = (__global const T *)((__global const char *)rows_base + rows_offset);
  __global uchar *removed = AT(u8, removed_base, removed_offset);
  __global long *counts = AT(i64, counts_base, counts_offset);
  const T threshold = FROM_BITS(A, p.threshold);
  long total = counts[0], listed = 0;
  for (long i = p.first; i < p.end; ++i) {
    if (removed[i]) continue;
    AT(i64, kept_base, kept_offset)[total++] = AT_CONST(i64, order_base, order_offset)[i];
    AT(i64, list_base, list_offset)[listed++] = i;
    const Box box = box_of(rows, i, p);
    long j = i + 1;
    for (; j + 16 <= p.end; j += 16)
      mark16(removed, j, -TO_M16(vload16(0, removed + j)) | suppressed16(box, rows, j, threshold, p));
    for (; j < p.end; ++j)
      if (suppresses(box, box_of(rows, j, p), threshold)) removed[j] = 1;
  }
  counts[0] = total;
  counts[1] = listed;
}

ONE_ITEM __kernel void sweep(__global void *removed_base, ulong removed_offset,
                             __global const void *rows_base, ulong rows_offset,
                             __global const void *list_base, ulong list_offset,
                             __global const void *counts_base, ulong counts_offset, const NmsParams p) {
  __global const T *rows = (__global const T *)((__global const char *)rows_base + rows_offset);
  __global const long *list = AT_CONST(i64, list_base, list_offset);
  __global uchar *removed = AT(u8, removed_base, removed_offset);
  const long listed = AT_CONST(i64, counts_base, counts_offset)[1];
  const T threshold = FROM_BITS(A, p.threshold);
  FOR_EACH(piece, p.pieces, p.per_item) {
    const long first = p.end + piece * 16;
    if (first + 16 <= p.boxes) {
      M16 gone = -TO_M16(vload16(0, removed + first));
      for (long k = 0; k < listed && !all(gone); ++k)
        gone |= suppressed16(box_of(rows, list[k], p), rows, first, threshold, p);
      mark16(removed, first, gone);
      continue;
    }
    for (long j = first; j < p.boxes; ++j) {
      const Box box = box_of(rows, j, p);
      for (long k = 0; k < listed && !removed[j]; ++k)
        if (suppresses(box_of(rows, list[k], p), box, threshold)) removed[j] = 1;
    }
  }
}
