// Matrix product on Hopper's matrix units: work-groups are persistent and take tiles of 128 x BN in turn. One
// warp fills a ring of STAGES buffers in local memory through the copy engine, two warpgroups of 64 rows each
// multiply filled buffers.
// Defines: TYPE f16 or bf16 (operands and result, sums in float), f32 (TF32 products), or f32 with
// BF16_PARTS 3: operands are given as three bf16 parts with exactly their sum (bf16_parts.cl), and six of
// the nine products are added. The matrix unit truncates when it adds, so its sums are added to ordinary
// float sums every 64 k. BN 64, 128, 192 or 256 columns; A_ALONG_K, B_ALONG_K (1: contiguous along k, which
// TF32 requires, 0: along m or n); SELF_TYPE, ADD_SELF (0, 1); ALIGNED (1: rows of a 16-bit result start at
// multiples of 16 bytes, and all columns of self can be read in pairs, see pair.h); PARTIAL (1: k is divided
// into pieces, whose sums are written as floats for split_k_sum.cl, a matrix for each piece of each product).
// Every line of an operand, and every matrix of a batch, starts at a multiple of 16 bytes.
#include "epilogue.h"

#define FLOAT_RESULT (PARTIAL || BF16_PARTS > 1 || TF32)
#include "hopper_tile.h"
#include "pair.h"
END_OF_VECTORS(float)

// Parameters: c, a and b, self; a word that equals `stop` if this product must not be computed
// (bf16_parts.cl); room for two tensor maps per work-group; `matrices` counts the batch, `pieces` those of k,
// of `piece_steps` steps each.
// `a_matrices`, `b_matrices`: matrices of the batch's stride from one bf16 part of an operand to the next.
__attribute__((reqd_work_group_size(ITEMS, 1, 1)))
__kernel void matmul_hopper(__global void *c_base, ulong c_offset, __global const void *a_base,
                            ulong a_offset, __global const void *b_base, ulong b_offset,
                            __global const void *s_base, ulong s_offset, __global const void *word_base,
                            ulong word_offset, uint stop, __global void *maps_base, ulong maps_offset,
                            int matrices, int pieces, int piece_steps, int a_matrices, int b_matrices,
                            const MatmulParams p) {
  __local uchar tiles[STAGES * STAGE_BYTES] __attribute__((aligned(1024)));
  __local uint words[2 * MAP_WORDS] __attribute__((aligned(128)));
  __local ulong bars[2 * STAGES] __attribute__((aligned(16)));
#if BF16_PARTS == 3
  if (*(__global const uint *)((__global const char *)word_base + word_offset) == stop) return;
#endif
  const int m = p.m, n = p.n;
  const int m_tiles = (m + BM - 1) / BM, n_tiles = (n + BN - 1) / BN, steps = ((int)p.k + BK - 1) / BK;
  const int count = m_tiles * n_tiles * matrices * pieces;
  // For few rows the boxes are no higher than needed: filling with zeros takes the engine as long as copying.
  const int a_rows = min(BM, (m + 7) / 8 * 8), b_rows = min(BN, (n + 7) / 8 * 8);
  BEGIN_RING(tiles, bars)

  if (warpgroup == WARPGROUPS) {
    __global uint *map_a =
        (__global uint *)((__global char *)maps_base + maps_offset) + get_group_id(0) * 2 * MAP_WORDS;
    __global uint *map_b = map_a + MAP_WORDS;
    const int a_z = p.a_batch != 0, b_z = p.b_batch != 0;
    const int a_count = (BF16_PARTS - 1) * a_matrices + (a_z ? matrices : 1),
              b_count = (BF16_PARTS - 1) * b_matrices + (b_z ? matrices : 1);
    {
      __global const INSIDE *a = (__global const INSIDE *)((__global const char *)a_base + a_offset);
      __global const INSIDE *b = (__global const INSIDE *)((__global const char *)b_base + b_offset);
      const ulong size = sizeof(INSIDE);
      const ulong a_line = (A_ALONG_K ? p.a_row : p.a_col) * size,
                  b_line = (B_ALONG_K ? p.b_col : p.b_row) * size;
      const ulong a_lines = BF16_PARTS == 1 ? 1
                            : A_ALONG_K ? p.m
                                        : p.k,
                  b_lines = BF16_PARTS == 1 ? 1
                            : B_ALONG_K ? p.n
                                        : p.k;
      const ulong a_bf16_part = a_z ? p.a_batch * size : a_lines * a_line,
                  b_bf16_part = b_z ? p.b_batch * size : b_lines * b_line;
      MAKE_MAP(ELEMENT, words, map_a, a, A_ALONG_K ? p.k : p.m, A_ALONG_K ? p.m : p.k, a_count, a_line,
               a_bf16_part, A_ALONG_K ? BK : 64, A_ALONG_K ? a_rows : BK)
      MAKE_MAP(ELEMENT, words + MAP_WORDS, map_b, b, B_ALONG_K ? p.k : p.n, B_ALONG_K ? p.n : p.k, b_count,
               b_line, b_bf16_part, B_ALONG_K ? BK : 64, B_ALONG_K ? b_rows : BK)
    }
    const uint bytes = BF16_PARTS * ((A_ALONG_K ? a_rows * 128 : A_BYTES) + (B_ALONG_K
        ? b_rows * 128 : B_BYTES));
    if (lane == 0) {
      for (int index = get_group_id(0); index < count; index += get_num_groups(0)) {
        const Tile t = tile_at(index, m_tiles, n_tiles);
        const int matrix = PARTIAL ? t.z % matrices : t.z;
        const int first = PARTIAL ? t.z / matrices * piece_steps : 0,
                  last = PARTIAL ? min(first + piece_steps, steps) : steps;
        for (int step = first; step < last; ++step) {
          barrier_wait(empty + 8 * stage, phase ^ 1);
          const uint bar = full + 8 * stage;
          uint to = ring + stage * STAGE_BYTES;
          barrier_expect(bar, bytes);
          UNROLL for (int bf16_part = 0; bf16_part < BF16_PARTS; ++bf16_part) {
            const int z = bf16_part * a_matrices + matrix * a_z;
#if A_ALONG_K
            copy_tile(to, map_a, step * BK, t.m0, z, bar);
#else
            UNROLL for (int i = 0; i < WARPGROUPS; ++i)
              copy_tile(to + i * 8192, map_a, t.m0 + i * 64, step * BK, z, bar);
#endif
            to += A_BYTES;
          }
          UNROLL for (int bf16_part = 0; bf16_part < BF16_PARTS; ++bf16_part) {
            const int z = bf16_part * b_matrices + matrix * b_z;
#if B_ALONG_K
            copy_tile(to, map_b, step * BK, t.n0, z, bar);
#else
            UNROLL for (int j = 0; j < BN / 64; ++j)
              copy_tile(to + j * 8192, map_b, t.n0 + j * 64, step * BK, z, bar);
#endif
            to += B_BYTES;
          }
          NEXT_STAGE
        }
      }
    }
    return;
  }

  const int warp = (item >> 5) & 3, quarter = lane & 3;
  float d[ACCUMULATORS];
  UNROLL for (int i = 0; i < ACCUMULATORS; ++i) d[i] = 0.0f;
#if BF16_PARTS == 3
  float sums[ACCUMULATORS];
#else
#define sums d
#endif
  for (int index = get_group_id(0); index < count; index += get_num_groups(0)) {
    const Tile t = tile_at(index, m_tiles, n_tiles);
    const int first = PARTIAL ? t.z / matrices * piece_steps : 0,
              count_steps = PARTIAL ? min(piece_steps, steps - first) : steps;
    SUM_STEPS(sums, d, count_steps)
    const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, t.z, p);

    UNROLL for (int half_tile = 0; half_tile < 2; ++half_tile) {
      // This item holds columns 8 j + 2 quarter and the next of row `row`, for all j.
      const int row = t.m0 + warpgroup * 64 + warp * 16 + half_tile * 8 + (lane >> 2);
      const bool inside = row < m;
      __global result_t *to =
          (__global result_t *)((__global char *)c_base + c_offset) + t.z * p.c_batch + row * p.c_row;
#if !PARTIAL
      UNROLL for (int i = 0; i < ACCUMULATORS / 2; ++i) {
        const int at = i / 2 * 4 + half_tile * 2 + i % 2;
        sums[at] = scaled_float(sums[at], end);
      }
#endif
#if ADD_SELF
      // Without conditions, so that the loads of all columns are under way at once: outside of the matrix its
      // last row and columns are read once more.
      __global const STYPE(SELF_TYPE) *from = end.self + min(row, m - 1) * p.s_row;
#if ALIGNED
      UNROLL for (int j = 0; j < BN / 8; ++j) {
        const float2 v = PAIR(SELF_TYPE, from + min(t.n0 + j * 8 + quarter * 2, n - 2));
        const int at = j * 4 + half_tile * 2;
        sums[at] = with_self_float(sums[at], v.x, end);
        sums[at + 1] = with_self_float(sums[at + 1], v.y, end);
      }
#else
      UNROLL for (int i = 0; i < ACCUMULATORS / 2; ++i) {
        const int at = i / 2 * 4 + half_tile * 2 + i % 2, column = t.n0 + i / 2 * 8 + quarter * 2 + i % 2;
        sums[at] = with_self_float(sums[at], LOAD(SELF_TYPE, from, min(column, n - 1) * p.s_col), end);
      }
#endif
#endif
#if FLOAT_RESULT
      const bool aligned = ((size_t)to & 7) == 0;
      UNROLL for (int j = 0; j < BN / 8; ++j) {
        const int column = t.n0 + j * 8 + quarter * 2;
        const float x = sums[j * 4 + half_tile * 2], y = sums[j * 4 + half_tile * 2 + 1];
        if (!inside) continue;
        if (aligned && column + 2 <= n) *(__global float2 *)(to + column) = (float2)(x, y);
        else {
          if (column < n) to[column] = x;
          if (column + 1 < n) to[column + 1] = y;
        }
      }
#elif ALIGNED
      UNROLL for (int j = 0; j < BN / 8; j += 4) {
        NEIGHBOURS_OF(v, sums, j, half_tile, quarter)
        const int column = t.n0 + (j + quarter) * 8;
        if (!inside) continue;
        if (column + 8 <= n) *(__global uint4 *)(to + column) = (uint4)(v[0], v[1], v[2], v[3]);
        else {
          UNROLL for (int e = 0; e < 8; ++e)
            if (column + e < n) ((__global ushort *)to)[column + e] = (ushort)(v[e / 2] >> (16 * (e & 1)));
        }
      }
#else  // four items side by side write 16 adjacent bytes
      UNROLL for (int j = 0; j < BN / 8; ++j) {
        const int column = t.n0 + j * 8 + quarter * 2;
        const uint pair = PAIR_OF(sums, j, half_tile);
        if (inside && column < n) ((__global ushort *)to)[column] = (ushort)pair;
        if (inside && column + 1 < n) ((__global ushort *)to)[column + 1] = (ushort)(pair >> 16);
      }
#endif
    }
  }
}
