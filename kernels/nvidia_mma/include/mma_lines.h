// Operands of a product as lines in memory, from which a work-item copies the same chunk of every PACE-th
// line to the buffers of mma_tile.h.
#ifndef OCLTENSOR_MMA_LINES_H
#define OCLTENSOR_MMA_LINES_H
#include "mma_tile.h"

typedef struct {
  __global const char *from;  // its first chunk in the next tile
  long pace, step;            // bytes to its next chunk, and to the next tile along k
  int line, chunk;
  int lines_left, elements_left;  // from its first chunk to the ends of the operand
} Chunks;

// `first` is the first row (column) of the tile, of `all`; k runs from `k` to `all_k`.
INLINE Chunks chunks_of(__global const char *operand, long line_elements, int along_k, int width, int first,
                        int all, int k, int all_k) {
  const int item = get_local_id(0);
  Chunks c;
  c.line = item / CHUNKS(along_k, width);
  c.chunk = item % CHUNKS(along_k, width);
  const int line = (along_k ? first : k) + c.line, at = (along_k ? k : first) + c.chunk * CHUNK_ELEMENTS;
  c.from = operand + (line * line_elements + at) * ELEMENT_BYTES;
  c.pace = line_elements * PACE(along_k, width) * ELEMENT_BYTES;
  c.step = along_k ? LINE_BYTES : line_elements * BK * ELEMENT_BYTES;
  c.lines_left = (along_k ? all : all_k) - line;
  c.elements_left = (along_k ? all_k : all) - at;
  return c;
}
INLINE void next_tile(Chunks *c, int along_k) {
  c->from += c->step;
  if (along_k) c->elements_left -= BK;
  else c->lines_left -= BK;
}
// Of the item's copy `i`: the bytes that exist, whether the buffer has it, and where.
#define BYTES_OF(c, i, along_k, width)                                \
  ((c)->lines_left > (i) * PACE(along_k, width)                       \
       ? clamp((c)->elements_left, 0, CHUNK_ELEMENTS) * ELEMENT_BYTES \
       : 0)
#define HAS_COPY(c, along_k, width) \
  (LINES(along_k, width) % PACE(along_k, width) == 0 || (c)->line < LINES(along_k, width))
#define PLACE_OF(c, i, along_k, width)                                           \
  ((along_k) ? place_along_k((c)->line + (i) * PACE(along_k, width), (c)->chunk) \
             : place_across_k((c)->line + (i) * PACE(along_k, width), (c)->chunk, CHUNKS(along_k, width)))

#if ASYNC
// `whole`: all chunks exist, and none ends early.
INLINE void copy_lines(__local uchar *tiles, uint to, Chunks *c, int along_k, int width, bool whole) {
  if (HAS_COPY(c, along_k, width)) {
    UNROLL for (int i = 0; i < COPIES(along_k, width); ++i) {
      const uint place = to + PLACE_OF(c, i, along_k, width);
      __global const char *from = c->from + i * c->pace;
      if (whole) copy_whole_chunk(tiles, place, from);
      else copy_chunk(tiles, place, from, BYTES_OF(c, i, along_k, width));
    }
  }
  next_tile(c, along_k);
}
#else
INLINE void read_lines(uint4 *held, Chunks *c, int along_k, int width) {
  UNROLL for (int i = 0; i < COPIES(along_k, width); ++i)
    held[i] = load_chunk(c->from + i * c->pace, BYTES_OF(c, i, along_k, width));
  next_tile(c, along_k);
}
INLINE void write_lines(__local uchar *tiles, uint to, const uint4 *held, const Chunks *c, int along_k,
                        int width) {
  if (!HAS_COPY(c, along_k, width)) return;
  UNROLL for (int i = 0; i < COPIES(along_k, width); ++i)
    store_chunk(tiles, to + PLACE_OF(c, i, along_k, width), held[i]);
}
#endif
#endif
