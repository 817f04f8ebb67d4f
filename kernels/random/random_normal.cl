// Normal numbers by Box and Muller, "A note on the generation of random normal deviates", 1958: elements 2k
// and 2k + 1 of a row-major OUT tensor share two words. p = mean, standard deviation, as REAL.
#include "types.h"
#include "draw.h"

#ifdef cl_khr_fp64
#define REAL_BITS(u) as_double(u)
#define TWO_PI 6.28318530717958647693
#else
#define REAL_BITS(u) as_float((uint)(u))
#define TWO_PI 6.28318531f
#endif

GROUP __kernel void normal(__global void *out_base, ulong out_offset, const RandomParams p) {
  __global STYPE(OUT) *out = AT(OUT, out_base, out_offset);
  const REAL mean = REAL_BITS(p.p[0]), deviation = REAL_BITS(p.p[1]);
  FOR_EACH(chunk, p.chunks, p.per_item) {
    uint words[4 * BLOCKS];
    DRAW_WORDS(p.seed, p.offset + (ulong)chunk * BLOCKS, words);
    const long first = chunk * RUN;
    for (int k = 0; k < RUN && first + k < p.count; k += 2) {
      const REAL open = (REAL)(UNIT_BITS(WORD_AT(words, k)) + 1) * REAL_UNIT;
      const REAL angle = (REAL)TWO_PI * ((REAL)UNIT_BITS(WORD_AT(words, k + 1)) * REAL_UNIT);
      const REAL radius = sqrt((REAL)-2 * log(open));
      REAL cosine;
      const REAL sine = sincos(angle, &cosine);
      STORE(OUT, out, first + k, TO(OUT, mean + deviation * radius * cosine));
      if (first + k + 1 < p.count) STORE(OUT, out, first + k + 1, TO(OUT, mean + deviation * radius * sine));
    }
  }
}
