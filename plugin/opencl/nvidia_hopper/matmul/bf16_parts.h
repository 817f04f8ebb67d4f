// float32 matrices as three bf16 parts (kernels/nvidia_hopper/matmul/bf16_parts.cl), for callers
// that multiply the same numbers several times, or compute bf16 parts themselves.
#pragma once

#include "product.h"

namespace ocltensor::opencl::nvidia_hopper {

// Contiguous numbers, and the memory of their bf16 parts, one part after the other. `elements` is a
// multiple of 8.
struct Bf16PartTensor {
  tb_address floats, bf16_parts;
  int64_t elements;
};

// A batch of matrices in one bf16 part; strides in elements. The next bf16 part begins `matrices` *
// `batch` elements further on. Lines (along row or column, whichever has stride 1) and matrices
// begin at multiples of 8 elements.
struct Bf16PartMatrix {
  tb_address address;
  int64_t batch, row, col;
  int64_t matrices;
};

// Splits both tensors; sets the guard's word if a number cannot be split.
void split_to_bf16_parts(const OpCall& call, const Bf16PartTensor& a, const Bf16PartTensor& b,
                         const matmul::Guard& guard);
// Why run_bf16_part_product does not take this problem, or nullptr. Its operands have the layout of
// their parts.
const char* refuse_bf16_part_product(const OpCall& call, const matmul::Problem& problem);
// Multiplies the bf16 parts of the operands, or, if the guard's word has its value, the operands
// themselves in plain float32.
void run_bf16_part_product(const OpCall& call, const matmul::Problem& problem,
                           const Bf16PartMatrix& a, const Bf16PartMatrix& b,
                           const matmul::Guard& guard);

}  // namespace ocltensor::opencl::nvidia_hopper
