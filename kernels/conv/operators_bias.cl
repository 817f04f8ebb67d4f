// Gradient of a convolution's bias: each channel's sum over images and positions, a work-group per channel.
// Defines: TYPE, FLOATING (accumulator.h), LANES (work-items of a group; a power of two).
#include "accumulator.h"

__attribute__((reqd_work_group_size(LANES, 1, 1)))
__kernel void bias(__global void *out_base, ulong out_offset, __global const void *in_base, ulong in_offset,
                   const long out_stride, const long batch, const long batch_stride,
                   const long channel_stride, const long positions) {
  const long channel = get_group_id(0);
  __global const STYPE(TYPE) *in = AT_CONST(TYPE, in_base, in_offset) + channel * channel_stride;
  acc_t total = 0;
#if LANES == 1
  acc16_t sum = (acc16_t)(0);
  for (long n = 0; n < batch; ++n) {
    long i = 0;
    for (; i + 16 <= positions; i += 16) sum += LOAD16(TYPE, in, n * batch_stride + i);
    for (; i < positions; ++i) total += LOAD(TYPE, in, n * batch_stride + i);
  }
  acc_t lane[16];
  vstore16(sum, 0, lane);
  for (int i = 0; i < 16; ++i) total += lane[i];
#else
  __local acc_t partial[LANES];
  const int lane = get_local_id(0);
  for (long n = 0; n < batch; ++n)
    for (long i = lane; i < positions; i += LANES) total += LOAD(TYPE, in, n * batch_stride + i);
  partial[lane] = total;
  for (int step = LANES / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) partial[lane] += partial[lane + step];
  }
  total = partial[0];
  if (lane != 0) return;
#endif
  STORE(TYPE, AT(TYPE, out_base, out_offset), channel * out_stride, TO(TYPE, total));
}
