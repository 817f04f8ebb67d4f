// Sorting rows of at most TILE entries for GPUs: a work-group sorts p.tile_rows whole rows in local memory,
// by the digits of their keys and then, stably, by their numbers.
//   ENTRIES  keys with positions in the input's rows, of 4 bytes each, as radix_select.cl leaves them; 0: the
//            input's elements
//   SOME     keys are likely to agree in most bits: passes over those are left out
//   VALUES   1: writes elements as well as positions
#include "sort_tile.h"
#include "radix_params.h"

TILE_GROUP __kernel void sort_tiles(__global void *value_base, ulong value_offset, __global void *index_base,
                                    ulong index_offset, __global const void *in_base, ulong in_offset,
                                    __global const void *key_base, ulong key_offset,
                                    __global const void *position_base, ulong position_offset,
                                    const RadixParams p) {
  TILE_MEMORY
  const uint id = get_local_id(0), n = (uint)p.length;
  const long first = (long)get_group_id(0) * p.tile_rows, start = first * p.length;
  const uint rows = (uint)min((long)p.tile_rows, p.rows - first), count = rows * n;
  Key key[ITEMS];
  uint origin[ITEMS];
#if ENTRIES
  __global const Key *from = AT_BYTES(const Key, key_base, key_offset) + start;
  __global const uint *positions = AT_BYTES(const uint, position_base, position_offset) + start;
#define KEY_AT(i) from[i]
#else
  __global const WORD *from = AT_BYTES(const WORD, in_base, in_offset) + start;
#define KEY_AT(i) key_of(from[i])
#endif
  READ_TILE(key, count, KEY_AT)
  TURN_TILE(key)
  UNROLL for (int k = 0; k < ITEMS; ++k) origin[k] = id * ITEMS + k;
#if SOME
  __local uint varying[2];
  if (id < 2) varying[id] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  Key differing = 0;
  UNROLL for (int k = 0; k < ITEMS; ++k)
    if (origin[k] < count) differing |= key[k] ^ keys[0];
  if ((uint)differing) atomic_or(varying, (uint)differing);
  if ((uint)((ulong)differing >> 32)) atomic_or(varying + 1, (uint)((ulong)differing >> 32));
  barrier(CLK_LOCAL_MEM_FENCE);
  // A bit for each digit that differs between keys. The first pass always runs, because it writes what is
  // read below.
  Key wanted = (Key)((ulong)varying[1] << 32 | varying[0]);
  if (p.passes < WIDTH / 8) wanted &= ((Key)1 << 8 * p.passes) - 1;
  wanted |= wanted >> 2;
  wanted = ((wanted | wanted >> 1) & (Key)0x1111111111111111ul) | 1;
#endif
#define KEY_DIGIT(k, shift) (key[k] >> (shift))
#if SOME
  for (; wanted != 0; wanted &= wanted - 1) {
    const uint shift = (uint)popcount(~wanted & (wanted - 1));
    SORT_PASS(KEY_DIGIT, shift)
  }
#else
  for (uint shift = 0; shift < WIDTH; shift += 4) {
    SORT_PASS(KEY_DIGIT, shift)
  }
#endif
// The row of a place, by multiplication with a float reciprocal: places are below 2^13, and adding a half
// keeps quotients away from whole numbers.
#define QUOTIENT(place, reciprocal) ((uint)(((place) + 0.5f) * (reciprocal)))
#define ROW_DIGIT(k, bits) QUOTIENT(origin[k], as_float(bits))
  if (p.tile_rows > 1) {
    for (uint span = n; span < TILE; span <<= 4) {
      SORT_PASS(ROW_DIGIT, as_uint(1.0f / span))
    }
  }
  const uint kept = (uint)p.kept;
  UNROLL for (int k = 0; k < ITEMS; ++k) {
    const uint r = k * GROUP + id;
    const uint row = p.tile_rows > 1 ? QUOTIENT(r, 1.0f / n) : 0, at = r - row * n;
    if (r >= count || at >= kept) continue;
    const uint from_place = origins[ORIGIN_PLACE(r)];
    const long o = (first + row) * p.kept + at;
#if ENTRIES
    const uint position = positions[from_place];
#else
    const uint position = from_place - row * n;
#endif
#if VALUES
    __global const WORD *raw = AT_BYTES(const WORD, in_base, in_offset) + (first + row) * p.raw_length;
    AT_BYTES(WORD, value_base, value_offset)[o] = (WORD)element_of(keys[KEY_PLACE(r)], raw, position);
#endif
    AT_BYTES(long, index_base, index_offset)[o] = position;
  }
}
