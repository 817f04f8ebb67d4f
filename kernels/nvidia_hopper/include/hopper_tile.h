// One tile of 128 x BN of a product on Hopper's matrix units, for all kernels that compute such tiles:
// operand types, buffers, the steps along k, and storing a tile's results.
// Defines: TYPE f16 or bf16 (operands and result, sums in float), f32 (TF32 products), or f32 with
// BF16_PARTS 2 or 3: operands are given as bf16 parts (whose sum is exact if there are three), and three
// or six products of parts are added. TF32; BN 64, 128, 192 or 256; STAGES; A_ALONG_K, B_ALONG_K
// (1: contiguous along k, which TF32 requires, 0: along m or n); FLOAT_RESULT.
#ifndef OCLTENSOR_HOPPER_TILE_H
#define OCLTENSOR_HOPPER_TILE_H
#include "hopper.h"

#if BF16_PARTS > 1
#define ELEMENT ELEMENT_bf16
#define INSIDE ushort  // the type of the multiplied elements
#define TYPES "f32.bf16.bf16"
#elif TF32
#define ELEMENT ELEMENT_tf32
#define INSIDE float
#define TYPES "f32.tf32.tf32"
#else
#define ELEMENT CAT(ELEMENT_, TYPE)
#define INSIDE ushort
#define TYPES CAT(TYPES_, TYPE)
#define TYPES_f16 "f32.f16.f16"
#define TYPES_bf16 "f32.bf16.bf16"
#endif
#if BN == 64
#define ACCUMULATORS 32
#define SHAPE_N "64"
#elif BN == 128
#define ACCUMULATORS 64
#define SHAPE_N "128"
#elif BN == 192
#define ACCUMULATORS 96
#define SHAPE_N "192"
#else
#define ACCUMULATORS 128
#define SHAPE_N "256"
#endif
#if TF32
#define SHAPE "m64n" SHAPE_N "k8"
#define TAIL "p, 1, 1"
#else
#define SHAPE "m64n" SHAPE_N "k16"
#if A_ALONG_K
#define TURN_A "0"
#else
#define TURN_A "1"
#endif
#if B_ALONG_K
#define TURN_B "0"
#else
#define TURN_B "1"
#endif
#define TAIL "p, 1, 1, " TURN_A ", " TURN_B
#endif

#define WARPGROUPS 2
#define BM (64 * WARPGROUPS)
#define BK ((int)(128 / sizeof(INSIDE)))
#define A_BYTES (BM * 128)  // of one bf16 part's tile
#define B_BYTES (BN * 128)
#define STAGE_BYTES (BF16_PARTS * (A_BYTES + B_BYTES))
#define ITEMS (128 * WARPGROUPS + 32)
#define GROUP_ROWS 16  // rows of tiles computed together: their operands stay in the cache

// The four k-steps of a stage.
#define MULTIPLY(d, at_a, at_b, first)                                                                    \
  {                                                                                                       \
    const ulong da = matrix_at(at_a, LEAD(A_ALONG_K), 1024), db = matrix_at(at_b, LEAD(B_ALONG_K), 1024); \
    PRODUCT_OF(ACCUMULATORS, SHAPE, TYPES, TAIL, d, da, db, first);                                       \
    PRODUCT_OF(ACCUMULATORS, SHAPE, TYPES, TAIL, d, da + KSTEP(A_ALONG_K), db + KSTEP(B_ALONG_K), 1);     \
    PRODUCT_OF(ACCUMULATORS, SHAPE, TYPES, TAIL, d, da + 2 * KSTEP(A_ALONG_K), db + 2 * KSTEP(B_ALONG_K), \
               1);                                                                                        \
    PRODUCT_OF(ACCUMULATORS, SHAPE, TYPES, TAIL, d, da + 3 * KSTEP(A_ALONG_K), db + 3 * KSTEP(B_ALONG_K), \
               1);                                                                                        \
  }
// Initialises the ring's barriers, and declares the addresses of its buffers and barriers, the stage and
// phase of the loop, and the item's number, warpgroup and lane.
#define BEGIN_RING(tiles, bars)                                                    \
  const uint ring = SHARED(tiles), full = SHARED(bars), empty = full + 8 * STAGES; \
  const int item = get_local_id(0), warpgroup = item >> 7, lane = item & 31;       \
  if (item == 0) {                                                                 \
    for (int s = 0; s < STAGES; ++s) {                                             \
      barrier_init(full + 8 * s, 1);                                               \
      barrier_init(empty + 8 * s, 4 * WARPGROUPS);                                 \
    }                                                                              \
    barriers_made();                                                               \
  }                                                                                \
  barrier(CLK_LOCAL_MEM_FENCE);                                                    \
  int stage = 0;                                                                   \
  uint phase = 0;
#define NEXT_STAGE         \
  if (++stage == STAGES) { \
    stage = 0;             \
    phase ^= 1;            \
  }

// The six or three products of bf16 parts that are not negligible, the small ones first. `at_a`, `at_b`: the
// addresses of bf16 part 0.
#if BF16_PARTS == 3
#define MULTIPLY_BF16_PARTS(d, at_a, at_b)       \
  MULTIPLY(d, at_a + 2 * A_BYTES, at_b, 0)       \
  MULTIPLY(d, at_a, at_b + 2 * B_BYTES, 1)       \
  MULTIPLY(d, at_a + A_BYTES, at_b + B_BYTES, 1) \
  MULTIPLY(d, at_a + A_BYTES, at_b, 1)           \
  MULTIPLY(d, at_a, at_b + B_BYTES, 1)           \
  MULTIPLY(d, at_a, at_b, 1)
#elif BF16_PARTS == 2
#define MULTIPLY_BF16_PARTS(d, at_a, at_b) \
  MULTIPLY(d, at_a + A_BYTES, at_b, 0)     \
  MULTIPLY(d, at_a, at_b + B_BYTES, 1)     \
  MULTIPLY(d, at_a, at_b, 1)
#endif

// The consumers' loop: adds a tile's products over `count` steps of the ring in `sums`, which without bf16
// parts is `d` itself (the first step then replaces `d`). After BEGIN_RING.
#if BF16_PARTS > 1
#define SUM_STEPS(sums, d, count)                                        \
  UNROLL for (int i = 0; i < ACCUMULATORS; ++i) sums[i] = 0.0f;          \
  _Pragma("unroll 1") for (int step = 0; step < count; ++step) {         \
    barrier_wait(full + 8 * stage, phase);                               \
    const uint at_a = ring + stage * STAGE_BYTES + warpgroup * 8192,     \
               at_b = ring + stage * STAGE_BYTES + BF16_PARTS * A_BYTES; \
    PRODUCTS_BEGIN;                                                      \
    MULTIPLY_BF16_PARTS(d, at_a, at_b)                                   \
    PRODUCTS_END;                                                        \
    ALL_DONE(ACCUMULATORS, d);                                           \
    if (lane == 0) barrier_arrive(empty + 8 * stage);                    \
    NEXT_STAGE                                                           \
    UNROLL for (int i = 0; i < ACCUMULATORS; ++i) sums[i] += d[i];       \
  }
#else
#define SUM_STEPS(sums, d, count)                                                                         \
  int before = 0;                                                                                         \
  for (int step = 0; step < count; ++step) {                                                              \
    barrier_wait(full + 8 * stage, phase);                                                                \
    const uint at = ring + stage * STAGE_BYTES;                                                           \
    PRODUCTS_BEGIN;                                                                                       \
    MULTIPLY(d, at + warpgroup * 8192, at + A_BYTES, step)                                                \
    PRODUCTS_END;                                                                                         \
    ALL_BUT_ONE_DONE;                                                                                     \
    if (step > 0 && lane == 0) barrier_arrive(empty + 8 * before); /* the step before this one is done */ \
    before = stage;                                                                                       \
    NEXT_STAGE                                                                                            \
  }                                                                                                       \
  ALL_DONE(ACCUMULATORS, d);                                                                              \
  if (lane == 0) barrier_arrive(empty + 8 * before);
#endif

#if FLOAT_RESULT
typedef float result_t;
#else
typedef STYPE(TYPE) result_t;
#endif

// A tile's place: GROUP_ROWS rows of tiles are computed together, one matrix of the batch after the other.
typedef struct {
  int z, m0, n0;
} Tile;
INLINE Tile tile_at(int index, int m_tiles, int n_tiles) {
  const int z = index / (m_tiles * n_tiles), in_batch = index % (m_tiles * n_tiles);
  const int span = GROUP_ROWS * n_tiles, first = in_batch / span * GROUP_ROWS,
            rows = min(m_tiles - first, GROUP_ROWS);
  Tile t;
  t.z = z;
  t.m0 = (first + in_batch % span % rows) * BM;
  t.n0 = in_batch % span / rows * BN;
  return t;
}

// An item holds columns 8 j + 2 quarter and the next of two rows, for all j. The four items of a row
// exchange 4 x 4 pairs of columns 8 j to 8 j + 31 in 16 bits, so that each has 8 adjacent columns, from
// 8 (j + quarter) on, as four words v.
#define PAIR_OF(sums, j, half_tile) \
  CAT(pack_, TYPE)(sums[(j) * 4 + half_tile * 2], sums[(j) * 4 + half_tile * 2 + 1])
#define NEIGHBOURS_OF(v, sums, j, half_tile, quarter)                                                \
  uint v[4];                                                                                         \
  {                                                                                                  \
    uint v0 = PAIR_OF(sums, j, half_tile), v1 = PAIR_OF(sums, j + 1, half_tile);                     \
    uint v2 = PAIR_OF(sums, j + 2, half_tile), v3 = PAIR_OF(sums, j + 3, half_tile);                 \
    uint x = from_neighbour(quarter & 1 ? v0 : v1, 1), y = from_neighbour(quarter & 1 ? v2 : v3, 1); \
    if (quarter & 1) { v0 = x; v2 = y; } else { v1 = x; v3 = y; }                                    \
    x = from_neighbour(quarter & 2 ? v0 : v2, 2), y = from_neighbour(quarter & 2 ? v1 : v3, 2);      \
    if (quarter & 2) { v0 = x; v1 = y; } else { v2 = x; v3 = y; }                                    \
    v[0] = v0; v[1] = v1; v[2] = v2; v[3] = v3;                                                      \
  }
#endif
