// Boxes of nms, in order: see nms_params.h. A: the boxes' type.
#ifndef OCLTENSOR_NMS_H
#define OCLTENSOR_NMS_H
#include "types.h"
#include "range.h"
#include "nms_params.h"
// Which boxes remain depends on single roundings, which are those of torchvision's CPU kernel: no fused
// multiply-add, and comparisons that treat NaN as std::min and std::max do.
#pragma OPENCL FP_CONTRACT OFF
typedef CTYPE(A) T;

// What kernels know of the boxes.
typedef struct {
  T x1, y1, x2, y2, area;
} Box;

INLINE Box box_of(__global const T *rows, long i, const NmsParams p) {
  const Box box = {rows[i], rows[p.boxes + i], rows[2 * p.boxes + i], rows[3 * p.boxes + i],
                   rows[4 * p.boxes + i]};
  return box;
}

// Whether the overlap's share of the union is above the threshold.
INLINE bool suppresses(const Box a, const Box b, T threshold) {
  const T x1 = a.x1 < b.x1 ? b.x1 : a.x1, y1 = a.y1 < b.y1 ? b.y1 : a.y1;
  const T x2 = b.x2 < a.x2 ? b.x2 : a.x2, y2 = b.y2 < a.y2 ? b.y2 : a.y2;
  const T w = x2 - x1, h = y2 - y1;
  const T common = (0 < w ? w : (T)0) * (0 < h ? h : (T)0);
  return common / (a.area + b.area - common) > threshold;
}
#endif
