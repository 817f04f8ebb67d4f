// Fast Fourier transforms. They are computed in float32, or in float64 where an argument has its
// precision.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"
#include "fft_params.h"

namespace ocltensor::opencl::fft {

// Transforms run along the middle of a row-major [outer, length, inner].
struct Transform {
  int64_t outer = 1, length = 1, inner = 1;
  bool forward = true;
  double scale = 1;
  DType compute = DType::Complex64;  // or complex128
};

// How the input or output of a transform is stored.
enum class Signal : uint8_t {
  Complex,
  Real,  // an output keeps the real parts
  Half,  // the first length / 2 + 1 of a Hermitian spectrum
};
struct SignalPlace {
  tb_address address;
  Signal kind;
  DType dtype;  // real for Signal::Real, else complex

  int64_t length(int64_t full) const { return kind == Signal::Half ? full / 2 + 1 : full; }
  int64_t item_size() const { return size_of(dtype); }
};

// `out` = the transform of `in`; they must be disjoint. Any length: factors of 2, 3, 5 and 7 take
// passes; a length with other factors takes Bluestein's algorithm.
void run_transform(const OpCall& call, SignalPlace in, SignalPlace out, const Transform& t);
const AlgorithmFamily& fft_algorithms();

std::span<const OpEntry> fft_operators();

}  // namespace ocltensor::opencl::fft
