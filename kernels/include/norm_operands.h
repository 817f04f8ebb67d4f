// Operands of the normalisation kernels, as pairs of base and byte offset. Needs types.h; HAS_WEIGHT, and its
// type W.
#ifndef OCLTENSOR_NORM_OPERANDS_H
#define OCLTENSOR_NORM_OPERANDS_H
#define PAIR(name) __global const void *name##_base, ulong name##_offset
#define TARGET(name) __global void *name##_base, ulong name##_offset
#define IN(A, name, i) TO(COMPUTE, LOAD(A, AT_CONST(A, name##_base, name##_offset), i))
#define RESULT(A, name, i, v) STORE(A, AT(A, name##_base, name##_offset), i, TO(A, v))
#define WEIGHT(c) (HAS_WEIGHT ? IN(W, weight, (c) * p.weight_stride) : (T)1)
#endif
