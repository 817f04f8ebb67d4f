// Pooling of regions. A work-item takes a bin of a region, and SHARE channels of it (1 where bins are
// PER_BIN), so that the region is placed once for them.
//   INDEXED  a second result, int32: the element of the largest value, or PER_BIN the channel
#include "roi.h"
#include "faults.h"

#if SAMPLED
// The sums over a bin's samples of channels first ... of an image; `image` is at the first channel.
INLINE void sum_samples(__global const STYPE(A) *image, const Region region, int2 bin, int channels,
                        const RoiParams p, T sum[SHARE]) {
  const long plane = (long)p.size[0] * p.size[1];
  for (int c = 0; c < SHARE; ++c) sum[c] = 0;
  const int2 rows = samples_in(region, 0, bin.x, -1, p.size[0]),
             columns = samples_in(region, 1, bin.y, -1, p.size[1]);
  for (int i = rows.x; i < rows.y; ++i) {
    Taps y;
    if (!find_taps(sample_at(region, 0, bin.x, i), p.size[0], &y)) continue;
    for (int j = columns.x; j < columns.y; ++j) {
      Taps x;
      if (!find_taps(sample_at(region, 1, bin.y, j), p.size[1], &x)) continue;
      __global const STYPE(A) *low = image + (long)y.low * p.size[1];
      __global const STYPE(A) *high = image + (long)y.high * p.size[1];
      const T a = y.of_low * x.of_low, b = y.of_low * x.of_high, c = y.of_high * x.of_low,
              d = y.of_high * x.of_high;
      for (int k = 0; k < channels; ++k) {
        const long at = k * plane;
        sum[k] += a * LOAD(A, low, at + x.low) + b * LOAD(A, low, at + x.high) +
                  c * LOAD(A, high, at + x.low) + d * LOAD(A, high, at + x.high);
      }
    }
  }
}
#endif

GROUP __kernel void forward(__global void *out_base, ulong out_offset, __global void *index_base,
                            ulong index_offset, __global const void *image_base, ulong image_offset,
                            __global const void *rois_base, ulong rois_offset, FAULT_PARAMETERS,
                            const RoiParams p) {
  __global STYPE(A) *out = AT(A, out_base, out_offset);
  __global const STYPE(A) *rois = AT_CONST(A, rois_base, rois_offset);
  const long bins = (long)p.pooled[0] * p.pooled[1], plane = (long)p.size[0] * p.size[1];
  const long shares = (p.channels + SHARE - 1) / SHARE;
  FOR_EACH(i, p.pieces, p.per_item) {
#if PER_BIN
    const long r = i / p.channels, first = i - r * p.channels, bin = first % bins;
    const long to = i;
#else
    const long row = i / bins, bin = i - row * bins, r = row / shares, first = (row - r * shares) * SHARE;
    const long to = (r * p.channels + first) * bins + bin;
#endif
    const int channels = min((long)SHARE, p.channels - first);
    const int2 at = (int2)(bin / p.pooled[1], bin % p.pooled[1]);
    const Region region = region_of(rois, r, p);
    if (region.image < 0) {
      if (bin == 0 && first == 0) report_fault(faults, fault_site, (long)LOAD(A, rois, 5 * r), p.batch);
      for (int c = 0; c < channels; ++c) {
        STORE(A, out, to + c * bins, 0);
#if INDEXED
        AT(i32, index_base, index_offset)[to + c * bins] = PER_BIN ? (int)first : -1;
#endif
      }
      continue;
    }
    __global const STYPE(A) *image =
        AT_CONST(A, image_base, image_offset) + (region.image * p.channels + first) * plane;
#if SAMPLED
    T sum[SHARE];
    sum_samples(image, region, at, channels, p, sum);
    const T count = region.samples[0] * region.samples[1];
    for (int c = 0; c < channels; ++c)
      STORE(A, out, to + c * bins, sum[c] / (PER_BIN ? count : fmax(count, (T)1)));
#if INDEXED
    AT(i32, index_base, index_offset)[to] = first;
#endif
#else
    const int2 y = elements_of(region, 0, at.x, p.size[0] - PER_BIN),
               x = elements_of(region, 1, at.y, p.size[1] - PER_BIN);
    const bool empty = y.y <= y.x || x.y <= x.x;
#if PER_BIN
    T sum = 0;
    for (int j = y.x; j < y.y; ++j)
      for (int k = x.x; k < x.y; ++k) sum += LOAD(A, image, (long)j * p.size[1] + k);
    STORE(A, out, to, empty ? (T)0 : sum / (T)((y.y - y.x) * (x.y - x.x)));
    AT(i32, index_base, index_offset)[to] = first;
#else
    for (int c = 0; c < channels; ++c) {
      T largest = empty ? (T)0 : (T)-FLT_MAX;
      int place = -1;
      for (int j = y.x; j < y.y; ++j)
        for (int k = x.x; k < x.y; ++k) {
          const int element = j * p.size[1] + k;
          const T v = LOAD(A, image, c * plane + element);
          if (!(v > largest)) continue;
          largest = v;
          place = element;
        }
      STORE(A, out, to + c * bins, largest);
      AT(i32, index_base, index_offset)[to + c * bins] = place;
    }
#endif
#endif
  }
}
