// Nearest upsampling of planes for GPUs: a work-item writes 16 bytes of a row, at a multiple of 16 bytes, so
// that their place is divided out once. Rows of the result are whole vectors.
// Defines: BYTES of an element (1, 2, 4 or 8), which is moved as it is; A, FLOATING, LINEAR 0, CORNERS 0 for
// upsample_source.h; INDEX: uint if elements are below 2^31, else ulong.
#include "range.h"
#include "types.h"
#include "upsample_source.h"

#if BYTES == 8
typedef ulong number;
#define PACKED(v) as_uint4((ulong2)(v[0], v[1]))
#elif BYTES == 4
typedef uint number;
#define PACKED(v) ((uint4)(v[0], v[1], v[2], v[3]))
#elif BYTES == 2
typedef ushort number;
#define PAIR(v, i) ((uint)v[i] | (uint)v[i + 1] << 16)
#define PACKED(v) ((uint4)(PAIR(v, 0), PAIR(v, 2), PAIR(v, 4), PAIR(v, 6)))
#else
typedef uchar number;
#define FOUR(v, i) ((uint)v[i] | (uint)v[i + 1] << 8 | (uint)v[i + 2] << 16 | (uint)v[i + 3] << 24)
#define PACKED(v) ((uint4)(FOUR(v, 0), FOUR(v, 4), FOUR(v, 8), FOUR(v, 12)))
#endif
#define COUNT (16 / BYTES)

GROUP __kernel void forward(__global void *target_base, ulong target_offset, __global const void *source_base,
                            ulong source_offset, const UpsampleParams p) {
  __global uint4 *target = (__global uint4 *)((__global char *)target_base + target_offset);
  __global const number *from =
      (__global const number *)((__global const char *)source_base + source_offset);
  const INDEX vectors = (INDEX)(p.out[1] / COUNT);  // of a row
  FOR_EACH(i, p.pieces, p.per_item) {
    const INDEX row = (INDEX)i / vectors, plane = row / (INDEX)p.out[0];
    const int first = (int)((INDEX)i - row * vectors) * COUNT;
    const int y = source(p, 0, (int)(row - plane * (INDEX)p.out[0])).low;
    __global const number *line = from + ((long)plane * p.in[0] + y) * p.in[1];
    number v[COUNT];
    UNROLL for (int e = 0; e < COUNT; ++e) v[e] = line[source(p, 1, first + e).low];
    target[i] = PACKED(v);
  }
}
