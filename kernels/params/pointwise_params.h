// Parameters of the pointwise kernels: the merged loop nest, innermost dimension first, and numbers by value.
#ifndef OCLTENSOR_POINTWISE_PARAMS_H
#define OCLTENSOR_POINTWISE_PARAMS_H
#include "host_types.h"
#define POINTWISE_RANK 8
typedef struct {
  tk_i64 sizes[POINTWISE_RANK];
  tk_i64 strides[5][POINTWISE_RANK];  // out, a, b, c, d; in elements
  tk_u64 multipliers[POINTWISE_RANK];  // for division by `sizes` (quotient.h); the first: by `parts` if not 0
  tk_u64 offsets[5];  // elementwise_cpu.cl: where the operands begin in their buffers, in bytes
  tk_u64 numbers[8];  // bits, in the compute type: a, b, c, d where they are numbers; s0 .. s3
  tk_i64 rows;                        // product of sizes[1 ..]
  tk_i64 parts;                       // elementwise_gpu.cl: vectors of a line (VEC), or its items (LINES)
  tk_i64 chunk;                       // elementwise_cpu.cl: elements of the inner dimension per work-item
  tk_i64 rows_per_item;               // elementwise_cpu.cl
  tk_u32 shifts[POINTWISE_RANK];      // of `multipliers`
  tk_i32 rank;
  tk_i32 reserved;
} PointwiseParams;
// elementwise_complex.cl: the imaginary parts of complex numbers whose real parts are in `numbers`.
typedef struct {
  tk_u64 bits[8];
} ImaginaryParams;
#endif
