// accumulate.cl for long sequences: keys are sorted (stably), each with the position of its source, and runs
// of equal keys are combined in order, all chunks of entries in parallel. A work-item combines LANES numbers
// of a chunk's entries. A run inside a chunk is written to the target. The part of a run that crosses a
// chunk's edge becomes an entry of the next level: part 0 continues a run of earlier chunks, part 1 is
// continued in later ones. If a run fills a chunk, each part has a half of it, so that a run's parts are
// adjacent. The last level has one chunk.
//   LEVEL 0  entries are sources, and the first part of a run starts with the target's value (with FIRST
//            without it)
//   LEVEL 1  entries are parts of runs, of the target's type
//   PACKED   sorted entries are key << 32 | position (order.cl); else keys and positions are separate
//   WEIGHTED sources have factors, p.factors_each successive ones for the same source
//   MEAN     divides
//   INDEX    the type that counts pieces, uint if they are below 2^31
#include "types.h"
#include "range.h"
#include "combine.h"
#include "runs_params.h"
#define NOWHERE LONG_MAX

// The number of entries whose numbers are loaded at once.
#if CPU_STYLE
#define BATCH 1
#else
#define BATCH 8
#endif
// How many entries ahead to prefetch: sources are in random order, and a CPU runs one work-item at a time.
#define AHEAD 16
#if defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define PREFETCH(p) prefetch(p, 1)
#endif
#if LEVEL == 0
#define SOURCE_TYPE S
#else
#define SOURCE_TYPE A
#endif
#define STARTS_FROM_TARGET (LEVEL == 0 && !FIRST)

// What is combined: keys in order (PACKED on level 0: with positions), and of sources their positions and
// factors.
typedef struct {
  __global const long *keys, *positions;
  __global const STYPE(SOURCE_TYPE) *source;
  __global const STYPE(A) *factors;
} Entries;

INLINE long sorted_key(__global const long *sorted, long k) {
  return PACKED ? (long)((ulong)sorted[k] >> 32) : sorted[k];
}
INLINE long key_at(const Entries e, long k) { return LEVEL == 0 ? sorted_key(e.keys, k) : e.keys[k]; }
INLINE long position_at(const Entries e, long k) { return PACKED ? (long)(uint)e.keys[k] : e.positions[k]; }

// A work-item's part of a chunk.
typedef struct {
  long low, high;       // the chunk's entries
  long first, last;     // the keys of its first and its last one
  bool before, behind;  // its first run began in an earlier chunk, its last one goes on in the next
  bool whole;           // both, and it is one run
  long middle;          // where a whole one is divided; else -1
  long group, b, lane;  // the item's first number in a block of sources and of the target; in an entry
} Part;

INLINE Part part_of(const Entries e, long chunk, long lane, const RunsParams p) {
  Part part;
  part.lane = lane;
  part.group = (INDEX)lane / (INDEX)p.block;
  part.b = lane - part.group * p.block;
  part.low = chunk * p.chunk;
  part.high = min((long)p.count, part.low + p.chunk);
  part.first = key_at(e, part.low);
  part.last = key_at(e, part.high - 1);
  part.before = part.low > 0 && key_at(e, part.low - 1) == part.first;
  part.behind = part.high < p.count && key_at(e, part.high) == part.last;
  part.whole =
      part.before && part.behind && part.first == part.last && (ulong)part.first < (ulong)p.blocks;
  part.middle = part.whole ? part.low + p.chunk / 2 : -1;
  return part;
}

// Loads the entries from `at` on, whose keys are `key`. A batch is loaded without conditions, so that the
// loads overlap; numbers without a place are not used.
INLINE void load_batch(T v[BATCH][LANES], const long *key, const Entries e, long at, const Part part,
                       const RunsParams p) {
#if LEVEL == 0
  const T alpha = FROM_BITS(A, p.alpha);
#if WEIGHTED
#define SOURCE_OF(position) ((position) / p.factors_each)
#define FACTOR(k) * LOAD(A, e.factors, position_at(e, k))
#else
#define SOURCE_OF(position) (position)
#define FACTOR(k)
#endif
#endif
  UNROLL for (int j = 0; j < BATCH; ++j) {
    const long k = BATCH == 1 ? at : min(at + j, (long)p.count - 1);
    if (BATCH == 1 && (ulong)key[j] >= (ulong)p.blocks) continue;
#if LEVEL == 0
#define PLACE_OF(k) \
  (((part.group * p.length + SOURCE_OF(position_at(e, k))) * p.block + part.b) * p.source_step)
#if CPU_STYLE
    if (at + AHEAD < part.high) PREFETCH(e.source + PLACE_OF(at + AHEAD));
#endif
    const long from = PLACE_OF(k);
    UNROLL for (int w = 0; w < LANES; ++w)
      v[j][w] = SCALED(TO(A, LOAD(S, e.source, from + w * p.source_step))) FACTOR(k);
#else
    UNROLL for (int w = 0; w < LANES; ++w) v[j][w] = LOAD(A, e.source, k * p.lanes + part.lane + w);
#endif
  }
}

#if STARTS_FROM_TARGET
// Loads the target's values for runs that begin in the batch; `begins`: its first entry begins one.
INLINE void load_starts(T start[BATCH][LANES], const long *key, bool begins,
                        __global const STYPE(A) *target, const RunsParams p) {
  UNROLL for (int j = 0; j < BATCH; ++j) {
    const long place = BATCH == 1 || (ulong)key[j] < (ulong)p.blocks ? key[j] : 0;
    if (BATCH == 1 && ((ulong)key[j] >= (ulong)p.blocks || !begins)) continue;
    UNROLL for (int w = 0; w < LANES; ++w) start[j][w] = LOAD(A, target, place * p.block + w);
  }
}
#endif

#if MEAN
// The position of the first key that is not below `key`.
INLINE long lower_bound(__global const long *sorted, long count, long key) {
  long low = 0, high = count;
  while (low < high) {
    const long k = (low + high) / 2;
    if (sorted_key(sorted, k) < key) low = k + 1;
    else high = k;
  }
  return low;
}

INLINE T mean_of(T sum, long n) {
  if (n < 2) return sum;
#if FLOATING
  return sum / (T)n;
#else
  const long q = (long)sum / n;
  return TO(A, (long)sum - q * n < 0 ? q - 1 : q);
#endif
}

// The mean of a run of `entries` in this chunk; `sorted`: the keys of the first level.
INLINE void divide(T sum[LANES], __global const long *sorted, long key, long entries, const RunsParams p) {
#if LEVEL == 0
  const long n = entries + p.extra;
#else
  const long n = lower_bound(sorted, p.all, key + 1) - lower_bound(sorted, p.all, key) + p.extra;
#endif
  UNROLL for (int w = 0; w < LANES; ++w) sum[w] = mean_of(sum[w], n);
}
#endif

GROUP __kernel void runs(__global void *target_base, ulong target_offset, __global const void *sorted_base,
                         ulong sorted_offset, __global const void *position_base, ulong position_offset,
                         __global const void *key_base, ulong key_offset, __global const void *source_base,
                         ulong source_offset, __global void *part_key_base, ulong part_key_offset,
                         __global void *partial_base, ulong partial_offset, const RunsParams p) {
  __global const long *sorted = AT_CONST(i64, sorted_base, sorted_offset);
  Entries e;
  e.keys = LEVEL == 0 ? sorted : AT_CONST(i64, key_base, key_offset);
  e.positions = AT_CONST(i64, position_base, position_offset);
  e.source = AT_CONST(SOURCE_TYPE, source_base, source_offset);
  e.factors = AT_CONST(A, key_base, key_offset);
  __global long *part_keys = AT(i64, part_key_base, part_key_offset);
  const INDEX across = (INDEX)p.lanes / LANES;
  FOR_EACH(i, p.pieces, p.per_item) {
    const long chunk = (INDEX)i / across, lane = (i - chunk * across) * LANES;
    const Part part = part_of(e, chunk, lane, p);
    __global STYPE(A) *target =
        AT(A, target_base, target_offset) + part.group * p.target_step * p.block + part.b;
    __global STYPE(A) *partials = AT(A, partial_base, partial_offset) + 2 * chunk * p.lanes + lane;
    if (lane == 0 && p.chunks > 1) {
      part_keys[2 * chunk] = part.before ? part.first : NOWHERE;
      part_keys[2 * chunk + 1] = part.behind ? part.last : NOWHERE;
    }
    long head = part.low;  // the first entry of the run that is being combined
    T sum[LANES];
    for (long at = part.low; at < part.high; at += BATCH) {
      long key[BATCH + 1];
      T v[BATCH][LANES];
      UNROLL for (int j = 0; j <= BATCH; ++j) key[j] = at + j < p.count ? key_at(e, at + j) : NOWHERE;
      load_batch(v, key, e, at, part, p);
#if STARTS_FROM_TARGET
      T start[BATCH][LANES];
      load_starts(start, key, at == head, target, p);
#endif
      UNROLL for (int j = 0; j < BATCH; ++j) {
        const long k = at + j, next = k + 1;
        if ((ulong)key[j] >= (ulong)p.blocks) {
          head = next;
          continue;
        }
        __global STYPE(A) *own = target + key[j] * p.block;
        if (k != head) {
          UNROLL for (int w = 0; w < LANES; ++w) sum[w] = COMBINE(sum[w], v[j][w]);
        } else {
          UNROLL for (int w = 0; w < LANES; ++w) sum[w] = v[j][w];
#if STARTS_FROM_TARGET
          if (!part.whole && !(part.before && k == part.low))
            UNROLL for (int w = 0; w < LANES; ++w) sum[w] = COMBINE(start[j][w], sum[w]);
#endif
        }
        if (next != part.high && next != part.middle && key[j + 1] == key[j]) continue;
        if (part.before && head == part.low) {
          UNROLL for (int w = 0; w < LANES; ++w) STORE(A, partials, w, sum[w]);
        } else if (part.behind && next == part.high) {
          UNROLL for (int w = 0; w < LANES; ++w) STORE(A, partials, p.lanes + w, sum[w]);
        } else {
#if MEAN
          divide(sum, sorted, key[j], next - head, p);
#endif
          UNROLL for (int w = 0; w < LANES; ++w) STORE(A, own, w, sum[w]);
        }
        head = next;
      }
    }
  }
}
