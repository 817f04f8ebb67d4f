// What the cells of recurrent layers share: how work is divided, defines, gradients of biases.
#include "rnn.h"

#include "call/divide_up.h"
#include "kernels/rnn.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::rnn {
namespace {

constexpr int64_t kSmallest = 32;  // pieces of 16 elements that are worth a work-item
constexpr reduce::Reduction kSum{1, {{"a", reduce::kAdd, "0", "x"}}};

}  // namespace

Cells::Cells(const OpCall& call, TensorView state) {
  p.hidden = state.size(1);
  p.per_row = divide_up(p.hidden, by_style<int64_t>(call, 16, 1));
  p.pieces = state.size(0) * p.per_row;
  division = divide(call.caps(), p.pieces, kSmallest);
  p.per_item = division.per_item;
}

Defines cell_defines(DType type, bool has_bias) {
  Defines d;
  d.type(define::A, type).set(define::HAS_BIAS, has_bias);
  if (compute_type(type) == DType::Float32) d.set(define::FAST_EXP, 1);
  return d;
}

void sum_of_rows(const OpCall& call, TensorView gates, TensorView sums) {
  ContiguousOutput out(call, sums);
  const TensorView view = out.view();
  reduce::launch_reduce(
      call, {&kSum, compute_type(gates.dtype()), Dims(gates.sizes()), 1, {&gates}, {&view}});
  out.finish();
}

}  // namespace ocltensor::opencl::rnn
