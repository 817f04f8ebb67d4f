// Products with quantised weights, and their values as floats.
#pragma once

#include "base/weight_formats.h"
#include "call/algorithms.h"
#include "call/division.h"
#include "call/op_call.h"
#include "quantised_params.h"

namespace ocltensor::opencl::quantised {

// out = x W^T + bias: x [M, K] with contiguous rows, out [M, N] row-major. The weight's bytes are
// contiguous.
struct Product {
  QuantisedWeight weight;
  TensorView x, out;
  std::optional<TensorView> bias;

  int64_t m() const { return x.size(0); }
  int64_t x_row() const { return m() > 1 ? x.stride(0) : weight.k; }
};

// Of kernels that include quantised.h: their parameters, and their defines. `whole`: rows, or a
// flat layout that is read as one, are of whole units.
QuantisedParams weight_params(const QuantisedWeight& w);
Defines weight_defines(const OpCall& call, const QuantisedWeight& w, bool whole);
// Whether rows begin with units.
bool has_whole_rows(const QuantisedWeight& w);

// unpack.cpp: the values of `count` rows from `first` on, as a matrix of count x K at `to`.
void unpack_rows(const OpCall& call, const QuantisedWeight& w, int64_t first, int64_t count,
                 tb_address to, DType type);

// decode.cpp, for kernels of few rows: why they do not take a product, or nullptr; what those that
// include quantised_x.h are told; the define ROWS of one that takes all rows of x at once; how CPU
// drivers divide rows of the weight, which sets `per_item`.
const char* refuse_decode(const Product& p);
QuantisedParams decode_params(const Product& p);
Defines decode_defines(const OpCall& call, const Product& p);
int64_t decode_rows(const Product& p);
Division divide_rows(const Product& p, QuantisedParams& params);
// Launches one of them: all have the same parameters.
template <typename Arguments>
void launch_decode(const OpCall& call, const Product& p, const KernelOf<Arguments>& kernel,
                   const Defines& defines, const QuantisedParams& params,
                   const Division& division) {
  call.launch(kernel, defines,
              Arguments{.out = p.out,
                        .x = p.x,
                        .weight = p.weight.bytes,
                        .scale = p.weight.scale,
                        .zero = p.weight.zero,
                        .bias = p.bias,
                        .p = params})
      .run(division.global, division.local);
}

// The same for those that take x as bytes, which another launch has put into `of_x`.
template <typename Arguments>
void launch_decode(const OpCall& call, const Product& p, const KernelOf<Arguments>& kernel,
                   const Defines& defines, const QuantisedParams& params, const Division& division,
                   const Scratch& of_x) {
  const QuantisedWeight& w = p.weight;
  call.launch(kernel, defines,
              Arguments{.out = p.out,
                        .of_x = of_x,
                        .x = p.x,
                        .weight = w.bytes,
                        .scale = w.scale,
                        .zero = w.zero,
                        .bias = p.bias,
                        .p = params})
      .run(division.global, division.local);
}

extern const AlgorithmFor<Product> kDecodeBlocks, kDecodeCpu, kDecodeGpu;  // decode.cpp: few rows
extern const AlgorithmFor<Product> kDecodeDots;  // decode_dots.cpp: few rows as bytes
extern const AlgorithmFor<Product> kPanels;      // panels.cpp: anything

std::span<const OpEntry> product_operators();  // product.cpp
std::span<const OpEntry> unpack_operators();   // unpack.cpp
const AlgorithmFamily& quantised_algorithms();

}  // namespace ocltensor::opencl::quantised
