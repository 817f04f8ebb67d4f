// The first p.kept entries of each tile of a row in the order of keys, for GPUs: the last of them is found
// digit by digit, from the highest on. They are written as entries for sort_tiles or for another selection:
// first those with smaller keys, then those with a key equal to the last one's; both in their original order,
// so that sorting them stably gives the same as sorting the row. p.kept is not above the length of any tile.
// ENTRIES as in radix_tile.cl.
#include "sort_tile.h"
#include "radix_params.h"

#define BINS (256 / GROUP > 0 ? 256 / GROUP : 1)  // of an item

TILE_GROUP __kernel void select_tiles(__global void *to_key_base, ulong to_key_offset,
                                      __global void *to_position_base, ulong to_position_offset,
                                      __global const void *in_base, ulong in_offset,
                                      __global const void *key_base, ulong key_offset,
                                      __global const void *position_base, ulong position_offset,
                                      const RadixParams p) {
  SCAN_MEMORY
  KEY_MEMORY
  __local uint counts[256], choice[2];
  const uint id = get_local_id(0), kept = (uint)p.kept;
  const long group = get_group_id(0), row = group / p.tiles, tile = group - row * p.tiles;
  const long low = tile * p.length / p.tiles, start = row * p.length + low;
  const uint count = (uint)((tile + 1) * p.length / p.tiles - low);
  Key key[ITEMS];
#if ENTRIES
  __global const Key *from = AT_BYTES(const Key, key_base, key_offset) + start;
  __global const uint *positions = AT_BYTES(const uint, position_base, position_offset) + start;
#define KEY_AT(i) from[i]
#define POSITION_AT(i) positions[i]
#else
  __global const WORD *from = AT_BYTES(const WORD, in_base, in_offset) + start;
#define KEY_AT(i) key_of(from[i])
#define POSITION_AT(i) ((uint)low + (i))
#endif
  READ_TILE(key, count, KEY_AT)
  TURN_TILE(key)
  Key last = 0, known = 0;
  uint wanted = kept;  // of the keys that agree with `last` in its known bits
  ROLLED for (int shift = WIDTH - 8; shift >= 0; shift -= 8) {
    for (uint b = id; b < 256; b += GROUP) counts[b] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    Run run = {0, 0};
    UNROLL for (int k = 0; k < ITEMS; ++k)
      if (id * ITEMS + k < count && (key[k] & known) == last)
        run = count_digit(counts, run, (uint)(key[k] >> shift) & 255);
    end_run(counts, run);
    barrier(CLK_LOCAL_MEM_FENCE);
    uint own = 0, total;
    if (id * BINS < 256) {
      UNROLL for (int b = 0; b < BINS; ++b) own += counts[id * BINS + b];
    }
    uint before = scan(sums, own, id, &total);
    if (before < wanted && wanted <= before + own) {
      for (uint b = id * BINS; ; ++b) {
        if (wanted <= before + counts[b]) {
          choice[0] = b;
          choice[1] = wanted - before;
          break;
        }
        before += counts[b];
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    last |= (Key)choice[0] << shift;
    known |= (Key)255 << shift;
    wanted = choice[1];
  }
  // Smaller ones in the low half, equal ones in the high half.
  uint found = 0, total;
  UNROLL for (int k = 0; k < ITEMS; ++k)
    if (id * ITEMS + k < count) found += key[k] < last ? 1 : key[k] == last ? 1 << 16 : 0;
  const uint before = scan(sums, found, id, &total);
  uint smaller = before & 0xffff, equal = before >> 16;
  __global Key *to = AT_BYTES(Key, to_key_base, to_key_offset) + group * p.kept;
  __global uint *to_positions = AT_BYTES(uint, to_position_base, to_position_offset) + group * p.kept;
  UNROLL for (int k = 0; k < ITEMS; ++k) {
    const uint i = id * ITEMS + k;
    if (i >= count || key[k] > last) continue;
    uint place = smaller;
    if (key[k] == last) {
      place = equal < wanted ? (total & 0xffff) + equal : kept;
      ++equal;
    } else {
      ++smaller;
    }
    if (place < kept) {
      to[place] = key[k];
      to_positions[place] = POSITION_AT(i);
    }
  }
}
