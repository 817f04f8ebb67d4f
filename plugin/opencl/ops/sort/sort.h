// Stable sorting of rows, and finding places in sorted rows.
#pragma once

#include "call/algorithms.h"
#include "call/op_call.h"

namespace ocltensor::opencl::sort {

struct Order {
  bool descending = false;
  bool unsigned_keys = false;  // int64 elements that stand for uint64
  // Integers are equal or differ in this many lowest bits, so that the others need not be compared.
  // Integers that differ in the others only come in any order.
  int64_t low_bits = 64;
};
// The rows of a problem, and what is wanted of them; no tensor is empty.
struct Problem {
  TensorView in;
  Order order;
  const TensorView* values;
  TensorView indices;
  int64_t rows() const { return in.sizes()[0]; }
  int64_t length() const { return in.sizes()[1]; }
  int64_t kept() const { return indices.sizes()[1]; }
};
extern const AlgorithmFor<Problem> kRadixSelect, kRadixTile, kRadix;  // radix.cpp
const AlgorithmFamily& sort_algorithms();
const AlgorithmFamily& search_algorithms();
const AlgorithmFamily& order_statistic_algorithms();

// Sorts `in`, row-major [rows, length]. Writes the first indices.size(-1) positions of each sorted
// row, and, where `values` is given, the elements at those positions; both outputs are row-major.
void sort_rows(const OpCall& call, TensorView in, Order order, const TensorView* values,
               TensorView indices);

std::span<const OpEntry> sort_operators();
std::span<const OpEntry> search_operators();
std::span<const OpEntry> order_statistic_operators();  // order_statistic.cpp

}  // namespace ocltensor::opencl::sort
