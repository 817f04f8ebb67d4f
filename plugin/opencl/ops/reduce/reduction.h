// Launches reductions: any formula over up to four broadcast operands, combined over any set of
// dimensions.
#pragma once

#include <array>

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::reduce {

// A formula reduces one or two values in one sweep; see kernels/include/reduce_formula.h. All texts
// are OpenCL C that is valid for scalars and vectors of 16; K(x) converts a literal x to their
// type. A null identity means the lowest or highest value of the compute type.
struct Component {
  const char* lift;
  const char* combine;
  const char* identity;
  const char* finish;
};
struct Reduction {
  int components;
  Component part[2];
};

inline constexpr const char* kAdd = "x + y";
inline constexpr const char* kMaximum = "(x > y || x != x) ? x : y";  // NaN wins
inline constexpr const char* kMinimum = "(x < y || x != x) ? x : y";
// The neutral elements of kMaximum and kMinimum.
const char* lowest(DType type);
const char* highest(DType type);

// Formulas over differences from an element b of the reduced ones (from 0 if b is not finite), so
// that a mean far from 0 costs no precision and the variance of equal elements is exactly 0. c: the
// mean minus b.
#define OCLTENSOR_PIVOT(b) "((fabs(" b ") < K(INFINITY)) ? " b " : K(0))"
inline constexpr Reduction kOffsetMean{
    1, {{"a - (" OCLTENSOR_PIVOT("b") ")", "x + y", "0", "x / s0"}}};
inline constexpr Reduction kOffsetVariance{
    1,
    {{"(a - (" OCLTENSOR_PIVOT("b") ") - c) * (a - (" OCLTENSOR_PIVOT("b") ") - c)", "x + y", "0",
      "x / s0"}}};

struct ReduceLaunch {
  const Reduction* formula;
  DType compute;                            // type of the accumulators
  Dims shape;                               // of the operands, which broadcast to it
  DimMask mask;                             // dimensions that are reduced
  std::array<const TensorView*, 4> inputs;  // a, b, c, d; null: absent
  std::array<const TensorView*, 2> outs;    // with the kept sizes; reduced dimensions may stay as 1
  std::array<Scalar, 4> numbers{0, 0, 0, 0};  // s0 .. s3
  bool truth = false;  // operands are 1 where they are not 0; compute is Int64
};
// Deterministic: how work is divided depends on shapes and the device only.
void launch_reduce(const OpCall& call, const ReduceLaunch& what);

// Work-items of a work-group: as many as the device allows, at most 256, a power of two.
int64_t group_size(const Capabilities& caps);

const AlgorithmFamily& reduction_algorithms();
const AlgorithmFamily& variance_algorithms();  // two_pass.cpp
const AlgorithmFamily& arg_algorithms();       // arg.cpp

std::span<const OpEntry> reduce_operators();
extern const std::span<const OpEntry> kSpreadOperators;  // two_pass.cpp: var, std, norms, logsumexp
extern const std::span<const OpEntry> kArgOperators;     // arg.cpp: argmax, max.dim and the like
extern const std::span<const OpEntry> kHashOperators;    // hash.cpp: hash_tensor

}  // namespace ocltensor::opencl::reduce
