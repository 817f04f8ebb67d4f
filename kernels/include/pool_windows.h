// The pooling windows that contain a position of the image, along one axis, and where the windows of adaptive
// pooling begin and end.
#ifndef OCLTENSOR_POOL_WINDOWS_H
#define OCLTENSOR_POOL_WINDOWS_H
#include "pool_params.h"
#include "types.h"

// v / stride, v >= 0. Nearly all strides are 1 or 2, and a division takes 20 instructions.
INLINE int by_stride(int v, int stride) { return stride == 1 ? v : stride == 2 ? v >> 1 : v / stride; }
// The first output whose window of `extent` ends at or after position `at`, and the last one whose window
// begins at or before it.
INLINE int first_window(int at, int padding, int extent, int stride) {
  const int reach = at + padding - (extent - 1);
  return reach <= 0 ? 0 : by_stride(reach + stride - 1, stride);
}
INLINE int last_window(int at, int padding, int stride, int outputs) {
  return min(by_stride(at + padding, stride), outputs - 1);
}
// The window of output `o` along axis d, in adaptive pooling.
INLINE int adaptive_begin(const PoolParams p, int d, int o) { return (long)o * p.in[d] / p.out[d]; }
INLINE int adaptive_end(const PoolParams p, int d, int o) {
  return ((long)(o + 1) * p.in[d] + p.out[d] - 1) / p.out[d];
}
#endif
