// Few rows with weights of 4 bits, whose nibbles choose among 16 numbers by VPERMPS: the algorithm,
// and the test of its kernel.
#pragma once

#include <string>

#include "ops/quantised/quantised.h"

namespace ocltensor::opencl::x86_avx512 {

extern const AlgorithmFor<quantised::Product> kDecode;

// decode_proof.cpp: compares products of small integers with the host's; returns what was wrong.
std::string wrong_decode(const OpCall& call, const void* nothing);

// Runs the kernel, proven or not.
void run_decode(const OpCall& call, const quantised::Product& p);

}  // namespace ocltensor::opencl::x86_avx512
