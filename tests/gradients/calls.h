// Calls whose gradients are checked: the conformance kit's random arguments, with values where the
// operator is smooth, and what is made of them and of the results so that gradients are unique.
#pragma once

#include <string>
#include <vector>

#include "ocltensor/ocltensor.h"
#include "support/cases.h"

namespace ocltensor::testing {

// All operators with a derivative but those that draw anew in each call: dropout is in
// tests/host/autograd_test.cpp.
std::vector<DifferentiableOperator> checked_operators();
// The types that a row is checked in: float64 where the operator takes it, complex64 where the
// formula holds for it, float32 for transforms of real numbers.
std::vector<DType> checked_types(const DifferentiableOperator& row);

// A call of the row with this seed; nothing where the kit has no such case, or gradients would not
// be unique.
std::optional<Case> gradient_case(const Operator& op, DType type, uint64_t seed);

// A tensor of the arguments that has a gradient.
struct Leaf {
  std::string name;
  size_t argument = 0;
  int position = -1;  // in a list
  Tensor tensor;
};

// A case with tensors on a device. Floating tensors have type `type`, if one is given.
class Call {
 public:
  Call(const Case& c, const std::vector<std::string>& arguments, Device device = {},
       std::optional<DType> type = {});
  // Of the arguments that gradients were asked for.
  const std::vector<Leaf>& leaves() const { return leaves_; }
  // What the operator makes of the arguments, as the record's `results` says.
  std::vector<Tensor> results() const;
  // The gradients of the sum of weights times results that have gradients; undefined ones as zeros.
  // Weights are random numbers in [-1, 1], the same for every device and type.
  std::vector<Tensor> gradients() const;
  // By result; undefined for those that have no gradient. Known after gradients().
  const std::vector<Tensor>& weights() const { return weights_; }
  // The sum itself, in float64, after gradients(); of complex numbers, the real part of
  // conj(weights) times results.
  double sum() const;

 private:
  Value value(const CaseValue& v) const;
  Tensor tensor_of(const TensorPtr& t) const;
  const Case& case_;
  Device device_;
  std::optional<DType> type_;
  std::vector<Value> values_;
  std::vector<Leaf> leaves_;
  mutable std::vector<Tensor> weights_;
};

// How arguments and results are changed around the operator: the names are
// tests/oracle/gradients.py's. "symmetric", "log_softmax" of an argument, "products" of U, S and
// V^H; empty: not at all.
std::string preparation_of(const Operator& op, size_t argument);
std::string result_form(const Operator& op);

HostTensor to_host(const Tensor& t);

}  // namespace ocltensor::testing
