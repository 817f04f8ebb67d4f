// Dropout of a row-major tensor of type A: mask and scaled input in one pass. p = the dropout probability as
// a number of units, and the scale as bits of A's compute type. VEC, for GPUs: the elements of a run, which
// are aligned and move as vectors.
#include "types.h"
#include "draw.h"
#ifdef VEC
#include "element_vectors.h"
#define WHOLE_RUN                                             \
  CTYPE(A) x[VEC];                                            \
  uchar4 kept;                                                \
  LOADV(A, in, first, x);                                     \
  UNROLL for (int k = 0; k < VEC; ++k) {                      \
    ((uchar *)&kept)[k] = UNIT_BITS(words[k]) >= dropped;     \
    x[k] *= ((uchar *)&kept)[k] ? scale : 0;                  \
  }                                                           \
  STOREV(A, out, first, x);                                   \
  *(__global uchar4 *)(mask + first) = kept;
#else
#define WHOLE_RUN DRAW_EACH(RUN, first, words, i, w, ONE)
#endif
#define ONE                                                   \
  const bool kept = UNIT_BITS(w) >= dropped;                  \
  mask[i] = kept;                                             \
  STORE(A, out, i, LOAD(A, in, i) * (kept ? scale : (CTYPE(A))0));

GROUP __kernel void dropout(__global void *out_base, ulong out_offset, __global void *mask_base,
                            ulong mask_offset, __global const void *in_base, ulong in_offset,
                            const RandomParams p) {
  __global STYPE(A) *out = AT(A, out_base, out_offset);
  __global uchar *mask = AT(u8, mask_base, mask_offset);
  __global const STYPE(A) *in = AT_CONST(A, in_base, in_offset);
  const CTYPE(A) scale = FROM_BITS(A, p.p[1]);
  const WORD dropped = (WORD)p.p[0];
  DRAW_RUNS(p, first, words, WHOLE_RUN, i, w, ONE)
}
