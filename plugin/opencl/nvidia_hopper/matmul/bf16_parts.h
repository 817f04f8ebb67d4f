// float32 matrices as three bf16 parts (kernels/nvidia_hopper/matmul/bf16_parts.cl), for those who
// multiply the same numbers several times, or make bf16 parts themselves.
#pragma once

#include "product.h"

namespace ocltensor::opencl::nvidia_hopper {

// Numbers side by side, and their bf16 parts, one after the other. `elements` is a multiple of 8.
struct Bf16PartTensor {
  tb_address floats, bf16_parts;
  int64_t elements;
};

// A batch of matrices in one bf16 part; strides in elements. The next bf16 part begins `matrices`
// times `batch` further on. Lines (along row or column, whichever has stride 1) begin at multiples
// of 8 elements, the batch, too.
struct Bf16PartMatrix {
  tb_address address;
  int64_t batch, row, col;
  int64_t matrices;
};

// Splits both; sets the guard's word where a number does not split.
void split_to_bf16_parts(const OpCall& call, const Bf16PartTensor& a, const Bf16PartTensor& b,
                         const matmul::Guard& guard);
// Why run_bf16_part_product is not for this problem, or nullptr. Its operands lie as their parts
// do.
const char* refuse_bf16_part_product(const OpCall& call, const matmul::Problem& problem);
// The problem by bf16 parts of its operands, or, if the guard's word has its value, in plain
// float32 by the operands themselves.
void run_bf16_part_product(const OpCall& call, const matmul::Problem& problem,
                           const Bf16PartMatrix& a, const Bf16PartMatrix& b,
                           const matmul::Guard& guard);

}  // namespace ocltensor::opencl::nvidia_hopper
