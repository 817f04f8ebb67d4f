// The range that an average covers along axis d of 2: windows of avg_pool2d, or of adaptive pooling if
// ADAPTIVE is 1.
#ifndef OCLTENSOR_POOL_AVERAGE_H
#define OCLTENSOR_POOL_AVERAGE_H
#include "pool_params.h"
#include "pool_windows.h"

typedef struct {
  int begin, end;  // inside the image
  int count;       // elements that the divisor counts
} Cover;

INLINE Cover cover(const PoolParams p, int d, int o) {
  Cover c;
#if ADAPTIVE
  c.begin = adaptive_begin(p, d, o);
  c.end = adaptive_end(p, d, o);
  c.count = c.end - c.begin;
#else
  const int begin = o * p.stride[d] - p.padding[d];
  const int end = min(begin + p.kernel_size[d], p.in[d] + p.padding[d]);
  c.begin = max(begin, 0);
  c.end = min(end, p.in[d]);
  c.count = p.count_padding ? end - begin : c.end - c.begin;
#endif
  return c;
}

// The outputs [begin, end) whose windows contain input position `at`; `count` is unused.
INLINE Cover covered_by(const PoolParams p, int d, int at) {
  Cover c;
  c.count = 0;
#if ADAPTIVE
  c.begin = (long)at * p.out[d] / p.in[d];
  c.end = ((long)(at + 1) * p.out[d] + p.in[d] - 1) / p.in[d];
#else
  c.begin = first_window(at, p.padding[d], p.kernel_size[d], p.stride[d]);
  c.end = last_window(at, p.padding[d], p.stride[d], p.out[d]) + 1;
#endif
  return c;
}

INLINE T divisor(const PoolParams p, Cover y, Cover x) {
  return p.divisor != 0 ? (T)p.divisor : (T)((long)y.count * x.count);
}
#endif
