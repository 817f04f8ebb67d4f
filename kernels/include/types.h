// Element types in kernels. A dtype is named by its suffix (f32, bf16, i64, bool, ...), given as a define
// such as `#define A bf16`; from it come
//   STYPE(A)            the type in memory (ushort for bf16)
//   CTYPE(A), CVEC(A)   the type to compute in (float for bf16) and its 16-vector
//   LOAD(A, p, i), LOAD16(A, p, i), STORE(A, p, i, v), STORE16(A, p, i, v)     elements i (.. i+15) of
//                       STYPE(A)* p
//   FROM_BITS(A, u)     a compute-type number from its 8-byte slot in a parameter structure
//   TO(A, v), TO16(A, v)   conversion of any compute type to CTYPE(A) as ATen casts: truncation, bool by != 0
#ifndef OCLTENSOR_TYPES_H
#define OCLTENSOR_TYPES_H

// All functions that kernels call are inlined. If a processor's registers are narrower than 16 elements (no
// AVX-512), clang warns that the ABI of functions of such vectors depends on them, and PoCL prints that; the
// warning is switched off.
#ifdef __clang__
#if __has_warning("-Wpsabi")  // NVIDIA's compiler does not know the warning, and would report that
#pragma clang diagnostic ignored "-Wpsabi"
#endif
#if __has_warning("-Wpass-failed")  // where UNROLL stands at a loop whose length is not constant
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
#endif

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("unroll")
// Over axes `first` to `rank` - 1 of at most `most`, whose sizes and strides are in a structure. Compilers
// that copy structures which a variable indexes to each work-item's memory want constant indices.
#if COPIES_STRUCTURES
#define EACH_AXIS(k, first, rank, most) UNROLL for (int k = (first); k < (most); ++k) if (k < (rank))
#define EACH_AXIS_BACK(k, rank, most) UNROLL for (int k = (most) - 1; k >= 0; --k) if (k < (rank))
#else
#define EACH_AXIS(k, first, rank, most) UNROLL for (int k = (first); k < (most) && k < (rank); ++k)
#define EACH_AXIS_BACK(k, rank, most) for (int k = (rank) - 1; k >= 0; --k)
#endif
// For loops that take little time to run, but much to compile: neither unrolled nor vectorised.
#ifdef __clang__
#define ROLLED _Pragma("clang loop vectorize(disable) interleave(disable) unroll(disable)")
#else
#define ROLLED
#endif

// A kernel of one item in a group, ONE_ITEM __kernel void f(..) { .. }, is a function that the kernel calls
// where OUTLINED is 1 (plugin/opencl/outline_kernels.py): it asks get_global_id() for its place and knows no
// barrier. Its arrays are SCRATCH: private in a function, which cannot have others. So is a PER_ITEM kernel,
// whose groups may be of any size.
#define PER_ITEM
#define ONE_ITEM __attribute__((reqd_work_group_size(1, 1, 1)))
#if OUTLINED
#define SCRATCH
#define ITEM_FUNCTION static __attribute__((noinline)) void
#define ITEM_PARAMETERS size_t id0_, size_t id1_, size_t id2_, size_t count0_, size_t count1_, size_t count2_
#define ITEM_ARGUMENTS                                                                          \
  get_global_id(0), get_global_id(1), get_global_id(2), get_global_size(0), get_global_size(1), \
      get_global_size(2)
#define ITEM_ID(d) ((d) == 0 ? id0_ : (d) == 1 ? id1_ : id2_)
#define ITEM_COUNT(d) ((d) == 0 ? count0_ : (d) == 1 ? count1_ : count2_)
#else
#define SCRATCH __local
#endif

#define STYPE(A) CAT(stype_, A)
#define CTYPE(A) CAT(ctype_, A)
#define CVEC(A) CAT(cvec_, A)
#define LOAD(A, p, i) CAT(load_, A)(p, i)
#define LOAD16(A, p, i) CAT(load16_, A)(p, i)
#define STORE(A, p, i, v) CAT(store_, A)(p, i, v)
#define STORE16(A, p, i, v) CAT(store16_, A)(p, i, v)
#define FROM_BITS(A, u) CAT(from_bits_, A)(u)
#define TO(A, v) CAT(to_, A)(v)
#define TO16(A, v) CAT(to16_, A)(v)

// The pointer that an argument pair (base, byte offset) describes.
#define AT(A, base, offset) ((__global STYPE(A) *)((__global char *)(base) + (offset)))
#define AT_CONST(A, base, offset) ((__global const STYPE(A) *)((__global const char *)(base) + (offset)))

// A vector of 16 at any element's address, which is one store: PoCL 3.1 compiles vstore16 to three.
#define LOOSE_VECTOR(T) typedef CAT(T, 16) CAT(loose_, T) __attribute__((aligned(sizeof(T))));
LOOSE_VECTOR(uchar)
LOOSE_VECTOR(char)
LOOSE_VECTOR(ushort)
LOOSE_VECTOR(short)
LOOSE_VECTOR(int)
LOOSE_VECTOR(uint)
LOOSE_VECTOR(long)
LOOSE_VECTOR(ulong)
LOOSE_VECTOR(float)
#define STORE_LOOSE(T, v, p) *(__global CAT(loose_, T) *)(p) = (v);

#define PLAIN_TYPE(A, T)                                                                         \
  typedef T CAT(stype_, A);                                                                      \
  typedef T CAT(ctype_, A);                                                                      \
  typedef CAT(T, 16) CAT(cvec_, A);                                                              \
  INLINE T CAT(load_, A)(__global const T *p, long i) { return p[i]; }                           \
  INLINE CAT(T, 16) CAT(load16_, A)(__global const T *p, long i) { return vload16(0, p + i); }   \
  INLINE void CAT(store_, A)(__global T *p, long i, T v) { p[i] = v; }                           \
  INLINE void CAT(store16_, A)(__global T *p, long i, CAT(T, 16) v) { STORE_LOOSE(T, v, p + i) }

PLAIN_TYPE(u8, uchar)
PLAIN_TYPE(i8, char)
PLAIN_TYPE(i16, short)
PLAIN_TYPE(i32, int)
PLAIN_TYPE(i64, long)
PLAIN_TYPE(u16, ushort)
PLAIN_TYPE(u32, uint)
PLAIN_TYPE(u64, ulong)
PLAIN_TYPE(f32, float)
#define from_bits_u8(u) ((uchar)(u))
#define from_bits_i8(u) ((char)(u))
#define from_bits_i16(u) ((short)(u))
#define from_bits_i32(u) ((int)(u))
#define from_bits_i64(u) ((long)(u))
#define from_bits_u16(u) ((ushort)(u))
#define from_bits_u32(u) ((uint)(u))
#define from_bits_u64(u) ((ulong)(u))
#define from_bits_f32(u) as_float((uint)(u))
#define to_u8(v) convert_uchar(v)
#define to_i8(v) convert_char(v)
#define to_i16(v) convert_short(v)
#define to_i32(v) convert_int(v)
#define to_i64(v) convert_long(v)
#define to_u16(v) convert_ushort(v)
#define to_u32(v) convert_uint(v)
#define to_u64(v) convert_ulong(v)
#define to_f32(v) convert_float(v)
#define to16_u8(v) convert_uchar16(v)
#define to16_i8(v) convert_char16(v)
#define to16_i16(v) convert_short16(v)
#define to16_i32(v) convert_int16(v)
#define to16_i64(v) convert_long16(v)
#define to16_u16(v) convert_ushort16(v)
#define to16_u32(v) convert_uint16(v)
#define to16_u64(v) convert_ulong16(v)
#define to16_f32(v) convert_float16(v)

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
LOOSE_VECTOR(double)
PLAIN_TYPE(f64, double)
#define from_bits_f64(u) as_double((ulong)(u))
#define to_f64(v) convert_double(v)
#define to16_f64(v) convert_double16(v)
#endif

// bool: a byte, any non-zero value is true; computed as uchar 0 or 1.
typedef uchar stype_bool;
typedef uchar ctype_bool;
typedef uchar16 cvec_bool;
INLINE uchar load_bool(__global const uchar *p, long i) { return p[i] != 0; }
INLINE uchar16 load16_bool(__global const uchar *p, long i) {
  return as_uchar16(vload16(0, p + i) != (uchar16)(0)) & (uchar16)(1);
}
INLINE void store_bool(__global uchar *p, long i, uchar v) { p[i] = v != 0; }
INLINE void store16_bool(__global uchar *p, long i, uchar16 v) {
  STORE_LOOSE(uchar, as_uchar16(v != (uchar16)(0)) & (uchar16)(1), p + i)
}
#define from_bits_bool(u) ((uchar)((u) != 0))
#define to_bool(v) ((uchar)((v) != 0))
// !v is -1 where a lane is zero: no comparison with a literal, which char vectors would refuse.
#define to16_bool(v) (convert_uchar16(!(v)) + (uchar16)(1))

// float16: memory only; vload_half and vstore_half need no fp16 arithmetic.
typedef half stype_f16;
typedef float ctype_f16;
typedef float16 cvec_f16;
INLINE float load_f16(__global const half *p, long i) { return vload_half(i, p); }
// Through aligned private memory: PoCL 3.1's wide half loads and stores assume more alignment than that of an
// element.
INLINE float16 load16_f16(__global const half *p, long i) {
  const ushort16 bits = vload16(0, (__global const ushort *)p + i);
  return vload_half16(0, (const half *)&bits);
}
INLINE void store_f16(__global half *p, long i, float v) { vstore_half_rte(v, i, p); }
INLINE void store16_f16(__global half *p, long i, float16 v) {
  ushort16 bits;
  vstore_half16_rte(v, 0, (half *)&bits);
  STORE_LOOSE(ushort, bits, (__global ushort *)p + i)
}
#define from_bits_f16(u) as_float((uint)(u))
#define to_f16(v) convert_float(v)
#define to16_f16(v) convert_float16(v)

// bfloat16: the upper half of a float; rounded to nearest even, NaN stays NaN.
typedef ushort stype_bf16;
typedef float ctype_bf16;
typedef float16 cvec_bf16;
INLINE float load_bf16(__global const ushort *p, long i) { return as_float((uint)p[i] << 16); }
INLINE float16 load16_bf16(__global const ushort *p, long i) {
  return as_float16(convert_uint16(vload16(0, p + i)) << 16);
}
INLINE ushort round_bf16(float v) {
  const uint u = as_uint(v);
  return isnan(v) ? (ushort)0x7fc0 : (ushort)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
INLINE void store_bf16(__global ushort *p, long i, float v) { p[i] = round_bf16(v); }
INLINE void store16_bf16(__global ushort *p, long i, float16 v) {
  const uint16 u = as_uint16(v);
  const uint16 r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  STORE_LOOSE(ushort, convert_ushort16(select(r, (uint16)(0x7fc0), isnan(v))), p + i)
}
#define from_bits_bf16(u) as_float((uint)(u))
#define to_bf16(v) convert_float(v)
#define to16_bf16(v) convert_float16(v)

// Bytes in groups of 16, to move: complex128 and its bits.
typedef ulong2 stype_c128;
typedef ulong2 ctype_c128;
INLINE ulong2 load_c128(__global const ulong2 *p, long i) { return p[i]; }
INLINE void store_c128(__global ulong2 *p, long i, ulong2 v) { p[i] = v; }

#endif
