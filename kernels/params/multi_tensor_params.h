// Parameters of the kernels over lists of tensors.
#ifndef OCLTENSOR_MULTI_TENSOR_PARAMS_H
#define OCLTENSOR_MULTI_TENSOR_PARAMS_H
#include "host_types.h"
#define MULTI_TENSOR_BUFFERS 16  // driver buffers of one launch
#define MULTI_TENSOR_SHARED 3
#define MULTI_TENSOR_NUMBERS 10
// An address is a buffer's index in the upper 8 bits and bytes in it in the others.
// The table has one record of 3 + roles words per tensor: its first chunk, its elements, its number (bits of
// the compute type), and an address per role.
typedef struct {
  tk_i64 tensors;
  tk_i64 chunks;                         // of all tensors
  tk_i64 chunk;                          // elements
  tk_i64 per_item;                       // chunks of a work-item (CPU drivers)
  tk_u64 shared[MULTI_TENSOR_SHARED];    // addresses of numbers that all tensors read
  tk_u64 numbers[MULTI_TENSOR_NUMBERS];  // bits, in the compute type
} MultiTensorParams;
#endif
