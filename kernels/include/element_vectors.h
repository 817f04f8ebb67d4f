// VEC contiguous elements by one load or store, unpacked to compute types: LOADV(A, p, i, v), STOREV(A, p,
// i, v) with private v[VEC]. p + i is aligned to VEC elements. VEC: 1, 2, 4 or 8, of 16 bytes at most.
#ifndef OCLTENSOR_ELEMENT_VECTORS_H
#define OCLTENSOR_ELEMENT_VECTORS_H
#if VEC == 1
#define LOADV(A, p, i, v) (v)[0] = LOAD(A, p, i)
#define STOREV(A, p, i, v) STORE(A, p, i, (v)[0])
#else
#define LOADV(A, p, i, v) CAT(loadv_, A)((p) + (i), v)
#define STOREV(A, p, i, v) CAT(storev_, A)((p) + (i), v)
#define OF_VEC(T) CAT(T, VEC)
#define PLAIN_VECTORS(A, T)                               \
  INLINE void CAT(loadv_, A)(__global const T *p, T *v) { \
    OF_VEC(vstore)(*(__global const OF_VEC(T) *)p, 0, v); \
  }                                                       \
  INLINE void CAT(storev_, A)(__global T * p, const T *v) { *(__global OF_VEC(T) *)p = OF_VEC(vload)(0, v); }
PLAIN_VECTORS(f32, float)
PLAIN_VECTORS(i32, int)
PLAIN_VECTORS(i64, long)
#ifdef cl_khr_fp64
PLAIN_VECTORS(f64, double)
#endif
// 16-bit types move as words: a vector of eight shorts would be two loads.
#if VEC == 8
#define PACK uint4
#define BYTES uint2
#elif VEC == 4
#define PACK uint2
#define BYTES uint
#else
#define PACK uint
#define BYTES ushort
#endif
INLINE void loadv_i16(__global const short *p, short *v) {
  const PACK bits = *(__global const PACK *)p;
  UNROLL for (int k = 0; k < VEC; ++k) v[k] = ((const short *)&bits)[k];
}
INLINE void storev_i16(__global short *p, const short *v) {
  PACK bits;
  UNROLL for (int k = 0; k < VEC; ++k)((short *)&bits)[k] = v[k];
  *(__global PACK *)p = bits;
}
// Bools become 0 or 1.
INLINE void loadv_bool(__global const uchar *p, float *v) {
  const BYTES bits = *(__global const BYTES *)p;
  UNROLL for (int k = 0; k < VEC; ++k) v[k] = ((const uchar *)&bits)[k] != 0;
}
INLINE void loadv_f16(__global const half *p, float *v) {
  const PACK bits = *(__global const PACK *)p;
  OF_VEC(vstore)(OF_VEC(vload_half)(0, (const half *)&bits), 0, v);
}
INLINE void storev_f16(__global half *p, const float *v) {
  PACK bits;
  CAT(OF_VEC(vstore_half), _rte)(OF_VEC(vload)(0, v), 0, (half *)&bits);
  *(__global PACK *)p = bits;
}
INLINE void loadv_bf16(__global const ushort *p, float *v) {
  const PACK bits = *(__global const PACK *)p;
  const uint *words = (const uint *)&bits;
  UNROLL for (int k = 0; k < VEC / 2; ++k) {
    v[2 * k] = as_float(words[k] << 16);
    v[2 * k + 1] = as_float(words[k] & 0xffff0000u);
  }
}
INLINE void storev_bf16(__global ushort *p, const float *v) {
  PACK bits;
  uint *words = (uint *)&bits;
  UNROLL for (int k = 0; k < VEC / 2; ++k)
    words[k] = round_bf16(v[2 * k]) | (uint)round_bf16(v[2 * k + 1]) << 16;
  *(__global PACK *)p = bits;
}
#endif
#endif
