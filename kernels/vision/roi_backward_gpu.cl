// Gradients of images whose regions were pooled, for GPUs: a work-item takes an element of SHARE channels,
// and adds up what the regions' bins read of it, in the order of regions and bins.
//   regions   places the regions: an image, and three pairs of numbers, for each
#include "roi.h"
#define NUMBERS 7

GROUP __kernel void regions(__global void *out_base, ulong out_offset, __global const void *rois_base,
                            ulong rois_offset, const RoiParams p) {
  FOR_EACH(r, p.pieces, p.per_item) {
    const Region region = region_of(AT_CONST(A, rois_base, rois_offset), r, p);
    __global T *out = (__global T *)((__global char *)out_base + out_offset) + NUMBERS * r;
    out[0] = region.image;
    for (int d = 0; d < 2; ++d) {
      out[1 + d] = region.start[d];
      out[3 + d] = region.bin[d];
      out[5 + d] = region.samples[d];
    }
  }
}

INLINE Region stored_region(__global const T *regions, long r) {
  __global const T *from = regions + NUMBERS * r;
  const Region region = {(long)from[0], {from[1], from[2]}, {from[3], from[4]}, {from[5], from[6]}};
  return region;
}

// The bins of a region that may read element `at` of a dimension.
INLINE int2 bins_at(const Region region, int d, int at, const RoiParams p) {
  return places_in(region.start[d], region.bin[d], at - 1, at + 1, p.pooled[d]);
}

// The weight with which a bin reads element `at` of a dimension.
INLINE T weight_of(const Region region, int d, int bin, int at, int size) {
  T weight = 0;
#if SAMPLED
  const int2 samples = samples_in(region, d, bin, at - 1, at + 1);
  for (int i = samples.x; i < samples.y; ++i) {
    Taps taps;
    if (!find_taps(sample_at(region, d, bin, i), size, &taps)) continue;
    if (taps.low == at) weight += taps.of_low;
    if (taps.high == at) weight += taps.of_high;
  }
  if (weight != 0) weight /= region.samples[d];
#else
  const int2 elements = elements_of(region, d, bin, size);
  if (at >= elements.x && at < elements.y) weight = PER_BIN ? (T)1 / (elements.y - elements.x) : (T)1;
#endif
  return weight;
}

__kernel void backward(__global void *out_base, ulong out_offset, __global const void *gradient_base,
                       ulong gradient_offset, __global const void *regions_base, ulong regions_offset,
                       __global const void *argmax_base, ulong argmax_offset, const RoiParams p) {
  __global const STYPE(A) *gradient = AT_CONST(A, gradient_base, gradient_offset);
  __global const T *regions = (__global const T *)((__global const char *)regions_base + regions_offset);
  const long plane = (long)p.size[0] * p.size[1], bins = (long)p.pooled[0] * p.pooled[1];
  const long shares = (p.channels + SHARE - 1) / SHARE;
  FOR_EACH(i, p.pieces, p.per_item) {
    const long row = i / plane, n = row / shares, first = (row - n * shares) * SHARE;
    const int element = i - row * plane, y = element / p.size[1], x = element - y * p.size[1];
    const int channels = min((long)SHARE, p.channels - first);
    T sum[SHARE];
    for (int c = 0; c < SHARE; ++c) sum[c] = 0;
    for (long r = 0; r < p.rois; ++r) {
      if (regions[NUMBERS * r] != n) continue;
      const Region region = stored_region(regions, r);
      int2 rows = bins_at(region, 0, y, p), columns = bins_at(region, 1, x, p);
#if PER_BIN
      const int bin = first % bins, own_row = bin / p.pooled[1], own_column = bin - own_row * p.pooled[1];
      if (own_row < rows.x || own_row >= rows.y) continue;
      if (own_column < columns.x || own_column >= columns.y) continue;
      rows = (int2)(own_row, own_row + 1);
      columns = (int2)(own_column, own_column + 1);
#endif
      for (int j = rows.x; j < rows.y; ++j) {
        const T of_row = weight_of(region, 0, j, y, p.size[0]);
        if (of_row == 0) continue;
        for (int k = columns.x; k < columns.y; ++k) {
          const T weight = of_row * weight_of(region, 1, k, x, p.size[1]);
          if (weight == 0) continue;
          const long from =
              PER_BIN ? r * p.channels + first : (r * p.channels + first) * bins + j * p.pooled[1] + k;
          for (int c = 0; c < channels; ++c) {
#if SAMPLED || PER_BIN
            sum[c] += weight * LOAD(A, gradient, from + c * bins);
#else
            if (AT_CONST(i32, argmax_base, argmax_offset)[from + c * bins] == element)
              sum[c] += LOAD(A, gradient, from + c * bins);
#endif
          }
        }
      }
    }
    for (int c = 0; c < channels; ++c)
      STORE(A, AT(A, out_base, out_offset), (n * p.channels + first + c) * plane + element, sum[c]);
  }
}
