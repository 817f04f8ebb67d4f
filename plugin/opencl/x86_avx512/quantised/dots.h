// Few rows, rounded to bytes, with weights of 4 to 8 bits: products of bytes by VPDPBUSD.
#pragma once

#include <string>

#include "ops/quantised/quantised.h"

namespace ocltensor::opencl::x86_avx512 {

extern const AlgorithmFor<quantised::Product> kDots;

// decode_proof.cpp: as wrong_decode().
std::string wrong_dots(const OpCall& call, const void* nothing);

// Runs the kernel, proven or not.
void run_dots(const OpCall& call, const quantised::Product& p);

}  // namespace ocltensor::opencl::x86_avx512
