// Products of bf16 by AVX-512's dot products of pairs: the algorithm, and the test of its kernels.
#pragma once

#include <string>

#include "ops/matmul/cpu_tiles.h"

namespace ocltensor::opencl::x86_avx512 {

extern const AlgorithmFor<matmul::Problem> kProduct;

// product_proof.cpp: compares products of small integers, whose sums are exact, with the host's;
// returns what was wrong.
std::string wrong_product(const OpCall& call, const void* nothing);

// Runs the kernels, proven or not.
void run_product(const OpCall& call, const matmul::Problem& p, const matmul::TilePlan& plan);

}  // namespace ocltensor::opencl::x86_avx512
