// One tile of BM x BN of a product on a matrix unit: operands' lines of LINE_BYTES along k in local memory,
// and sub-groups with FRAGMENTS_M x FRAGMENTS_N fragments of sums, which they take in turns: fragment (i, j)
// of sub-group (m, n) is the (i SUBGROUPS_M + m)-th along the rows, the (j SUBGROUPS_N + n)-th along columns.
// Defines, besides those of matrix_unit.h: FRAGMENTS_M, FRAGMENTS_N; SUBGROUPS_M, SUBGROUPS_N; LINE_BYTES;
// BUFFERS 1 or 2; AHEAD (1: registers receive the next lines while these are multiplied); A_ALONG_K,
// B_ALONG_K (1: an operand's numbers are adjacent in memory along k, 0: across it). What is adjacent begins
// at multiples of 16 bytes.
#ifndef OCLTENSOR_UNIT_TILE_H
#define OCLTENSOR_UNIT_TILE_H
#include "matrix_unit.h"

#define ITEMS (SUBGROUPS_M * SUBGROUPS_N * LANES)
#define BM (SUBGROUPS_M * FRAGMENTS_M * FRAGMENT_M)
#define BN (SUBGROUPS_N * FRAGMENTS_N * FRAGMENT_N)
#define LINE_WORDS (LINE_BYTES / 4)
#define STEPS (LINE_WORDS / STEP_WORDS)
#define BK (LINE_WORDS * PER_WORD)
#define CHUNK 16
#define CHUNK_WORDS 4
// Four words apart more than they are long: lines that are read at once, at one place, are in other banks.
#define PITCH (LINE_WORDS + CHUNK_WORDS)
#define A_WORDS (BM * PITCH)
#define BUFFER_WORDS (A_WORDS + BN * PITCH)
#define TILE_WORDS (BUFFERS * BUFFER_WORDS)
#define PLACE(right, line, word) ((right) ? RIGHT_PLACE(line, word) : LEFT_PLACE(line, word))

// ---- Lines from memory, through registers.

typedef struct {
  __global const char *from;
  long step;            // bytes from one run of adjacent numbers to the next
  int runs, elements;  // that there are, and in a run
} Lines;

#if PER_WORD == 1
typedef __global const uint *ElementPointer;
#elif PER_WORD == 2
typedef __global const ushort *ElementPointer;
#else
typedef __global const uchar *ElementPointer;
#endif
// The first numbers of a chunk. One by one: unrolled, it would be most of the kernel.
INLINE uint4 load_part(ElementPointer from, int elements) {
  uint4 v = (uint4)(0);
  ROLLED for (int e = 0; e < elements; ++e) {
    const uint bits = (uint)from[e] << (e % PER_WORD * 8 * ELEMENT_BYTES);
    v |= (uint4)(bits) & as_uint4((int4)(e / PER_WORD) == (int4)(0, 1, 2, 3));
  }
  return v;
}
// 16 bytes of a run from `element` on, zeros where there are none.
INLINE uint4 load_chunk(const Lines l, int run, int element) {
  __global const char *from = l.from + run * l.step + (long)element * ELEMENT_BYTES;
  const int elements = run < l.runs ? l.elements - element : 0;
  uint4 v = (uint4)(0);
  if (elements >= CHUNK_ELEMENTS) v = *(__global const uint4 *)from;
  else if (elements > 0) v = load_part((ElementPointer)from, elements);
  return v;
}
INLINE uint4 load_whole_chunk(const Lines l, int run, int element) {
  return *(__global const uint4 *)(l.from + run * l.step + (long)element * ELEMENT_BYTES);
}

// A buffer's lines are read in units, of which items have equal shares: a chunk along k, or across k as many
// chunks as a word has numbers.
#define CHUNKS_OF_LINE (LINE_WORDS / CHUNK_WORDS)
#define UNIT_CHUNKS(ALONG_K) ((ALONG_K) ? 1 : PER_WORD)
#define UNITS(ALONG_K, WIDTH) \
  ((ALONG_K) ? (WIDTH)*CHUNKS_OF_LINE : LINE_WORDS * ((WIDTH) / CHUNK_ELEMENTS))
#define SHARE(ALONG_K, WIDTH) ((UNITS(ALONG_K, WIDTH) + ITEMS - 1) / ITEMS)
#define SHARE_OF_A SHARE(A_ALONG_K, BM)
#define SHARE_OF_B SHARE(B_ALONG_K, BN)
#define HAS_UNIT(ALONG_K, WIDTH, unit) \
  (UNITS(ALONG_K, WIDTH) % ITEMS == 0 || (unit) < UNITS(ALONG_K, WIDTH))
#include "written_out.h"

// Reads share `i` of an operand's lines from `line` on, k from `k` on, to held[i]; `whole`: none lacks any.
INLINE void read_unit(uint4 *held, const Lines l, int along_k, int width, int line, int k, bool whole,
                      int i) {
  const int unit = get_local_id(0) + i * ITEMS;
  if (!HAS_UNIT(along_k, width, unit)) return;
  held += i * UNIT_CHUNKS(along_k);
  const int run = along_k ? line + unit / CHUNKS_OF_LINE : k + unit % LINE_WORDS * PER_WORD;
  const int element = along_k ? k + unit % CHUNKS_OF_LINE * CHUNK_ELEMENTS
                              : line + unit / LINE_WORDS * CHUNK_ELEMENTS;
#define READ_CHUNK(j) \
  held[j] = whole ? load_whole_chunk(l, run + j, element) : load_chunk(l, run + j, element);
  READ_CHUNK(0)
  if (along_k) return;
#if PER_WORD > 1
  READ_CHUNK(1)
#endif
#if PER_WORD > 2
  READ_CHUNK(2)
  READ_CHUNK(3)
#endif
}

// Word along k of line `e` of those whose numbers are in `chunks`, one chunk for each k of a word.
INLINE uint word_of(const uint *chunks, int e) {
#if PER_WORD == 1
  return chunks[e];
#elif PER_WORD == 2
  const uint a = chunks[e / 2], b = chunks[4 + e / 2];
  return e & 1 ? a >> 16 | (b & 0xffff0000u) : (a & 0xffffu) | b << 16;
#else
  const uint shift = e % 4 * 8;
  return as_uint((uchar4)(chunks[e / 4] >> shift, chunks[4 + e / 4] >> shift, chunks[8 + e / 4] >> shift,
                          chunks[12 + e / 4] >> shift));
#endif
}
// Writes what was read, of the right operand or the left one.
INLINE void write_unit(__local uint *to, const uint4 *held, bool right, int along_k, int width, int i) {
  const int unit = get_local_id(0) + i * ITEMS;
  if (!HAS_UNIT(along_k, width, unit)) return;
  held += i * UNIT_CHUNKS(along_k);
  if (along_k) {
    const int line = unit / CHUNKS_OF_LINE, word = unit % CHUNKS_OF_LINE * CHUNK_WORDS;
    const int stride = right ? RIGHT_STRIDE : LEFT_STRIDE;
    to += PLACE(right, line, word);
    if (stride == 1) *(__local uint4 *)to = held[0];
    else to[0] = held[0].x, to[stride] = held[0].y, to[2 * stride] = held[0].z, to[3 * stride] = held[0].w;
  } else {
    const int line = unit / LINE_WORDS * CHUNK_ELEMENTS, word = unit % LINE_WORDS;
#define WRITE_WORD(e, x) to[PLACE(right, line + e, word)] = word_of((const uint *)held, e);
    EACH_WORD(WRITE_WORD, )
  }
}

// ---- Products

// sums[i][j] += a buffer's lines: row fragment i times column fragment j of sub-group (m, n).
INLINE void multiply_lines(sums_t sums[][FRAGMENTS_N], __local const uint *buffer, __local uint *shown, int m,
                           int n, int lane) {
  STEP_LOOP for (int s = 0; s < STEPS; ++s) {
    left_t a[FRAGMENTS_M];
    right_t b;
#define LOAD_LEFT(i, x) \
  a[i] = LEFT_FRAGMENT(buffer, (i * SUBGROUPS_M + m) * FRAGMENT_M, s * STEP_WORDS, lane);
#define MULTIPLY(i, j) sums[i][j] = multiply(shown, sums[i][j], a[i], b);
#define MULTIPLY_COLUMN(j, x)                                                        \
  b = RIGHT_FRAGMENT(buffer + A_WORDS, (j * SUBGROUPS_N + n) * FRAGMENT_N, s * STEP_WORDS, lane); \
  EACH_M(MULTIPLY, j)
    EACH_M(LOAD_LEFT, )
    EACH_N(MULTIPLY_COLUMN, )
  }
}
#endif
