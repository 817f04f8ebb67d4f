// Products of up to 8 X_TILES rows of x with a quantised weight, by mma.sync. A warp takes 16 W_TILES rows of
// the weight, as left matrices: lane 4 g + t unpacks unit t of four neighbouring ones of rows g and g + 8 of
// each in registers, a step after it has loaded it, and x is read in the order in which that gives numbers.
// So a product adds the four lanes' units. Where these have SPREAD (2, 4) scales, sums must be apart: a row
// of x takes COLS columns of the right matrix, each with the units of one scale and zeros for the others, and
// where SPREAD columns are too many, there are SPREAD / COLS products. PIECES warps share rows, each a part
// of k (CONTIGUOUS) or every so many-th step; their sums are added in local memory, in a fixed order.
// Defines: those of quantised_x.h and mma.h; ITEMS, X_TILES, W_TILES, PIECES, CONTIGUOUS, WINDOW (1; where
// CONTIGUOUS 4 / SPREAD), SPREAD, COLS, ALL_UNITS (there are units for every step of every warp), SAME_SCALES
// (all units of a row have one scale).
#define PAIRS 1
#define W_ROWS (16 * W_TILES)
#define WARPS (ITEMS / 32)
#define TEAMS (WARPS / PIECES)
#define PASSES (SPREAD / COLS)
#define X_ROWS (8 / COLS)  // of x in a right matrix
#define FRAGMENTS_M (W_TILES + 1)
#define RING_BYTES (WARPS * W_ROWS * 8 * 4)
#include "mma.h"
#include "quantised_x.h"

// Sums of x: by a left matrix of ones beside the weight's or, where these are in several passes, by one whose
// row `pass` has ones for the lanes of that pass.
#define X_SUMS (OFFSETS || ZEROS || BIAS > 0)
#define ONES (X_SUMS && PASSES == 1)
#define MATRICES (W_TILES + ONES)

// Four neighbouring units are a warp's step. Scales of a WINDOW of steps, which lie side by side, are loaded
// at once, one by each lane of four, which show them to each other: a load takes its time for each line of
// memory that it touches, whatever it takes of it.
#define WINDOWED (WINDOW > 1 && !SAME_SCALES)

#define ONE_PAIR (PAIR_BITS == 10 ? 0x3c003c00u : 0x3f803f80u)
#define LOW_HALVES 0x5410
#define HIGH_HALVES 0x7632

// A byte has the codes of two neighbours: a table of them as pairs, of which each lane has a copy in a bank
// of its own.
#define PAIRS_OF_CODES (CODED && ALTERNATING)
#if PAIRS_OF_CODES
#define TABLE_WORDS (256 * 32)
#else
#define TABLE_WORDS 1
#endif
INLINE void make_table(__local uint *table, const Weight w) {
#if PAIRS_OF_CODES
  for (uint i = get_local_id(0); i < 256; i += ITEMS) {
    const uint4 pair = (uint4)(pair_from(w.codes[i >> 4], w.codes[i & 15]));
    for (uint c = 0; c < 8; ++c) vstore4(pair, i * 8 + (i + c) % 8, table);  // neighbours: other banks
  }
  barrier(CLK_LOCAL_MEM_FENCE);
#endif
}

// A step of a unit: a lane's words of two left matrices.
INLINE uint4 w_words(__local const uint *table, const Weight w, const Packed *a, int step) {
#if PAIRS_OF_CODES
  const uint lane = get_local_id(0) & 31, v = a->words[step];
  return (uint4)(table[(v & 255) * 32 + lane], table[(v >> 8 & 255) * 32 + lane],
                 table[(v >> 16 & 255) * 32 + lane], table[(v >> 24) * 32 + lane]);
#else
  return (uint4)(NUMBERS(w, a, FIRST_RUN(step)), NUMBERS(w, a, SECOND_RUN(step)));
#endif
}
// x beside it, or zeros.
INLINE uint4 x_of_row(__global const ushort *x, int step, bool exists) {
#if HALVES && !ALTERNATING
  const uint4 v = (uint4)(load_two(x + 4 * step, exists), load_two(x + 16 + 4 * step, exists));
#else
  const uint4 v = load_four(x + 8 * step, exists);
#endif
#if PAIRS_OF_CODES
  return v;
#elif ALTERNATING
  return (uint4)(permute_bytes(v.x, v.z, LOW_HALVES), permute_bytes(v.y, v.w, LOW_HALVES),
                 permute_bytes(v.x, v.z, HIGH_HALVES), permute_bytes(v.y, v.w, HIGH_HALVES));
#else
  return (uint4)(permute_bytes(v.x, v.y, LOW_HALVES), permute_bytes(v.x, v.y, HIGH_HALVES),
                 permute_bytes(v.z, v.w, LOW_HALVES), permute_bytes(v.z, v.w, HIGH_HALVES));
#endif
}

INLINE uint lane_scale() { return (get_local_id(0) & 3) * SPREAD / 4; }  // which scale its units have

// Of this lane's column of each right matrix: the row of x, or null. `mine`: in which pass the column has the
// unit of this lane; -1: in none.
typedef struct {
  __global const ushort *row[X_TILES];
  long k;
  int mine;
} X;
INLINE X x_of(__global const ushort *x, const QuantisedParams p) {
  const uint lane = get_local_id(0) & 31, column = lane >> 2;
  X r;
  r.k = p.k;
  UNROLL for (int c = 0; c < X_TILES; ++c) {
    const long m = X_ROWS * c + column / COLS;
    r.row[c] = m < p.m ? x + m * p.x_row : 0;
  }
  r.mine = lane_scale() % COLS == column % COLS ? (int)(lane_scale() / COLS) : -1;
  return r;
}
INLINE uint4 x_words(const X x, int tile, long k, int step) {
  return x_of_row(x.row[tile] + k, step, x.row[tile] != 0 && x.mine >= 0 && (ALL_UNITS || k < x.k));
}

// Unit `unit` of rows n, n + 8, n + 16 and so on. A unit behind the end is the last one, beside which x is 0;
// a row behind the last one is this.
INLINE void load_rows(const Weight w, long n, long last, long unit, long units, Packed a[2 * W_TILES]) {
  const long k = (ALL_UNITS ? unit : min(unit, units - 1)) * UNIT;
  UNROLL for (int i = 0; i < 2 * W_TILES; ++i) LOAD_PACKED(w, min(n + 8 * i, last), k, &a[i]);
}

// Of four lanes' numbers, that of the `which`-th scale in a step of the window.
INLINE float of_scale(__local uchar *tiles, float own, uint which, int step) {
#if SPREAD == 1 && !WINDOWED
  return own;
#else
  const uint lane = (step * SPREAD + which) * (4 / SPREAD / WINDOW);
  return as_float(from_lane(tiles, as_uint(own), (get_local_id(0) & 28) | lane));
#endif
}
// Of a result's two columns.
INLINE float2 of_columns(__local uchar *tiles, float own, int pass, int step) {
  const uint column = 2 * (get_local_id(0) & 3);
#if COLS == 1
  return (float2)(of_scale(tiles, own, pass, step));
#else
  return (float2)(of_scale(tiles, own, pass * COLS + column % COLS, step),
                  of_scale(tiles, own, pass * COLS + (column + 1) % COLS, step));
#endif
}

// What a span's sum of x is multiplied with.
INLINE float offset_of(const Packed *a, int span) {
  const float less = bias_of(a) * -a->scale[span];
  return OFFSETS ? less + a->offset[span] : less;
}

// Adds the products of one unit a lane, whose first element is k, to the sums of each tile of x. `scales`: of
// the window, in which this is step `place`.
INLINE void add_units(__local uchar *tiles, __local const uint *table, float4 sum[X_TILES][W_TILES],
                      const Weight w, const Packed *a, const Packed *scales, const X x, long k, int place) {
  UNROLL_ON_DEVICE for (int s = 0; s < SPANS; ++s) {
    float4 part[PASSES][X_TILES][MATRICES];
    UNROLL for (int j = 0; j < PASSES; ++j) UNROLL for (int c = 0; c < X_TILES; ++c)
      UNROLL for (int i = 0; i < MATRICES; ++i) part[j][c][i] = (float4)(0);
#if X_SUMS && !ONES
    float4 of_x[X_TILES];
    UNROLL for (int c = 0; c < X_TILES; ++c) of_x[c] = (float4)(0);
#endif
    UNROLL_ON_DEVICE for (int i = 0; i < SPAN_STEPS; ++i) {
      const int step = s * SPAN_STEPS + i;
      uint4 first[MATRICES], second[MATRICES];
      UNROLL for (int r = 0; r < W_TILES; ++r) {
        const uint4 low = w_words(table, w, &a[2 * r], step), high = w_words(table, w, &a[2 * r + 1], step);
        first[r] = (uint4)(low.x, high.x, low.y, high.y);
        second[r] = (uint4)(low.z, high.z, low.w, high.w);
      }
#if ONES
      first[W_TILES] = second[W_TILES] = (uint4)(ONE_PAIR);
#endif
      UNROLL for (int c = 0; c < X_TILES; ++c) {
        const uint4 all = x_words(x, c, k, step);
        UNROLL_ON_DEVICE for (int j = 0; j < PASSES; ++j) {
          const uint4 v = PASSES == 1 || x.mine == j ? all : (uint4)(0);
          multiply_some(tiles, part[j][c], first, v.x, v.y, MATRICES);
          multiply_some(tiles, part[j][c], second, v.z, v.w, MATRICES);
        }
#if X_SUMS && !ONES
        const uint one = lane_scale() / COLS == (get_local_id(0) >> 2) % PASSES ? ONE_PAIR : 0;
        const uint4 ones = (uint4)(one, 0, one, 0);
        multiply_some(tiles, of_x + c, &ones, all.x, all.y, 1);
        multiply_some(tiles, of_x + c, &ones, all.z, all.w, 1);
#endif
      }
    }
    UNROLL_ON_DEVICE for (int j = 0; j < PASSES; ++j) {
#if X_SUMS
      float4 x_sums[X_TILES];
      UNROLL for (int c = 0; c < X_TILES; ++c) {
#if ONES
        x_sums[c] = part[j][c][W_TILES];
#else
        const uint from = 4 * j | (get_local_id(0) & 3);
        const float2 v = (float2)(as_float(from_lane(tiles, as_uint(of_x[c].x), from)),
                                  as_float(from_lane(tiles, as_uint(of_x[c].y), from)));
        x_sums[c] = (float4)(v, v);
#endif
      }
#endif
      UNROLL for (int r = 0; r < W_TILES; ++r) {
        const float4 scale = (float4)(of_columns(tiles, scales[2 * r].scale[s], j, place),
                                      of_columns(tiles, scales[2 * r + 1].scale[s], j, place));
        UNROLL for (int c = 0; c < X_TILES; ++c) sum[c][r] = fma(scale, part[j][c][r], sum[c][r]);
#if X_SUMS
        const float4 offset = (float4)(of_columns(tiles, offset_of(&scales[2 * r], s), j, place),
                                       of_columns(tiles, offset_of(&scales[2 * r + 1], s), j, place));
        UNROLL for (int c = 0; c < X_TILES; ++c) sum[c][r] = fma(offset, x_sums[c], sum[c][r]);
#endif
      }
    }
  }
}

__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void quantised_rows(__global void *out_base, ulong out_offset, __global const void *x_base,
                             ulong x_offset, __global const void *weight_base, ulong weight_offset,
                             __global const void *scale_base, ulong scale_offset,
                             __global const void *zero_base, ulong zero_offset,
                             __global const void *bias_base, ulong bias_offset, const QuantisedParams p) {
  __local uchar tiles[TILE_BYTES] __attribute__((aligned(16)));
  __local uint table[TABLE_WORDS];
  Weight w = weight_of(WEIGHT_ARGUMENTS, p);
  SHARE_CODES(w)
  make_table(table, w);
  __global const STYPE(TYPE) *x_rows = AT_CONST(TYPE, x_base, x_offset);
  const uint id = get_local_id(0), lane = id & 31, warp = id >> 5;
  const uint piece = warp % PIECES, team = warp / PIECES;
  const long n0 = (long)get_group_id(0) * (TEAMS * W_ROWS), n = n0 + team * W_ROWS + (lane >> 2);
  const X x = x_of((__global const ushort *)x_rows, p);
  float4 sum[X_TILES][W_TILES];
  UNROLL for (int c = 0; c < X_TILES; ++c) UNROLL for (int i = 0; i < W_TILES; ++i) sum[c][i] = (float4)(0);
  const long units = p.k / UNIT, last = p.n - 1;
  const long steps = ((units + 3) / 4 + PIECES * WINDOW - 1) / (PIECES * WINDOW) * WINDOW;  // of a piece
#define FIRST_UNIT(step) (4 * (CONTIGUOUS ? piece * steps + (step) : (step) * PIECES + piece))
  const uint t = lane & 3;
  Packed next[2 * W_TILES], next_scales[2 * W_TILES];
  if (units > 0) {
    load_rows(w, n, last, FIRST_UNIT(0) + t, units, next);
    load_rows(w, n, last, FIRST_UNIT(0) + t * WINDOW, units, next_scales);
  }
  ROLLED for (long i = 0; i < steps; i += WINDOW) {
    Packed a[2 * W_TILES], scales[2 * W_TILES];
    UNROLL for (int r = 0; r < 2 * W_TILES; ++r) scales[r] = next_scales[r];
    if (WINDOWED && i + WINDOW < steps)
      load_rows(w, n, last, FIRST_UNIT(i + WINDOW) + t * WINDOW, units, next_scales);
    UNROLL_ON_DEVICE for (int j = 0; j < WINDOW; ++j) {
      UNROLL for (int r = 0; r < 2 * W_TILES; ++r) a[r] = next[r];
      if (i + j + 1 < steps) load_rows(w, n, last, FIRST_UNIT(i + j + 1) + t, units, next);
      const Packed *scaled = WINDOWED || SAME_SCALES ? scales : a;
      add_units(tiles, table, sum, w, a, scaled, x, (FIRST_UNIT(i + j) + t) * UNIT, j);
    }
  }
  __local float *sums = (__local float *)tiles;  // [piece][team][row of the weight][column]
#define TEAM_ROWS (TEAMS * W_ROWS)
  UNROLL for (int c = 0; c < X_TILES; ++c) {
    barrier(CLK_LOCAL_MEM_FENCE);
    UNROLL for (int i = 0; i < W_TILES; ++i) {
      const uint row = team * W_ROWS + 16 * i + (lane >> 2);
      __local float *to = sums + (piece * TEAM_ROWS + row) * 8 + 2 * (lane & 3);
      vstore2(sum[c][i].xy, 0, to);
      vstore2(sum[c][i].zw, 0, to + 64);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint i = id; i < TEAM_ROWS * X_ROWS; i += ITEMS) {
      const uint of_x = i / TEAM_ROWS, of_w = i % TEAM_ROWS;
      const long m = X_ROWS * c + of_x, row = n0 + of_w;
      if (m >= p.m || row >= p.n) continue;
      float y = 0;
      UNROLL for (int j = 0; j < PIECES; ++j) UNROLL for (int column = 0; column < COLS; ++column)
        y += sums[(j * TEAM_ROWS + of_w) * 8 + of_x * COLS + column];
      y = finished(y, w, row, x_rows + m * p.x_row, bias_base, bias_offset, p);
      STORE(TYPE, AT(TYPE, out_base, out_offset), m * p.n + row, y);
    }
  }
}
