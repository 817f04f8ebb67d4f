// The built-in functions of OpenCL C 1.2 that kernels use, for PoCL on CPUs, in place of clang's declarations
// of all of them (opencl-c.h): with those PoCL 3.1 compiles a small program in 97 ms, with these in 23. A
// function that is missing here is an error, after which the program is compiled with clang's. Scalars have
// all of their types, as a call would convert its arguments to another one in silence.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wtypedef-redefinition"  // what is defined before differs among versions
#pragma clang diagnostic ignored "-Wmacro-redefined"
#define FN __attribute__((overloadable))
#define CONST_FN __attribute__((overloadable, const))  // the result depends on the arguments alone
#define PURE_FN __attribute__((overloadable, pure))    // and on memory
#define ONE(R, NAME, T) R CONST_FN NAME(T);
#define TWO(R, NAME, T) R CONST_FN NAME(T, T);
#define THREE(R, NAME, T) R CONST_FN NAME(T, T, T);

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef ulong size_t;
typedef long ptrdiff_t;
typedef ulong uintptr_t;
typedef long intptr_t;

// ---- Lists: D(T) for types, for vectors of them, for both
#define FOR_INTEGERS(D) D(char) D(uchar) D(short) D(ushort) D(int) D(uint) D(long) D(ulong)
#define FOR_TYPES(D) FOR_INTEGERS(D) D(float) D(double)
#define VECTORS_OF(T)                                                                                        \
  typedef T T##2 __attribute__((ext_vector_type(2)));                                                        \
  typedef T T##3 __attribute__((ext_vector_type(3)));                                                        \
  typedef T T##4 __attribute__((ext_vector_type(4)));                                                        \
  typedef T T##8 __attribute__((ext_vector_type(8)));                                                        \
  typedef T T##16 __attribute__((ext_vector_type(16)));
FOR_TYPES(VECTORS_OF)
#define FOR_INTEGER_SIZES(D, N)                                                                              \
  D(char##N, uchar##N) D(uchar##N, uchar##N) D(short##N, ushort##N) D(ushort##N, ushort##N)                  \
  D(int##N, uint##N) D(uint##N, uint##N) D(long##N, ulong##N) D(ulong##N, ulong##N)
// D(number, integers as wide, result of relations): those of a double are long, of one number int.
#define FOR_REALS(D)                                                                                         \
  D(float, int, int) D(float16, int16, int16) D(double, int, int) D(double16, int16, long16)
#define FOR_SIZES(D) D(2) D(4) D(8) D(16)

// ---- Work-items, barriers
size_t CONST_FN get_global_id(uint);
size_t CONST_FN get_local_id(uint);
size_t CONST_FN get_group_id(uint);
size_t CONST_FN get_global_size(uint);
size_t CONST_FN get_local_size(uint);
size_t CONST_FN get_num_groups(uint);
size_t CONST_FN get_global_offset(uint);
uint CONST_FN get_work_dim(void);
typedef uint cl_mem_fence_flags;
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);
void FN mem_fence(cl_mem_fence_flags);

// ---- Functions of real numbers
#define REAL_FUNCTIONS(T, I, R)                                                                              \
  ONE(T, acos, T) ONE(T, acosh, T) ONE(T, asin, T) ONE(T, asinh, T) ONE(T, atan, T) ONE(T, atanh, T)         \
  ONE(T, cbrt, T) ONE(T, ceil, T) ONE(T, cos, T) ONE(T, cosh, T) ONE(T, cospi, T) ONE(T, erf, T)             \
  ONE(T, erfc, T) ONE(T, exp, T) ONE(T, exp2, T) ONE(T, exp10, T) ONE(T, expm1, T) ONE(T, fabs, T)           \
  ONE(T, floor, T) ONE(T, lgamma, T) ONE(T, log, T) ONE(T, log1p, T) ONE(T, log2, T) ONE(T, log10, T)        \
  ONE(T, rint, T) ONE(T, round, T) ONE(T, rsqrt, T) ONE(T, sign, T) ONE(T, sin, T) ONE(T, sinh, T)           \
  ONE(T, sinpi, T) ONE(T, sqrt, T) ONE(T, tan, T) ONE(T, tanh, T) ONE(T, tgamma, T) ONE(T, trunc, T)         \
  TWO(T, atan2, T) TWO(T, copysign, T) TWO(T, fdim, T) TWO(T, fmax, T) TWO(T, fmin, T) TWO(T, fmod, T)       \
  TWO(T, hypot, T) TWO(T, max, T) TWO(T, min, T) TWO(T, nextafter, T) TWO(T, pow, T) TWO(T, remainder, T)    \
  THREE(T, clamp, T) THREE(T, fma, T) THREE(T, mad, T)                                                       \
  ONE(R, isnan, T) ONE(R, isinf, T) ONE(R, isfinite, T) ONE(R, signbit, T)                                   \
  TWO(R, isgreater, T) TWO(R, isgreaterequal, T) TWO(R, isless, T) TWO(R, islessequal, T)                    \
  TWO(R, isequal, T) TWO(R, isnotequal, T)                                                                   \
  ONE(I, ilogb, T) T CONST_FN ldexp(T, I); T CONST_FN pown(T, I);                                            \
  T FN sincos(T, T *); T FN frexp(T, I *); T FN modf(T, T *); T FN fract(T, T *);
FOR_REALS(REAL_FUNCTIONS)
#define FEW_REAL_FUNCTIONS(T)                                                                                \
  ONE(T, exp, T) ONE(T, fabs, T) THREE(T, fma, T) TWO(T, fmax, T) TWO(T, fmin, T) ONE(T, sqrt, T)
FEW_REAL_FUNCTIONS(float2) FEW_REAL_FUNCTIONS(float4) FEW_REAL_FUNCTIONS(float8)
FEW_REAL_FUNCTIONS(double2) FEW_REAL_FUNCTIONS(double4) FEW_REAL_FUNCTIONS(double8)
float CONST_FN nan(uint);
double CONST_FN nan(ulong);

// ---- Functions of integers
#define INTEGER_FUNCTIONS(T, U)                                                                              \
  TWO(T, max, T) TWO(T, min, T) TWO(T, rotate, T) TWO(T, mul_hi, T) TWO(T, add_sat, T) TWO(T, sub_sat, T)    \
  ONE(T, popcount, T) ONE(T, clz, T) ONE(U, abs, T) TWO(U, abs_diff, T) THREE(T, clamp, T)
FOR_INTEGER_SIZES(INTEGER_FUNCTIONS, )
FOR_INTEGER_SIZES(INTEGER_FUNCTIONS, 16)
#define TRUTHS(T) int CONST_FN any(T); int CONST_FN all(T);
#define TRUTHS_OF(N) TRUTHS(char##N) TRUTHS(short##N) TRUTHS(int##N) TRUTHS(long##N)
TRUTHS_OF() TRUTHS_OF(16)
#define SELECTION(T, CONDITION) T CONST_FN select(T, T, CONDITION);
#define SELECTIONS(N)                                                                                        \
  SELECTION(float##N, int##N) SELECTION(float##N, uint##N) SELECTION(double##N, long##N)                     \
  SELECTION(double##N, ulong##N) SELECTION(int##N, int##N) SELECTION(int##N, uint##N)                        \
  SELECTION(uint##N, int##N) SELECTION(uint##N, uint##N) SELECTION(long##N, long##N)                         \
  SELECTION(long##N, ulong##N) SELECTION(ulong##N, long##N) SELECTION(ulong##N, ulong##N)
SELECTIONS() SELECTIONS(16)

// ---- Conversions
#define CONVERSION(T, F, N) T##N CONST_FN convert_##T##N(F##N);
#define CONVERSIONS_TO(T, N)                                                                                 \
  CONVERSION(T, char, N) CONVERSION(T, uchar, N) CONVERSION(T, short, N) CONVERSION(T, ushort, N)            \
  CONVERSION(T, int, N) CONVERSION(T, uint, N) CONVERSION(T, long, N) CONVERSION(T, ulong, N)                \
  CONVERSION(T, float, N) CONVERSION(T, double, N)
#define CONVERSIONS(T) CONVERSIONS_TO(T, ) CONVERSIONS_TO(T, 16)
FOR_TYPES(CONVERSIONS)
#define SHORT_CONVERSIONS(N) CONVERSIONS_TO(int, N) CONVERSIONS_TO(uint, N) CONVERSIONS_TO(float, N)
SHORT_CONVERSIONS(2) SHORT_CONVERSIONS(4) SHORT_CONVERSIONS(8)
#define as_char(x) __builtin_astype((x), char)
#define as_uchar(x) __builtin_astype((x), uchar)
#define as_short(x) __builtin_astype((x), short)
#define as_ushort(x) __builtin_astype((x), ushort)
#define as_int(x) __builtin_astype((x), int)
#define as_uint(x) __builtin_astype((x), uint)
#define as_long(x) __builtin_astype((x), long)
#define as_ulong(x) __builtin_astype((x), ulong)
#define as_float(x) __builtin_astype((x), float)
#define as_double(x) __builtin_astype((x), double)
#define as_half(x) __builtin_astype((x), half)
#define as_int2(x) __builtin_astype((x), int2)
#define as_uint2(x) __builtin_astype((x), uint2)
#define as_ulong2(x) __builtin_astype((x), ulong2)
#define as_float2(x) __builtin_astype((x), float2)
#define as_double2(x) __builtin_astype((x), double2)
#define as_int4(x) __builtin_astype((x), int4)
#define as_uint4(x) __builtin_astype((x), uint4)
#define as_float4(x) __builtin_astype((x), float4)
#define as_int8(x) __builtin_astype((x), int8)
#define as_uint8(x) __builtin_astype((x), uint8)
#define as_ulong8(x) __builtin_astype((x), ulong8)
#define as_float8(x) __builtin_astype((x), float8)
#define as_uchar16(x) __builtin_astype((x), uchar16)
#define as_char16(x) __builtin_astype((x), char16)
#define as_short16(x) __builtin_astype((x), short16)
#define as_ushort16(x) __builtin_astype((x), ushort16)
#define as_int16(x) __builtin_astype((x), int16)
#define as_uint16(x) __builtin_astype((x), uint16)
#define as_long16(x) __builtin_astype((x), long16)
#define as_ulong16(x) __builtin_astype((x), ulong16)
#define as_float16(x) __builtin_astype((x), float16)
#define as_double16(x) __builtin_astype((x), double16)

// ---- Vectors in memory
#define LOADS(T, N)                                                                                          \
  T##N PURE_FN vload##N(size_t, const __global T *); T##N PURE_FN vload##N(size_t, const __local T *);       \
  T##N PURE_FN vload##N(size_t, const T *);                                                                  \
  void FN vstore##N(T##N, size_t, __global T *); void FN vstore##N(T##N, size_t, __local T *);               \
  void FN vstore##N(T##N, size_t, T *);
#define LOADS_OF(T) LOADS(T, 2) LOADS(T, 4) LOADS(T, 8) LOADS(T, 16)
FOR_TYPES(LOADS_OF)
LOADS(float, 3)
LOADS(double, 3)
#define HALF_LOADS(N)                                                                                        \
  float##N PURE_FN vload_half##N(size_t, const __global half *);                                             \
  float##N PURE_FN vload_half##N(size_t, const __local half *);                                              \
  float##N PURE_FN vload_half##N(size_t, const half *);                                                      \
  float##N PURE_FN vloada_half##N(size_t, const __global half *);                                            \
  float##N PURE_FN vloada_half##N(size_t, const __local half *);                                             \
  float##N PURE_FN vloada_half##N(size_t, const half *);
HALF_LOADS() FOR_SIZES(HALF_LOADS)
#define HALF_STORES_BY(N, SUFFIX)                                                                            \
  void FN vstore_half##N##SUFFIX(float##N, size_t, __global half *);                                         \
  void FN vstore_half##N##SUFFIX(float##N, size_t, __local half *);                                          \
  void FN vstore_half##N##SUFFIX(float##N, size_t, half *);                                                  \
  void FN vstore_half##N##SUFFIX(double##N, size_t, __global half *);                                        \
  void FN vstore_half##N##SUFFIX(double##N, size_t, __local half *);                                         \
  void FN vstore_half##N##SUFFIX(double##N, size_t, half *);
#define HALF_STORES(N) HALF_STORES_BY(N, ) HALF_STORES_BY(N, _rte)
HALF_STORES() FOR_SIZES(HALF_STORES)
#define PREFETCHES(T) void FN prefetch(const __global T *, size_t);
FOR_TYPES(PREFETCHES)

// ---- Atomic functions of 32 bits
#define ATOMICS_AT(T, AT)                                                                                    \
  T FN atomic_add(volatile AT T *, T); T FN atomic_sub(volatile AT T *, T);                                  \
  T FN atomic_xchg(volatile AT T *, T); T FN atomic_min(volatile AT T *, T);                                 \
  T FN atomic_max(volatile AT T *, T); T FN atomic_and(volatile AT T *, T);                                  \
  T FN atomic_or(volatile AT T *, T); T FN atomic_xor(volatile AT T *, T);                                   \
  T FN atomic_inc(volatile AT T *); T FN atomic_dec(volatile AT T *);                                        \
  T FN atomic_cmpxchg(volatile AT T *, T, T);
ATOMICS_AT(int, __global) ATOMICS_AT(int, __local) ATOMICS_AT(uint, __global) ATOMICS_AT(uint, __local)
float FN atomic_xchg(volatile __global float *, float);
float FN atomic_xchg(volatile __local float *, float);

// ---- Constants
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define CHAR_MAX SCHAR_MAX
#define CHAR_MIN SCHAR_MIN
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 0xffffffffU
#define LONG_MAX 0x7fffffffffffffffL
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 0xffffffffffffffffUL
#define FLT_EPSILON 0x1p-23f
#define FLT_MAX 0x1.fffffep127f
#define FLT_MIN 0x1p-126f
#define DBL_EPSILON 0x1p-52
#define DBL_MAX 0x1.fffffffffffffp1023
#define DBL_MIN 0x1p-1022
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define NULL ((void *)0)
#define M_PI 3.14159265358979323846
#define M_PI_F 3.14159265f
#undef FN
#undef CONST_FN
#undef PURE_FN
#undef ONE
#undef TWO
#undef THREE
#undef FOR_INTEGERS
#undef FOR_TYPES
#undef VECTORS_OF
#undef FOR_INTEGER_SIZES
#undef FOR_REALS
#undef FOR_SIZES
#undef REAL_FUNCTIONS
#undef FEW_REAL_FUNCTIONS
#undef INTEGER_FUNCTIONS
#undef TRUTHS
#undef TRUTHS_OF
#undef SELECTION
#undef SELECTIONS
#undef CONVERSION
#undef CONVERSIONS_TO
#undef CONVERSIONS
#undef SHORT_CONVERSIONS
#undef LOADS
#undef LOADS_OF
#undef HALF_LOADS
#undef HALF_STORES_BY
#undef HALF_STORES
#undef PREFETCHES
#undef ATOMICS_AT
#pragma clang diagnostic pop
#line 1
