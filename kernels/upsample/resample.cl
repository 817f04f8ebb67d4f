// Resampling of [outer, from, inner] numbers of type IN along the dimension in the middle, to type OUT;
// BACKWARD: the gradient, in which each place of the small side is the sum over the places of the large side
// that read it.
//   CPU_STYLE  a work-item takes 16 adjacent numbers (along `inner`, or `outer` if that is short) and some of
//              their results, so that weights are computed once for all 16; else a work-item takes a result
#include "range.h"
#include "types.h"
typedef CTYPE(COMPUTE) T;
#include "resample_taps.h"

#if BACKWARD
#define FROM p.large
#define TO_SIZE p.small
#else
#define FROM p.small
#define TO_SIZE p.large
#endif

// Calls SUM(place, weight) for each place that result r reads. `reader`: no place before it reads r or a
// later result.
#if BACKWARD
#define START_AT(r) int reader = first_reader(p, r);
#define FOR_READ(r, SUM)                                                       \
  while (reader < p.large && ends_before(p, range_of(p, reader), r)) ++reader; \
  for (int o = reader; o < p.large; ++o) {                                     \
    const Taps taps = taps_of(p, o);                                           \
    if (begins_behind(taps, r)) break;                                         \
    const T weight = share_of(p, taps, r);                                     \
    SUM(o, weight)                                                             \
  }
#else
#define START_AT(r)
#define FOR_READ(r, SUM)                      \
  const Taps taps = taps_of(p, r);            \
  for (int k = 0; k < taps.count; ++k) {      \
    const T weight = weight_of(taps, k);      \
    SUM(place_of(p, taps, k), weight)         \
  }
#endif

#if MOVES  // nearest: elements are only moved
#define ADD(sum, value, weight) sum = value
#define NUMBER CTYPE(IN)
#define NUMBERS CVEC(IN)
#define LOADED16(place) LOAD16(IN, source, (place) * p.inner)
#else
#define ADD(sum, value, weight) sum += (value) * (weight)
#define NUMBER T
#define NUMBERS CVEC(COMPUTE)
#define LOADED16(place) TO16(COMPUTE, LOAD16(IN, source, (place) * p.inner))
#endif
#if ROUNDED  // to a byte: cubic weights go below 0 and above 1
#define RESULT(v) TO(OUT, rint(fmin(fmax(v, (T)0), (T)255)))
#define RESULTS(v) TO16(OUT, rint(fmin(fmax(v, (T)0), (T)255)))
#else
#define RESULT(v) (v)
#define RESULTS(v) (v)
#endif

GROUP __kernel void resample(__global void *out_base, ulong out_offset, __global const void *in_base,
                             ulong in_offset, const ResampleParams p) {
  __global const STYPE(IN) *in = AT_CONST(IN, in_base, in_offset);
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
#if CPU_STYLE
  const bool along = p.inner >= 16;  // lanes run along inner
  const long lanes = along ? p.inner : p.outer, others = along ? p.outer : p.inner;
  const long groups = (lanes + 15) / 16, share = (TO_SIZE + p.chunks - 1) / p.chunks;
  FOR_EACH(i, p.pieces, p.per_item) {
    const long rest = i / p.chunks, chunk = i - rest * p.chunks, other = rest / groups;
    const long lane = (rest - other * groups) * 16, used = min(lanes - lane, 16L);
    const long from_step = along ? 1 : FROM * p.inner, to_step = along ? 1 : TO_SIZE * p.inner;
    __global const STYPE(IN) *source = in + (along ? other * FROM * p.inner : other) + lane * from_step;
    __global STYPE(OUT) *target = out + (along ? other * TO_SIZE * p.inner : other) + lane * to_step;
    long from_at[16];  // lanes without a number read the last one's
    for (int l = 0; l < 16; ++l) from_at[l] = min((long)l, used - 1) * from_step;
    START_AT(chunk * share)
    for (int r = chunk * share; r < min((chunk + 1) * share, (long)TO_SIZE); ++r) {
      if (along && used == 16) {
        NUMBERS sums = 0;
#define SUM(place, weight) ADD(sums, LOADED16(place), weight);
        FOR_READ(r, SUM)
#undef SUM
        STORE16(OUT, target, r * p.inner, RESULTS(sums));
      } else {
        NUMBER sums[16];
        UNROLL for (int l = 0; l < 16; ++l) sums[l] = 0;
#define SUM(place, weight) \
  UNROLL for (int l = 0; l < 16; ++l) ADD(sums[l], LOAD(IN, source, (place) * p.inner + from_at[l]), weight);
        FOR_READ(r, SUM)
#undef SUM
        for (int l = 0; l < used; ++l) STORE(OUT, target, r * p.inner + l * to_step, RESULT(sums[l]));
      }
    }
  }
#else
  FOR_EACH(i, p.pieces, p.per_item) {
    const INDEX row = (INDEX)i / (INDEX)p.inner, outer = row / (INDEX)TO_SIZE;
    __global const STYPE(IN) *source = in + (long)outer * FROM * p.inner + ((INDEX)i - row * (INDEX)p.inner);
    const int r = row - outer * TO_SIZE;
    NUMBER sum = 0;
    START_AT(r)
#define SUM(place, weight) ADD(sum, LOAD(IN, source, (place) * p.inner), weight);
    FOR_READ(r, SUM)
    STORE(OUT, out, i, RESULT(sum));
  }
#endif
}
