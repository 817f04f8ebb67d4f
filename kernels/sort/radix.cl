// Radix sort of rows of any length for GPUs, by digits of 8 bits from the lowest on: a pass counts the digits
// of each tile (count_digits), sums the counts over the tiles of a row (sum_counts) and moves entries to
// their places (move). A tile is first sorted by the digit, so that adjacent work-items write adjacent
// places. The first pass reads the input, the last one writes results. SOME: keys are likely to agree in most
// bits: `vary` finds these, and passes over them return at once.
#include "sort_tile.h"
#include "radix_params.h"

#define BINS (256 / GROUP > 0 ? 256 / GROUP : 1)  // of an item
#define MEMORY(T, at) AT_BYTES(T, memory_base, memory_offset + (at))

TILE_GROUP __kernel void vary(__global void *memory_base, ulong memory_offset, __global const void *in_base,
                              ulong in_offset, const RadixParams p) {
  __local uint varying[2];
  __global const WORD *in = AT_BYTES(const WORD, in_base, in_offset);
  const uint id = get_local_id(0);
  const long all = p.rows * p.length, start = (long)get_group_id(0) * TILE + id;
  if (id < 2) varying[id] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const Key first = key_of(in[0]);
  Key differing = 0;
  UNROLL for (int k = 0; k < ITEMS; ++k)
    if (start + k * GROUP < all) differing |= key_of(in[start + k * GROUP]) ^ first;
  if ((uint)differing) atomic_or(varying, (uint)differing);
  if ((uint)((ulong)differing >> 32)) atomic_or(varying + 1, (uint)((ulong)differing >> 32));
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id < 2 && varying[id]) atomic_or(MEMORY(uint, p.varying) + id, varying[id]);
}

typedef struct {
  bool active, last;
  int done;  // active passes before this one
} Pass;
#if SOME
INLINE Pass pass_of(__global const uint *varying, int pass, int passes) {
  const ulong bits = (ulong)varying[1] << 32 | varying[0] | 1;  // at least one pass: it writes the results
  Pass r = {(bits >> 8 * pass & 255) != 0, true, 0};
  for (int k = 0; k < passes; ++k)
    if (bits >> 8 * k & 255) {
      r.done += k < pass;
      r.last = r.last && k <= pass;
    }
  return r;
}
#define PASS const Pass pass = pass_of(MEMORY(const uint, p.varying), p.pass, p.passes);
#else
#define PASS const Pass pass = {true, p.pass == p.passes - 1, p.pass};
#endif

// PoCL 3.1 miscompiles code after a return before barriers; without RETURNS such a pass processes no entries
// instead.
#if RETURNS
#define LEAVE if (!pass.active) return;
#else
#define LEAVE
#endif

#define KEY_OF_IN(i) key_of(in[i])
#define KEY_OF_MEMORY(i) from[i]
#define READ_ENTRIES(key)                   \
  if (pass.done == 0) {                     \
    READ_TILE(key, count, KEY_OF_IN)        \
  } else {                                  \
    READ_TILE(key, count, KEY_OF_MEMORY)    \
  }
// The buffers that this pass reads and writes. (Indices are constants, because with others a GPU would copy
// the parameters to its stack.)
#define SOURCE(places) (pass.done & 1 ? places[0] : places[1])
#define TARGET(places) (pass.done & 1 ? places[1] : places[0])
#define ENTRIES_OF_TILE                                                                                   \
  const uint id = get_local_id(0), shift = 8 * p.pass;                                                    \
  const long row = (long)get_group_id(0) / p.tiles, low = ((long)get_group_id(0) - row * p.tiles) * TILE; \
  const uint count = pass.active ? (uint)min((long)TILE, p.length - low) : 0;                             \
  __global const WORD *in = AT_BYTES(const WORD, in_base, in_offset) + row * p.length + low;              \
  __global const Key *from = MEMORY(const Key, SOURCE(p.keys)) + row * p.length + low;

TILE_GROUP __kernel void count_digits(__global void *memory_base, ulong memory_offset,
                                      __global const void *in_base, ulong in_offset, const RadixParams p) {
  PASS
  LEAVE
  ENTRIES_OF_TILE
  __local uint counts[256];
  for (uint b = id; b < 256; b += GROUP) counts[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  Key key[ITEMS];
  READ_ENTRIES(key)
  Run run = {0, 0};
  UNROLL for (int k = 0; k < ITEMS; ++k)
    if (k * GROUP + id < count) run = count_digit(counts, run, (uint)(key[k] >> shift) & 255);
  end_run(counts, run);
  barrier(CLK_LOCAL_MEM_FENCE);
  __global uint *to = MEMORY(uint, p.counts) + (long)get_group_id(0) * 256;
  for (uint b = id; b < 256; b += GROUP) to[b] = counts[b];
}

// Turns counts into sums over the tiles before; p.totals gets the sums over all tiles. p.lanes items share a
// digit's column; each loads AHEAD counts at once.
#define AHEAD 8
TILE_GROUP __kernel void sum_counts(__global void *memory_base, ulong memory_offset, const RadixParams p) {
  PASS
  LEAVE
  __local uint sums[GROUP];
  const uint id = get_local_id(0), digits = GROUP / p.lanes, lane = id / digits, digit = id % digits;
  const long column = (long)get_group_id(0) * digits + digit, row = column / 256;
  const long share = (p.tiles + p.lanes - 1) / p.lanes, first = lane * share;
  const long end = pass.active ? min((long)p.tiles, first + share) : 0;
  __global uint *counts = MEMORY(uint, p.counts) + row * p.tiles * 256 + column % 256;
  uint sum = 0;
  for (long t = first; t < end; t += AHEAD)
    UNROLL for (int k = 0; k < AHEAD; ++k) sum += t + k < end ? counts[(t + k) * 256] : 0;
  sums[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint before = 0;
  for (uint l = 0; l < lane; ++l) before += sums[l * digits + digit];
  if (lane == p.lanes - 1) MEMORY(uint, p.totals)[column] = before + sum;
  for (long t = first; t < end; t += AHEAD) {
    uint own[AHEAD];
    UNROLL for (int k = 0; k < AHEAD; ++k) own[k] = t + k < end ? counts[(t + k) * 256] : 0;
    UNROLL for (int k = 0; k < AHEAD; ++k) {
      if (t + k < end) counts[(t + k) * 256] = before;
      before += own[k];
    }
  }
}

TILE_GROUP __kernel void move(__global void *value_base, ulong value_offset, __global void *index_base,
                              ulong index_offset, __global void *memory_base, ulong memory_offset,
                              __global const void *in_base, ulong in_offset, const RadixParams p) {
  PASS
  LEAVE
  ENTRIES_OF_TILE
  TILE_MEMORY
  __local uint starts[256];
  Key key[ITEMS];
  uint origin[ITEMS];
  READ_ENTRIES(key)
  TURN_TILE(key)
  UNROLL for (int k = 0; k < ITEMS; ++k) origin[k] = id * ITEMS + k;
#define KEY_DIGIT(k, shift) (key[k] >> (shift))
  SORT_PASS(KEY_DIGIT, shift)
  SORT_PASS(KEY_DIGIT, shift + 4)
#define DIGIT_AT(r) ((uint)(keys[KEY_PLACE(r)] >> shift) & 255)
  UNROLL for (int k = 0; k < ITEMS; ++k) {
    const uint r = k * GROUP + id, digit = DIGIT_AT(r);
    if (r < count && (r == 0 || DIGIT_AT(r - 1) != digit)) starts[digit] = r;
  }
  // The difference between an entry's place in the row and its place in the sorted tile.
  __global const uint *totals = MEMORY(const uint, p.totals) + row * 256;
  __global const uint *counts = MEMORY(const uint, p.counts) + (long)get_group_id(0) * 256;
  uint own[BINS], sum = 0, total;
  UNROLL for (int b = 0; b < BINS; ++b) {
    own[b] = id * BINS + b < 256 ? totals[id * BINS + b] : 0;
    sum += own[b];
  }
  sum = scan(sums, sum, id, &total);
  UNROLL for (int b = 0; b < BINS; ++b) {
    const uint digit = id * BINS + b;
    if (digit < 256) starts[digit] = sum + counts[digit] - starts[digit];
    sum += own[b];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  __global const uint *positions = MEMORY(const uint, SOURCE(p.positions)) + row * p.length + low;
  __global Key *to = MEMORY(Key, TARGET(p.keys)) + row * p.length;
  __global uint *to_positions = MEMORY(uint, TARGET(p.positions)) + row * p.length;
  UNROLL for (int k = 0; k < ITEMS; ++k) {
    const uint r = k * GROUP + id;
    if (r < count) {
      const Key one = keys[KEY_PLACE(r)];
      const uint at = starts[(uint)(one >> shift) & 255] + r, from_place = origins[ORIGIN_PLACE(r)];
      const uint position = pass.done == 0 ? (uint)low + from_place : positions[from_place];
      if (!pass.last) {
        to[at] = one;
        to_positions[at] = position;
      } else if (at < p.kept) {
#if VALUES
        AT_BYTES(WORD, value_base, value_offset)[row * p.kept + at] =
            (WORD)element_of(one, in - low, position);
#endif
        AT_BYTES(long, index_base, index_offset)[row * p.kept + at] = position;
      }
    }
  }
}
