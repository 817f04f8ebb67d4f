// Products of tiles that a work-group of a GPU has in local memory, As[BK][rows] and Bs[BK][columns], with
// TM x TN results in the registers of each work-item. The work-items of a run of 32 have LX places along the
// columns and LY along the rows, each of vectors of four that are 4 * LX or 4 * LY apart. Operands under way
// stay as they are in memory, in few registers, until they are stored to local memory. Needs types.h, TM, TN;
// BK is 8 unless a launch says otherwise.
#ifndef OCLTENSOR_REGISTER_TILE_H
#define OCLTENSOR_REGISTER_TILE_H
#ifndef BK
#define BK 8
#endif
#include "steps.h"
// Tiles of 256 items are made for two work-groups on a compute unit at a time, 128 registers an item; some of
// their forms would be given 130 (plugin/opencl/nvidia/resident_groups.h).
#define TWO_GROUPS_OF_256
#define LX 8
#define LY (32 / LX)
#define PART(v, i) \
  ((i) % 4 == 0 ? v[(i) / 4].x : (i) % 4 == 1 ? v[(i) / 4].y : (i) % 4 == 2 ? v[(i) / 4].z : v[(i) / 4].w)

// One element, as it is in memory.
typedef float raw1_f32;
typedef ushort raw1_f16, raw1_bf16;
typedef char raw1_i8;
INLINE float unpack1_f32(float v) { return v; }
INLINE float unpack1_f16(ushort v) { return vload_half(0, (const half *)&v); }
INLINE float unpack1_bf16(ushort v) { return as_float((uint)v << 16); }
INLINE float unpack1_i8(char v) { return v; }
// Two neighbours in memory at a multiple of two.
typedef float2 raw2_f32;
typedef uint raw2_f16, raw2_bf16;
typedef ushort raw2_i8;
INLINE float2 unpack2_f32(float2 v) { return v; }
INLINE float2 unpack2_f16(uint v) { return vload_half2(0, (const half *)&v); }
INLINE float2 unpack2_bf16(uint v) { return as_float2((uint2)(v << 16, v & 0xffff0000u)); }
INLINE float2 unpack2_i8(ushort v) { return convert_float2(as_char2(v)); }
// Four neighbours in memory at a multiple of four: one load, which vload4 of 16-bit types is not, as it
// promises no such place.
typedef float4 raw4_f32;
typedef uint2 raw4_f16, raw4_bf16;
typedef uint raw4_i8;
INLINE float4 unpack4_f32(float4 v) { return v; }
INLINE float4 unpack4_f16(uint2 v) { return vload_half4(0, (const half *)&v); }
INLINE float4 unpack4_bf16(uint2 v) {
  return as_float4((uint4)(v.x << 16, v.x & 0xffff0000u, v.y << 16, v.y & 0xffff0000u));
}
INLINE float4 unpack4_i8(uint v) { return convert_float4(as_char4(v)); }
// v[4 / W], units of W elements of type A as they are in memory, as float4.
#define RAW(W, A) RAW_OF(W, A)
#define RAW_OF(W, A) raw##W##_##A
#define UNPACK(W, A, v) UNPACK_OF(W, A, v)
#define UNPACK_OF(W, A, v) UNPACK_##W(A, v)
#define UNPACK_4(A, v) unpack4_##A((v)[0])
#define UNPACK_2(A, v) (float4)(unpack2_##A((v)[0]), unpack2_##A((v)[1]))
#define UNPACK_1(A, v) \
  (float4)(unpack1_##A((v)[0]), unpack1_##A((v)[1]), unpack1_##A((v)[2]), unpack1_##A((v)[3]))

// Where a work-item's results begin in the tile: its rows are row + i * 4 * LY .. + 3, its columns
// column + j * 4 * LX .. + 3. `wx`: runs of 32 along the columns; `rows` and `columns` of an item.
typedef struct {
  int row, column;
} ItemTile;
INLINE ItemTile item_tile(int item, int wx, int rows, int columns) {
  const int lane = item & 31, run = item >> 5;
  ItemTile at = {run / wx * (LY * rows) + lane / LX * 4, run % wx * (LX * columns) + lane % LX * 4};
  return at;
}
// How far result (i, j) of the item is from there.
INLINE int row_offset(int i) { return i / 4 * 4 * LY + i % 4; }
INLINE int column_offset(int j) { return j / 4 * 4 * LX + j % 4; }

// acc[TM][TN] += the product of two tiles, whose lines of step k are A_LINE(b, k) and B_LINE(b, k), and of
// which the work-item's part is `at`. In zigzag over pairs of rows (a0b0 a1b0 a1b1 a0b1 a0b2 ...), so that
// every product shares an operand with the one before it: reading three new operands takes NVIDIA's register
// file one more cycle. This order alone gained 9 %.
#define MULTIPLY_TILES(A_LINE, B_LINE, b, at, acc)                                    \
  UNROLL_STEPS for (int k = 0; k < BK; ++k) {                                         \
    float4 a_[TM / 4], b_[TN / 4];                                                    \
    UNROLL for (int i = 0; i < TM / 4; ++i)                                           \
      a_[i] = *(__local const float4 *)&A_LINE(b, k)[(at).row + i * 4 * LY];          \
    UNROLL for (int j = 0; j < TN / 4; ++j)                                           \
      b_[j] = *(__local const float4 *)&B_LINE(b, k)[(at).column + j * 4 * LX];       \
    UNROLL for (int i = 0; i < TM; i += 2) UNROLL for (int jj = 0; jj < TN; ++jj) {   \
      const int j = i & 2 ? TN - 1 - jj : jj, q = i + (jj & 1), r = i + 1 - (jj & 1); \
      (acc)[q][j] = fma(PART(a_, q), PART(b_, j), (acc)[q][j]);                       \
      (acc)[r][j] = fma(PART(a_, r), PART(b_, j), (acc)[r][j]);                       \
    }                                                                                 \
  }

// acc += the products of steps first .. last - 1 (integers of type INDEX), of which two are in local memory,
// in buffers 0 and 1. LOAD_STEP(step) brings a step's numbers to registers, the steps in order, and
// STORE_STEP(b) from there to buffer b, whose lines are A_LINE(b, k) and B_LINE(b, k). All work-items have
// the same steps.
#define ADD_STEPS(INDEX, first, last, LOAD_STEP, STORE_STEP, A_LINE, B_LINE, at, acc) \
  {                                                                                   \
    int current_ = 0;                                                                 \
    if ((first) < (last)) {                                                           \
      LOAD_STEP(first);                                                               \
      STORE_STEP(0);                                                                  \
    }                                                                                 \
    barrier(CLK_LOCAL_MEM_FENCE);                                                     \
    for (INDEX step_ = (first); step_ < (last); ++step_) {                            \
      if (step_ + 1 < (last)) LOAD_STEP(step_ + 1);                                   \
      MULTIPLY_TILES(A_LINE, B_LINE, current_, at, acc)                               \
      if (step_ + 1 < (last)) {                                                       \
        current_ ^= 1;                                                                \
        STORE_STEP(current_);                                                         \
      }                                                                               \
      barrier(CLK_LOCAL_MEM_FENCE);                                                   \
    }                                                                                 \
  }
#endif
