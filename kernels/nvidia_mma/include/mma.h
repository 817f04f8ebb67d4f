// What NVIDIA's matrix units need beyond OpenCL C: copies to local memory that nobody waits for, matrices
// from local memory to registers, products of fragments. Each is one PTX instruction or two that the driver's
// compiler takes as they are; with EMULATED they are plain OpenCL C, so that all that is around them runs on
// any device. A fragment is a lane's share of a small matrix, as PTX lays it out; for lane 4 g + t:
//   left (16 rows): words x, y, z, w of rows g, g + 8, g, g + 8; x and y of the first half of k, z and w of
//   the second; right (8 columns): two words of column g, one of each half of k. A word is k = 2 t and
//   2 t + 1 of the half for 16-bit types, k = t for TF32, k = 4 t to 4 t + 3 for int8.
//   sums: x, y of row g, z, w of row g + 8, columns 2 t and 2 t + 1.
// Defines: TYPE f16, bf16, f32 (TF32) or i8; GENERATION 75, 80 or 90: the compute capability that is there at
// least; EMULATED.
#ifndef OCLTENSOR_MMA_H
#define OCLTENSOR_MMA_H
#include "types.h"

#define ELEMENT_BYTES ((int)sizeof(STYPE(TYPE)))
#define CHUNK 16                             // bytes that are copied at once, at multiples of 16
#define CHUNK_ELEMENTS (CHUNK / ELEMENT_BYTES)
#define STEP_BYTES 32                        // of k in one product of fragments
#define ASYNC (GENERATION >= 80)             // copies go to local memory without registers
#define KIND_f16 0
#define KIND_bf16 1
#define KIND_f32 2
#define KIND_i8 3
#define KIND CAT(KIND_, TYPE)
#if KIND == KIND_i8
typedef int sum_t;
typedef int2 sum2_t;
typedef int4 sum4_t;
#else
typedef float sum_t;
typedef float2 sum2_t;
typedef float4 sum4_t;
#endif

// A chunk of which `bytes` exist; the others are zeros. Nothing is read if there are none.
INLINE uint4 load_chunk(__global const char *from, int bytes) {
  if (bytes == CHUNK) return *(__global const uint4 *)from;
  uint v[4] = {0, 0, 0, 0};
#if KIND == KIND_i8
  UNROLL for (int e = 0; e < CHUNK; ++e)
    if (e < bytes) v[e / 4] |= (uint)((__global const uchar *)from)[e] << (8 * (e & 3));
#else
  UNROLL for (int e = 0; e < CHUNK / 2; ++e)
    if (2 * e < bytes) v[e / 2] |= (uint)((__global const ushort *)from)[e] << (16 * (e & 1));
#endif
  return (uint4)(v[0], v[1], v[2], v[3]);
}

// A chunk that exists or does not.
INLINE uint4 load_whole_chunk(__global const char *from, bool exists) {
  return exists ? *(__global const uint4 *)from : (uint4)(0);
}

// 16 bytes, or 8, that exist or are zeros. What compilers know of a load they may divide again.
#if EMULATED
INLINE uint4 load_four(__global const void *from, bool exists) {
  return exists ? *(__global const uint4 *)from : (uint4)(0);
}
INLINE uint2 load_two(__global const void *from, bool exists) {
  return exists ? *(__global const uint2 *)from : (uint2)(0);
}
#else
INLINE uint4 load_four(__global const void *from, bool exists) {
  uint4 v = (uint4)(0);
  asm("{.reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
      : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w) : "l"(from), "r"((int)exists));
  return v;
}
INLINE uint2 load_two(__global const void *from, bool exists) {
  uint2 v = (uint2)(0);
  asm("{.reg .pred p; setp.ne.s32 p, %3, 0; @p ld.global.nc.v2.u32 {%0, %1}, [%2];}"
      : "+r"(v.x), "+r"(v.y) : "l"(from), "r"((int)exists));
  return v;
}
#endif

// Places are bytes of local memory, counted from PLACE(tiles).
#if EMULATED

#define PLACE(tiles) 0u
INLINE void store_chunk(__local uchar *tiles, uint to, uint4 v) { *(__local uint4 *)(tiles + to) = v; }
INLINE void copy_chunk(__local uchar *tiles, uint to, __global const char *from, int bytes) {
  store_chunk(tiles, to, load_chunk(from, bytes));
}
INLINE void copy_whole_chunk(__local uchar *tiles, uint to, __global const char *from) {
  store_chunk(tiles, to, *(__global const uint4 *)from);
}
#define COMMIT_COPIES
#define WAIT_FOR_COPIES(later)
INLINE uint load_word(__local const uchar *tiles, uint at) { return *(__local const uint *)(tiles + at); }

// Four matrices of 8 rows of 16 bytes: lane 4 g + t receives bytes 4 t .. of row g of each, or, turned,
// the 16-bit elements g of rows 2 t and 2 t + 1. ROW(l) is the place of row l & 7 of matrix l >> 3.
#define LOAD_MATRICES(v, tiles, lane, ROW)                                       \
  {                                                                              \
    v.x = load_word(tiles, ROW(((lane) >> 2)) + ((lane)&3) * 4);                 \
    v.y = load_word(tiles, ROW((8 + ((lane) >> 2))) + ((lane)&3) * 4);           \
    v.z = load_word(tiles, ROW((16 + ((lane) >> 2))) + ((lane)&3) * 4);          \
    v.w = load_word(tiles, ROW((24 + ((lane) >> 2))) + ((lane)&3) * 4);          \
  }
INLINE uint pair_of(__local const uchar *tiles, uint first, uint second) {
  return *(__local const ushort *)(tiles + first) | (uint) * (__local const ushort *)(tiles + second) << 16;
}
#define TURNED_PAIR(tiles, lane, ROW, matrix)                                                   \
  pair_of(tiles, ROW((8 * (matrix) + 2 * ((lane)&3))) + ((lane) >> 2) * 2,                      \
          ROW((8 * (matrix) + 2 * ((lane)&3) + 1)) + ((lane) >> 2) * 2)
#define LOAD_TURNED(v, tiles, lane, ROW)        \
  {                                             \
    v.x = TURNED_PAIR(tiles, lane, ROW, 0);     \
    v.y = TURNED_PAIR(tiles, lane, ROW, 1);     \
    v.z = TURNED_PAIR(tiles, lane, ROW, 2);     \
    v.w = TURNED_PAIR(tiles, lane, ROW, 3);     \
  }

#define EXCHANGE_WORDS (4 * FRAGMENTS_M + 2)  // that a lane shows to its warp
#define TILE_BYTES (RING_BYTES + ITEMS * EXCHANGE_WORDS * 4)
#define UNROLL_ON_DEVICE  // unrolling would take PoCL's compiler minutes
#if KIND == KIND_f32
INLINE float element_of(uint word, int k) { return as_float(word & 0xffffe000u); }  // the unit cuts
#define PER_WORD 1
#elif KIND == KIND_i8
INLINE int element_of(uint word, int k) { return (char)(word >> (8 * (k & 3))); }
#define PER_WORD 4
#else
INLINE float element_of(uint word, int k) {
  const ushort bits = (ushort)(word >> (16 * (k & 1)));
#if KIND == KIND_bf16
  return as_float((uint)bits << 16);
#else
  return vload_half(0, (const half *)&bits);
#endif
}
#define PER_WORD 2
#endif

// d[i] += the i-th left fragment times a right one, for the first `count` (at most FRAGMENTS_M). The lanes of
// a warp see each other's words behind the RING_BYTES of `tiles`.
INLINE void multiply_some(__local uchar *tiles, sum4_t *d, const uint4 *a, uint b0, uint b1, int count) {
  __local uint *words = (__local uint *)(tiles + RING_BYTES);
  const int item = get_local_id(0), lane = item & 31, g = lane >> 2, t = lane & 3;
  __local uint *mine = words + item * EXCHANGE_WORDS;
  __local const uint *warp = words + (item - lane) * EXCHANGE_WORDS;
  for (int i = 0; i < count; ++i) {
    mine[4 * i] = a[i].x;
    mine[4 * i + 1] = a[i].y;
    mine[4 * i + 2] = a[i].z;
    mine[4 * i + 3] = a[i].w;
  }
  mine[4 * FRAGMENTS_M] = b0;
  mine[4 * FRAGMENTS_M + 1] = b1;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = 0; i < count; ++i) {
    sum_t sums[4] = {d[i].x, d[i].y, d[i].z, d[i].w};
    for (int e = 0; e < 4; ++e)
      for (int k = 0; k < STEP_BYTES / ELEMENT_BYTES; ++k) {
        const int high = k / (4 * PER_WORD), at = k % (4 * PER_WORD) / PER_WORD;
        const uint left = warp[(4 * g + at) * EXCHANGE_WORDS + 4 * i + (e >> 1) + 2 * high];
        const uint right = warp[(4 * (2 * t + (e & 1)) + at) * EXCHANGE_WORDS + 4 * FRAGMENTS_M + high];
        sums[e] += element_of(left, k) * element_of(right, k);
      }
    d[i] = (sum4_t)(sums[0], sums[1], sums[2], sums[3]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

// The value of the lane whose number differs from this one's in the bits of `across`; all items must call it.
INLINE uint from_neighbour(__local uchar *tiles, uint v, uint across) {
  __local uint *words = (__local uint *)(tiles + RING_BYTES);
  const uint item = get_local_id(0);
  words[item] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint r = words[item ^ across];
  barrier(CLK_LOCAL_MEM_FENCE);
  return r;
}
// The value of a lane of this one's warp; all items must call it.
INLINE uint from_lane(__local uchar *tiles, uint v, uint lane) {
  __local uint *words = (__local uint *)(tiles + RING_BYTES);
  const uint item = get_local_id(0);
  words[item] = v;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint r = words[(item & ~31u) | lane];
  barrier(CLK_LOCAL_MEM_FENCE);
  return r;
}
#define HIDE(x)
INLINE uint permute_bytes(uint a, uint b, uint which) {
  const ulong bytes = (ulong)b << 32 | a;
  uint r = 0;
  for (int i = 0; i < 4; ++i) {
    const uint one = which >> (4 * i), byte = (uint)(bytes >> (8 * (one & 7))) & 0xff;
    r |= (one & 8 ? (byte & 0x80 ? 0xff : 0) : byte) << (8 * i);
  }
  return r;
}
INLINE uint and_or(uint a, uint b, uint c) { return (a & b) | c; }
INLINE float fast_exp2(float x) { return exp2(x); }
INLINE float larger(float a, float b) { return fmax(a, b); }

INLINE uint tf32_of(uint x) {
  if ((x & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;
  return (x + 0xfffu + ((x >> 13) & 1)) & 0xffffe000u;
}

#else  // PTX

#include "ptx.h"

#define TILE_BYTES RING_BYTES
#define UNROLL_ON_DEVICE UNROLL

#define PLACE(tiles) ((uint)(size_t)(tiles))
INLINE void store_chunk(__local uchar *tiles, uint to, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
#if ASYNC
// A size that is not a constant 16, or 16 or 0 by a condition, costs five instructions more.
INLINE void copy_chunk(__local uchar *tiles, uint to, __global const char *from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
INLINE void copy_whole_chunk(__local uchar *tiles, uint to, __global const char *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
#define COMMIT_COPIES asm volatile("cp.async.commit_group;" ::: "memory");
// Until all copies have arrived but those of the `later` groups that were committed last.
#define WAIT_FOR_COPIES(later) asm volatile("cp.async.wait_group %0;" ::"n"(later) : "memory");
#else
#define COMMIT_COPIES
#define WAIT_FOR_COPIES(later)
#endif
INLINE uint load_word(__local const uchar *tiles, uint at) {
  uint v;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}

#define LOAD_MATRICES(v, tiles, lane, ROW) LDMATRIX(v, "", ROW(lane))
#define LOAD_TURNED(v, tiles, lane, ROW) LDMATRIX(v, ".trans", ROW(lane))

#if KIND == KIND_i8
#define EIGHT_ROWS(x, y, a, b)                                                          \
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};" \
      : "+r"(x), "+r"(y) : "r"(a), "r"(b));
INLINE int4 fragment_product(int4 d, uint4 a, uint b0, uint b1) {
#if GENERATION >= 80
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+r"(d.x), "+r"(d.y), "+r"(d.z), "+r"(d.w)
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else  // a quarter, in the same fragments
  EIGHT_ROWS(d.x, d.y, a.x, b0)
  EIGHT_ROWS(d.x, d.y, a.z, b1)
  EIGHT_ROWS(d.z, d.w, a.y, b0)
  EIGHT_ROWS(d.z, d.w, a.w, b1)
#endif
  return d;
}
#else
#if KIND == KIND_f32
#define FRAGMENT_PRODUCT "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
#elif KIND == KIND_bf16
#define FRAGMENT_PRODUCT "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
#else
#define FRAGMENT_PRODUCT "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
#endif
INLINE float4 fragment_product(float4 d, uint4 a, uint b0, uint b1) {
#if GENERATION >= 80
  asm(FRAGMENT_PRODUCT "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d.x), "+f"(d.y), "+f"(d.z), "+f"(d.w)
      : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else  // half as long along k, in the same fragments
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d.x), "+f"(d.y), "+f"(d.z), "+f"(d.w) : "r"(a.x), "r"(a.y), "r"(b0));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d.x), "+f"(d.y), "+f"(d.z), "+f"(d.w) : "r"(a.z), "r"(a.w), "r"(b1));
#endif
  return d;
}
#endif
INLINE void multiply_some(__local uchar *tiles, sum4_t *d, const uint4 *a, uint b0, uint b1, int count) {
  UNROLL for (int i = 0; i < count; ++i) d[i] = fragment_product(d[i], a[i], b0, b1);
}

INLINE uint from_neighbour(__local uchar *tiles, uint v, uint across) {
  uint r;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(across));
  return r;
}
INLINE uint from_lane(__local uchar *tiles, uint v, uint lane) {
  uint r;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(r) : "r"(v), "r"(lane));
  return r;
}
// Makes an integer variable a new one to the compiler: what is computed from it is not computed once before a
// loop and kept in registers.
#define HIDE(x) asm volatile("" : "+r"(x));

#if KIND == KIND_f32
// A float as the nearest TF32 number, still as a float; NaN and infinity stay.
INLINE uint tf32_of(uint x) {
  uint r;
#if GENERATION >= 90
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(as_float(x)));
#else
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(as_float(x)));
#endif
  return r;
}
#endif

#endif  // EMULATED

// d[i] += the i-th left fragment times a right one, for all FRAGMENTS_M.
INLINE void multiply(__local uchar *tiles, sum4_t *d, const uint4 *a, uint b0, uint b1) {
  multiply_some(tiles, d, a, b0, b1, FRAGMENTS_M);
}

// Two adjacent results of a 16-bit type as a word.
INLINE uint pair_from(float low, float high) {
#if EMULATED
#if KIND == KIND_bf16
  return round_bf16(low) | (uint)round_bf16(high) << 16;
#else
  ushort bits[2];
  vstore_half_rte(low, 0, (half *)bits);
  vstore_half_rte(high, 1, (half *)bits);
  return bits[0] | (uint)bits[1] << 16;
#endif
#else
  uint r;
#if KIND == KIND_bf16
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
#elif GENERATION >= 80
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
#else
  asm("{ .reg .b16 low, high; cvt.rn.f16.f32 low, %1; cvt.rn.f16.f32 high, %2; mov.b32 %0, {low, high}; }"
      : "=r"(r) : "f"(low), "f"(high));
#endif
  return r;
#endif
}

#if KIND == KIND_f16 || KIND == KIND_bf16
// The sums of two pairs of 16-bit numbers, each rounded.
INLINE uint add_to_pairs(uint a, uint b) {
#if EMULATED
  return pair_from(element_of(a, 0) + element_of(b, 0), element_of(a, 1) + element_of(b, 1));
#else
  uint r;
#if KIND == KIND_bf16
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(0x3f803f80u), "r"(b));
#else
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#endif
  return r;
#endif
}
#endif

#define EXCHANGE(tiles, v, across) from_neighbour(tiles, v, across)
#endif
