// Inference for the cells of recurrent layers.
#include "common.h"

namespace ocltensor::infer {
namespace {

// Checks that a tensor is [rows, columns] and has the type of `like`.
void check_matrix(const Args& args, Arg a, TensorView like, int64_t rows, int64_t columns) {
  const auto t = args.tensor(a);
  check_same_type(args, t, like);
  check(Dims(t.sizes()) == Dims{rows, columns}, "{}: {} must have shape [{}, {}], got {}",
        args.schema().full_name(), name(a), rows, columns, to_string(t.sizes()));
}

// The state [rows, hidden] that the other shapes follow from.
TensorView state_of(const Args& args, Arg a) {
  const auto state = args.tensor(a);
  check_floating(args, state);
  check(state.ndim() == 2, "{}: {} must have shape [batch, hidden], got {}",
        args.schema().full_name(), name(a), to_string(state.sizes()));
  return state;
}

// Gates and biases of a cell with `gates` gates.
void check_gates(const Args& args, TensorView state, int64_t gates) {
  const int64_t rows = state.size(0), columns = gates * state.size(1);
  check_matrix(args, Arg::input_gates, state, rows, columns);
  check_matrix(args, Arg::hidden_gates, state, rows, columns);
  const auto input = args.optional_tensor(Arg::input_bias),
             hidden = args.optional_tensor(Arg::hidden_bias);
  check(input.has_value() == hidden.has_value(), "{}: both biases must be given, or none",
        args.schema().full_name());
  for (const auto& bias : {input, hidden}) {
    if (!bias) continue;
    check_same_type(args, *bias, state);
    check(Dims(bias->sizes()) == Dims{columns}, "{}: a bias must have {} elements, got shape {}",
          args.schema().full_name(), columns, to_string(bias->sizes()));
  }
}

TensorSpec bias_gradient(const Args& args, DType type, int64_t columns) {
  return args.boolean(Arg::has_bias) ? spec(type, Dims{columns}) : no_output(type);
}

}  // namespace

Specs lstm_cell(const Args& args) {
  const auto cx = state_of(args, Arg::cx);
  check_gates(args, cx, 4);
  const int64_t rows = cx.size(0), hidden = cx.size(1);
  const TensorSpec state = spec(cx.dtype(), Dims{rows, hidden});
  return {state, state, spec(cx.dtype(), Dims{rows, 4 * hidden})};
}

Specs lstm_cell_backward(const Args& args) {
  const auto cx = state_of(args, Arg::cx);
  const int64_t rows = cx.size(0), hidden = cx.size(1);
  check_matrix(args, Arg::cy, cx, rows, hidden);
  check_matrix(args, Arg::workspace, cx, rows, 4 * hidden);
  for (const Arg a : {Arg::grad_hy, Arg::grad_cy})
    if (args.optional_tensor(a)) check_matrix(args, a, cx, rows, hidden);
  return {spec(cx.dtype(), Dims{rows, 4 * hidden}), spec(cx.dtype(), Dims{rows, hidden}),
          bias_gradient(args, cx.dtype(), 4 * hidden)};
}

Specs gru_cell(const Args& args) {
  const auto hx = state_of(args, Arg::hx);
  check_gates(args, hx, 3);
  const int64_t rows = hx.size(0), hidden = hx.size(1);
  return {spec(hx.dtype(), Dims{rows, hidden}), spec(hx.dtype(), Dims{rows, 5 * hidden})};
}

Specs gru_cell_backward(const Args& args) {
  const auto grad = state_of(args, Arg::grad_hy);
  const int64_t rows = grad.size(0), hidden = grad.size(1);
  check_matrix(args, Arg::workspace, grad, rows, 5 * hidden);
  const TensorSpec gates = spec(grad.dtype(), Dims{rows, 3 * hidden});
  const TensorSpec bias = bias_gradient(args, grad.dtype(), 3 * hidden);
  return {gates, gates, spec(grad.dtype(), Dims{rows, hidden}), bias, bias};
}

}  // namespace ocltensor::infer
