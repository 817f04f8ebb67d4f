// Boxes for nms, in the order of their scores: see nms_params.h. `removed` and the counts start at 0.
#include "nms.h"

GROUP __kernel void gather(__global void *rows_base, ulong rows_offset, __global void *removed_base,
                           ulong removed_offset, __global void *counts_base, ulong counts_offset,
                           __global const void *dets_base, ulong dets_offset, __global const void *order_base,
                           ulong order_offset, const NmsParams p) {
  __global T *rows = (__global T *)((__global char *)rows_base + rows_offset);
  __global const long *order = AT_CONST(i64, order_base, order_offset);
  FOR_EACH(i, p.pieces, p.per_item) {
    __global const STYPE(A) *det = AT_CONST(A, dets_base, dets_offset) + 4 * order[i];
    const T x1 = LOAD(A, det, 0), y1 = LOAD(A, det, 1), x2 = LOAD(A, det, 2), y2 = LOAD(A, det, 3);
    rows[i] = x1;
    rows[p.boxes + i] = y1;
    rows[2 * p.boxes + i] = x2;
    rows[3 * p.boxes + i] = y2;
    rows[4 * p.boxes + i] = (x2 - x1) * (y2 - y1);
    AT(u8, removed_base, removed_offset)[i] = 0;
    if (i == 0) AT(i64, counts_base, counts_offset)[0] = 0;
  }
}
