// Regions of images and their bins, as torchvision places them. Defines: A, the images' type;
//   SAMPLED  bins have samples, which are interpolated; else they have whole elements
//   PER_BIN  each bin has channels of its own: channel c is read by bin c % bins alone
#ifndef OCLTENSOR_ROI_H
#define OCLTENSOR_ROI_H
#include "types.h"
#include "range.h"
#include "roi_params.h"
// The number of samples jumps where a bin's size is a whole number, and elements belong to a bin by such
// comparisons, too: roundings are those of torchvision's CPU kernels, without fused multiply-add.
#pragma OPENCL FP_CONTRACT OFF
typedef CTYPE(A) T;

typedef struct {
  long image;          // -1: outside of the batch
  T start[2], bin[2];  // of height and width, in elements
  T samples[2];        // in a bin
} Region;

INLINE long image_of(T number, const RoiParams p) {
  return number > -1 && number < p.batch ? (long)number : -1;
}

INLINE Region region_of(__global const STYPE(A) *rois, long r, const RoiParams p) {
  __global const STYPE(A) *roi = rois + 5 * r;
  const T scale = FROM_BITS(A, p.scale);
  Region region;
  region.image = image_of(LOAD(A, roi, 0), p);
  for (int d = 0; d < 2; ++d) {
#if SAMPLED
    const T offset = p.aligned ? (T)0.5f : (T)0;
    const T start = LOAD(A, roi, 2 - d) * scale - offset, end = LOAD(A, roi, 4 - d) * scale - offset;
    const T size = !p.aligned && end - start < 1 ? (T)1 : end - start;
    region.bin[d] = size / p.pooled[d];
    region.samples[d] = p.samples > 0 ? (T)p.samples : ceil(region.bin[d]);
    if (!(region.samples[d] < (1 << 24))) region.samples[d] = 0;  // NaN and infinity
#else
    const T most = 1 << 29;
    const T start = fmin(fmax(round(LOAD(A, roi, 2 - d) * scale), -most), most);
    const T end = fmin(fmax(round(LOAD(A, roi, 4 - d) * scale), -most), most);
    region.bin[d] = fmax(end - start + (PER_BIN ? 0 : 1), (T)1) / p.pooled[d];
    region.samples[d] = 0;
#endif
    region.start[d] = start;
  }
  return region;
}

// Those of `count` places, `step` apart from `base` on, that may be in [low, high]: a few more at both ends.
INLINE int2 places_in(T base, T step, T low, T high, T count) {
  if (step == 0) return (int2)(0, max((int)count, 0));
  const T a = (low - base) / step, b = (high - base) / step;
  const T first = floor(fmin(a, b)) - 1, last = ceil(fmax(a, b)) + 1;
  return (int2)((int)fmin(fmax(first, (T)0), count), (int)fmin(fmax(last, (T)0), count));
}

#if SAMPLED
// What a sample reads along one dimension.
typedef struct {
  int low, high;
  T of_low, of_high;  // weights
} Taps;

INLINE T sample_at(const Region region, int d, int bin, int sample) {
  const T within = ((T)sample + (T)0.5f) * region.bin[d] / region.samples[d];
  return region.start[d] + bin * region.bin[d] + within;
}
// False where the sample is outside, and reads nothing.
INLINE bool find_taps(T at, int size, Taps *taps) {
  if (!(at >= -1 && at <= size && size > 0)) return false;
  at = at <= 0 ? (T)0 : at;
  const int low = (int)at;
  const bool last = low >= size - 1;
  taps->low = last ? size - 1 : low;
  taps->high = last ? size - 1 : low + 1;
  taps->of_high = last ? (T)0 : at - low;
  taps->of_low = 1 - taps->of_high;
  return true;
}
// The samples of a bin that may be in [low, high].
INLINE int2 samples_in(const Region region, int d, int bin, T low, T high) {
  return places_in(region.start[d] + bin * region.bin[d], region.bin[d] / region.samples[d], low, high,
                   region.samples[d]);
}
#else
// The elements of a bin along one dimension: from .x to before .y, within [0, limit].
INLINE int2 elements_of(const Region region, int d, int bin, int limit) {
  const int start = (int)region.start[d];
  const int low = start + (int)floor(bin * region.bin[d]);
  const int high = start + (int)ceil((bin + 1) * region.bin[d]);
  return (int2)(min(max(low, 0), limit), min(max(high, 0), limit));
}
#endif
#endif
