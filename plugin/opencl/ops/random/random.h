// Random numbers: Philox4x32-10 by the contract of src/base/philox.h.
#pragma once

#include <functional>

#include "call/algorithms.h"
#include "call/op_call.h"
#include "random_params.h"

namespace ocltensor::opencl::random {

// Reserves the random words for `count` numbers (of 64 bits where `wide`) from the argument
// "generator", or from the device's default generator, and fills seed, offset and count.
RandomParams take_numbers(const OpCall& call, int64_t count, bool wide);
// The bits of a value as the kernels' REAL: double where the device has it, else float.
uint64_t real_bits(const OpCall& call, double value);
// A probability as a number of units of 2^-53 (`wide`) or 2^-24, so that comparisons are exact.
uint64_t units_below(double probability, bool wide);
// Fills a row-major tensor with integers in [from, from + range); range 0 stands for 2^64.
void draw_integers(const OpCall& call, TensorView out, int64_t from, uint64_t range);

// Makes the launch of a kernel whose parameters are `p`.
using DrawLaunch = std::function<Launch(const RandomParams& p)>;
// Runs the launch over the counter's blocks.
void run_draws(const OpCall& call, const RandomParams& p, bool wide, const DrawLaunch& launch);
const AlgorithmFamily& random_algorithms();

std::span<const OpEntry> random_operators();
std::span<const OpEntry> permute_operators();    // multinomial.cpp: randperm, multinomial
std::span<const OpEntry> rejection_operators();  // rejection.cpp: gamma, Poisson, binomial numbers

}  // namespace ocltensor::opencl::random
