// Conversions from and to float64 on devices without it, of row-major tensors. A: the other type. TO_DOUBLE:
// from A, else to A. KIND of A: 0 float32, 1 float16, 2 bfloat16, 3 integers, 4 bool.
#include "types.h"
#include "range.h"
#include "soft_double.h"

INLINE ulong widened(__global const STYPE(A) *a, long i) {
#if KIND == 0
  return double_of_float(((__global const uint *)a)[i]);
#elif KIND == 1 || KIND == 2
  return double_of_float(as_uint(LOAD(A, a, i)));
#else
  return double_of_long((long)a[i]);
#endif
}

INLINE void narrow(__global STYPE(A) *a, long i, ulong u) {
#if KIND == 0
  ((__global uint *)a)[i] = float_of_double(u);
#elif KIND == 1 || KIND == 2
  STORE(A, a, i, as_float(float_of_double(u)));  // through float32, as ATen converts
#elif KIND == 3
  a[i] = (STYPE(A))long_of_double(u);
#else
  a[i] = (u << 1) != 0;
#endif
}

GROUP __kernel void convert(__global void *out_base, ulong out_offset, __global const void *in_base,
                            ulong in_offset, long count, long per_item) {
  FOR_EACH(i, count, per_item) {
#if TO_DOUBLE
    ((__global ulong *)((__global char *)out_base + out_offset))[i] =
        widened(AT_CONST(A, in_base, in_offset), i);
#else
    narrow(AT(A, out_base, out_offset), i,
           ((__global const ulong *)((__global const char *)in_base + in_offset))[i]);
#endif
  }
}
