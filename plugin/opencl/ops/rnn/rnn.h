// Cells of recurrent layers: LSTM and GRU, forward and backward.
#pragma once

#include <optional>

#include "call/algorithms.h"
#include "call/division.h"
#include "call/op_call.h"
#include "rnn_params.h"

namespace ocltensor::opencl::rnn {

extern const std::span<const OpEntry> kLstmOperators, kGruOperators;
const AlgorithmFamily& lstm_algorithms();
const AlgorithmFamily& gru_algorithms();

// ---- shared by the cells
// An optional argument, made row-major.
class MaybeContiguous {
 public:
  MaybeContiguous(const OpCall& call, Arg argument) {
    if (const auto t = call.args().optional_tensor(argument)) tensor_.emplace(call, *t);
  }
  explicit operator bool() const { return tensor_.has_value(); }
  operator MemoryRange() const {  // NOLINT: implicit on purpose
    return tensor_ ? MemoryRange(*tensor_) : MemoryRange(nullptr);
  }

 private:
  std::optional<Contiguous> tensor_;
};

// The work on a state [rows, hidden], and the defines that all cells need.
struct Cells {
  RnnParams p{};
  Division division;
  Cells(const OpCall& call, TensorView state);
};
Defines cell_defines(DType type, bool has_bias);

// sums[j] = the sum of `gates` [rows, columns] over the rows: a bias's gradient.
void sum_of_rows(const OpCall& call, TensorView gates, TensorView sums);

}  // namespace ocltensor::opencl::rnn
