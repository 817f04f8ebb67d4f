// Gradients of images whose regions were pooled, for CPU drivers: a work-item takes some channels of an
// image, and adds up all regions, in type T.
#include "roi.h"

ONE_ITEM __kernel void backward(__global void *out_base, ulong out_offset, __global const void *gradient_base,
                                ulong gradient_offset, __global const void *rois_base, ulong rois_offset,
                                __global const void *argmax_base, ulong argmax_offset, const RoiParams p) {
  __global const STYPE(A) *gradient = AT_CONST(A, gradient_base, gradient_offset);
  const long plane = (long)p.size[0] * p.size[1], bins = (long)p.pooled[0] * p.pooled[1];
  const long shares = (p.channels + p.share - 1) / p.share;
  FOR_EACH(i, p.pieces, p.per_item) {
    const long n = i / shares, first = (i - n * shares) * p.share;
    const long end = min(first + p.share, (long)p.channels);
    __global T *out = (__global T *)((__global char *)out_base + out_offset) + n * p.channels * plane;
    for (long k = first * plane; k < end * plane; ++k) out[k] = 0;
    for (long r = 0; r < p.rois; ++r) {
      const Region region = region_of(AT_CONST(A, rois_base, rois_offset), r, p);
      if (region.image != n) continue;
      for (long bin = 0; bin < bins; ++bin) {
        const int2 at = (int2)(bin / p.pooled[1], bin % p.pooled[1]);
        // The channels of the share that the bin read, and where their gradients are.
#if PER_BIN
        const long c0 = first + (bin - first % bins + bins) % bins, step = bins;
        __global const STYPE(A) *g = gradient + r * p.channels;
#define GRADIENT(c) LOAD(A, g, c)
#else
        const long c0 = first, step = 1;
        __global const STYPE(A) *g = gradient + r * p.channels * bins + bin;
#define GRADIENT(c) LOAD(A, g, (c) * bins)
#endif
#if SAMPLED
        const T count = region.samples[0] * region.samples[1];
        const int2 rows = samples_in(region, 0, at.x, -1, p.size[0]),
                   columns = samples_in(region, 1, at.y, -1, p.size[1]);
        for (int j = rows.x; j < rows.y; ++j) {
          Taps y;
          if (!find_taps(sample_at(region, 0, at.x, j), p.size[0], &y)) continue;
          for (int k = columns.x; k < columns.y; ++k) {
            Taps x;
            if (!find_taps(sample_at(region, 1, at.y, k), p.size[1], &x)) continue;
            const long low = (long)y.low * p.size[1], high = (long)y.high * p.size[1];
            for (long c = c0; c < end; c += step) {
              const T v = GRADIENT(c);
              __global T *to = out + c * plane;
              to[low + x.low] += v * (y.of_low * x.of_low) / count;
              to[low + x.high] += v * (y.of_low * x.of_high) / count;
              to[high + x.low] += v * (y.of_high * x.of_low) / count;
              to[high + x.high] += v * (y.of_high * x.of_high) / count;
            }
          }
        }
#elif PER_BIN
        const int2 y = elements_of(region, 0, at.x, p.size[0]), x = elements_of(region, 1, at.y, p.size[1]);
        for (long c = c0; c < end; c += step) {
          const T v = GRADIENT(c) / (T)((y.y - y.x) * (x.y - x.x));
          for (int j = y.x; j < y.y; ++j)
            for (int k = x.x; k < x.y; ++k) out[c * plane + (long)j * p.size[1] + k] += v;
        }
#else
        __global const int *argmax = AT_CONST(i32, argmax_base, argmax_offset) + r * p.channels * bins + bin;
        for (long c = c0; c < end; c += step) {
          const int place = argmax[c * bins];
          if (place >= 0 && place < plane) out[c * plane + place] += GRADIENT(c);
        }
#endif
      }
    }
  }
}
