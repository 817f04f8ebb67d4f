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
#if PACKED
#define SORTED_KEY(k) ((long)((ulong)sorted[k] >> 32))
#define POSITION(k) ((long)(uint)sorted[k])
#else
#define SORTED_KEY(k) sorted[k]
#define POSITION(k) positions[k]
#endif
#if LEVEL == 0
#define KEY_AT(k) SORTED_KEY(k)
#else
#define KEY_AT(k) keys[k]
#endif

#define STARTS_FROM_TARGET (LEVEL == 0 && !FIRST)

#if LEVEL == 1 && MEAN
// The position of the first key that is not below `key`.
INLINE long lower_bound(__global const long *sorted, long count, long key) {
  long low = 0, high = count;
  while (low < high) {
    const long k = (low + high) / 2;
    if (SORTED_KEY(k) < key) low = k + 1;
    else high = k;
  }
  return low;
}
#endif

INLINE T mean_of(T sum, long n) {
  if (n < 2) return sum;
#if FLOATING
  return sum / (T)n;
#else
  const long q = (long)sum / n;
  return TO(A, (long)sum - q * n < 0 ? q - 1 : q);
#endif
}

GROUP __kernel void runs(__global void *target_base, ulong target_offset, __global const void *sorted_base,
                         ulong sorted_offset, __global const void *position_base, ulong position_offset,
                         __global const void *key_base, ulong key_offset, __global const void *source_base,
                         ulong source_offset, __global void *part_key_base, ulong part_key_offset,
                         __global void *partial_base, ulong partial_offset, const RunsParams p) {
  __global const long *sorted = AT_CONST(i64, sorted_base, sorted_offset);
#if !PACKED
  __global const long *positions = AT_CONST(i64, position_base, position_offset);
#endif
#if LEVEL == 0
  __global const STYPE(S) *source = AT_CONST(S, source_base, source_offset);
  const T alpha = FROM_BITS(A, p.alpha);
#if WEIGHTED
  __global const STYPE(A) *factors = AT_CONST(A, key_base, key_offset);
#define SOURCE_OF(position) ((position) / p.factors_each)
#define FACTOR(k) * LOAD(A, factors, POSITION(k))
#else
#define SOURCE_OF(position) (position)
#define FACTOR(k)
#endif
#else
  __global const long *keys = AT_CONST(i64, key_base, key_offset);
  __global const STYPE(A) *source = AT_CONST(A, source_base, source_offset);
#endif
  __global long *part_keys = AT(i64, part_key_base, part_key_offset);
  const INDEX across = (INDEX)p.lanes / LANES;
  FOR_EACH(i, p.pieces, p.per_item) {
    const long chunk = (INDEX)i / across, lane = (i - chunk * across) * LANES;
    const long group = (INDEX)lane / (INDEX)p.block, b = lane - group * p.block;
    const long low = chunk * p.chunk, high = min((long)p.count, low + p.chunk);
    const long first = KEY_AT(low), last = KEY_AT(high - 1);
    const bool before = low > 0 && KEY_AT(low - 1) == first;
    const bool behind = high < p.count && KEY_AT(high) == last;
    const bool whole = before && behind && first == last && (ulong)first < (ulong)p.blocks;
    const long middle = whole ? low + p.chunk / 2 : -1;
    __global STYPE(A) *target = AT(A, target_base, target_offset) + group * p.target_step * p.block + b;
    __global STYPE(A) *partials = AT(A, partial_base, partial_offset) + 2 * chunk * p.lanes + lane;
    if (lane == 0 && p.chunks > 1) {
      part_keys[2 * chunk] = before ? first : NOWHERE;
      part_keys[2 * chunk + 1] = behind ? last : NOWHERE;
    }
    long head = low;  // the first entry of the run that is being combined
    T sum[LANES];
    for (long at = low; at < high; at += BATCH) {
      long key[BATCH + 1];
      T v[BATCH][LANES];
      UNROLL for (int j = 0; j <= BATCH; ++j) key[j] = at + j < p.count ? KEY_AT(at + j) : NOWHERE;
      // A batch is loaded without conditions, so that the loads overlap; numbers without a place are not
      // used.
      UNROLL for (int j = 0; j < BATCH; ++j) {
        const long k = BATCH == 1 ? at : min(at + j, (long)p.count - 1);
        if (BATCH == 1 && (ulong)key[j] >= (ulong)p.blocks) continue;
#if LEVEL == 0
#if CPU_STYLE
        if (at + AHEAD < high)
          PREFETCH(source +
                   ((group * p.length + SOURCE_OF(POSITION(at + AHEAD))) * p.block + b) * p.source_step);
#endif
        const long from = ((group * p.length + SOURCE_OF(POSITION(k))) * p.block + b) * p.source_step;
        UNROLL for (int w = 0; w < LANES; ++w)
          v[j][w] = SCALED(TO(A, LOAD(S, source, from + w * p.source_step))) FACTOR(k);
#else
        UNROLL for (int w = 0; w < LANES; ++w) v[j][w] = LOAD(A, source, k * p.lanes + lane + w);
#endif
      }
#if STARTS_FROM_TARGET
      T start[BATCH][LANES];
      UNROLL for (int j = 0; j < BATCH; ++j) {
        const long place = BATCH == 1 || (ulong)key[j] < (ulong)p.blocks ? key[j] : 0;
        if (BATCH == 1 && ((ulong)key[j] >= (ulong)p.blocks || at != head)) continue;
        UNROLL for (int w = 0; w < LANES; ++w) start[j][w] = LOAD(A, target, place * p.block + w);
      }
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
          if (!whole && !(before && k == low))
            UNROLL for (int w = 0; w < LANES; ++w) sum[w] = COMBINE(start[j][w], sum[w]);
#endif
        }
        if (next != high && next != middle && key[j + 1] == key[j]) continue;
        if (before && head == low) {
          UNROLL for (int w = 0; w < LANES; ++w) STORE(A, partials, w, sum[w]);
        } else if (behind && next == high) {
          UNROLL for (int w = 0; w < LANES; ++w) STORE(A, partials, p.lanes + w, sum[w]);
        } else {
#if MEAN
#if LEVEL == 0
          const long n = next - head + p.extra;
#else
          const long n =
              lower_bound(sorted, p.all, key[j] + 1) - lower_bound(sorted, p.all, key[j]) + p.extra;
#endif
          UNROLL for (int w = 0; w < LANES; ++w) sum[w] = mean_of(sum[w], n);
#endif
          UNROLL for (int w = 0; w < LANES; ++w) STORE(A, own, w, sum[w]);
        }
        head = next;
      }
    }
  }
}
