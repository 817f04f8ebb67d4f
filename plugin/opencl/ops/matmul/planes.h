// float32 matrices as three planes of bfloat16 (kernels/matmul/hopper_split.cl), for those who
// multiply the same numbers several times, or make planes themselves.
#pragma once

#include "guard.h"
#include "matmul.h"

namespace ocltensor::opencl {

// Numbers side by side, and their planes, one after the other. `elements` is a multiple of 8.
struct PlaneTensor {
  tb_address floats, planes;
  int64_t elements;
};

// A batch of matrices in one plane; strides in elements. The next plane begins `matrices` times
// `batch` further on. Lines (along row or column, whichever has stride 1) begin at multiples of 8
// elements, the batch, too.
struct PlaneMatrix {
  tb_address address;
  int64_t batch, row, col;
  int64_t matrices;
};

// Splits both; sets the guard's word where a number does not split.
void split_to_planes(const OpCall& call, const PlaneTensor& a, const PlaneTensor& b,
                     const Guard& guard);
// Why run_plane_product is not for this problem, or nullptr. Its operands lie as their planes do.
const char* refuse_plane_product(const OpCall& call, const MatmulProblem& problem);
// The problem by planes of its operands, or, if the guard's word has its value, in plain float32 by
// the operands themselves.
void run_plane_product(const OpCall& call, const MatmulProblem& problem, const PlaneMatrix& a,
                       const PlaneMatrix& b, const Guard& guard);

}  // namespace ocltensor::opencl
