// Products on matrix units: how their kernel is specialised, and the proof of each specialisation.
#pragma once

#include <string>

#include "forms.h"
#include "ops/matmul/matmul.h"
#include "runtime/program/defines.h"

namespace ocltensor::opencl::matrix_units {

// How a kernel is specialised, on the device's unit.
struct Product {
  Kind kind;
  size_t form;
  bool a_along_k, b_along_k, self;
  int64_t pieces = 1;         // of k: a sum is cut into so many
  bool float_result = false;  // of 16-bit factors; self then may be float, too
  bool float_self = false;

  size_t index() const {
    const size_t end = pieces > 1 ? 2 : self ? 1 : 0;
    const size_t of_form = static_cast<size_t>(kind) * kMostForms + form;
    const size_t lines = (of_form * 2 + (a_along_k ? 1 : 0)) * 2 + (b_along_k ? 1 : 0);
    const size_t types = float_self ? 2 : float_result ? 1 : 0;
    return (lines * 3 + end) * 3 + types;
  }
  DType result() const;  // of its kernel, which leaves pieces' sums as they are
  Defines defines(const Capabilities& caps) const;
};
inline constexpr size_t kProducts = kKinds * kMostForms * 4 * 3 * 3;

// Why an algorithm of this unit does not take the problem, or the cheapest specialisation that has
// passed its proof.
Planned<Product> plan_product(const OpCall& call, const matmul::Problem& problem);
// Runs a problem with it, copies of operands included.
void run_product(const OpCall& call, const matmul::Problem& problem, const Product& product);

// product_proof.cpp: compares a product by the kernel (`what`: const Product*) with exact sums;
// returns what is wrong, or an empty text.
std::string wrong_product(const OpCall& call, const void* what);

// Each is for the devices of its provider alone.
extern const AlgorithmFor<matmul::Problem> kDotProduct, kMfmaProduct, kWmmaProduct, kXmxProduct;

}  // namespace ocltensor::opencl::matrix_units
