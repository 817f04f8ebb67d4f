// Fixed-width names that mean the same on the host and in kernels, for parameter structures that both
// include.
#ifndef OCLTENSOR_HOST_TYPES_H
#define OCLTENSOR_HOST_TYPES_H
#ifdef __OPENCL_VERSION__
typedef int tk_i32;
typedef uint tk_u32;
typedef long tk_i64;
typedef ulong tk_u64;
#else
#include <cstdint>
typedef int32_t tk_i32;
typedef uint32_t tk_u32;
typedef int64_t tk_i64;
typedef uint64_t tk_u64;
#endif
#endif
