// The cells of recurrent layers: LSTM and GRU, forward and backward.
#include <cmath>

#include "call.h"

namespace ocltensor::cpu {
namespace {

using Values = std::vector<double>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
// The derivatives of the functions of gates, by their results.
double sigmoid_slope(double y) { return y * (1 - y); }
double tanh_slope(double y) { return 1 - y * y; }

Values read_optional(const CpuCall& call, Arg a) {
  const auto t = call.args.optional_tensor(a);
  return t ? read<double>(*t) : Values();
}

// A state [rows, hidden]; calls body(element, gate) for each element of it, where gate(n, k) is the
// position of the same element in gate k of rows of n gates.
struct Cells {
  size_t rows, hidden;
  explicit Cells(TensorView state)
      : rows(static_cast<size_t>(state.size(0))), hidden(static_cast<size_t>(state.size(1))) {}
  void each(const auto& body) const {
    for (size_t r = 0; r < rows; ++r)
      for (size_t j = 0; j < hidden; ++j)
        body(r * hidden + j, [&](size_t n, size_t k) { return (r * n + k) * hidden + j; });
  }
};

// Gates from the input or from the old state, with their bias.
Values gates_of(const CpuCall& call, Arg gates, Arg bias) {
  Values values = read<double>(call.args.tensor(gates));
  const Values b = read_optional(call, bias);
  for (size_t i = 0; i < values.size() && !b.empty(); ++i) values[i] += b[i % b.size()];
  return values;
}

// The gradient of a bias: sums of the gates' gradient, as it was stored, over the rows.
void write_sums(const CpuCall& call, size_t output, size_t gates) {
  if (!call.args.boolean(Arg::has_bias)) return;
  const View stored = call.out(gates);
  const Values values = read<double>(stored);
  Values sums(static_cast<size_t>(stored.sizes[1]));
  for (size_t i = 0; i < values.size(); ++i) sums[i % sums.size()] += values[i];
  write(call.out(output), sums);
}

void lstm_cell(const CpuCall& call) {
  const Cells cells(call.args.tensor(Arg::cx));
  const Values input = gates_of(call, Arg::input_gates, Arg::input_bias),
               hidden = gates_of(call, Arg::hidden_gates, Arg::hidden_bias),
               cx = read<double>(call.args.tensor(Arg::cx));
  Values hy(cx.size()), cy(cx.size()), workspace(input.size());
  cells.each([&](size_t e, auto gate) {
    const auto raw = [&](size_t k) { return input[gate(4, k)] + hidden[gate(4, k)]; };
    const double i = sigmoid(raw(0)), f = sigmoid(raw(1)), g = std::tanh(raw(2)),
                 o = sigmoid(raw(3));
    cy[e] = f * cx[e] + i * g;
    hy[e] = o * std::tanh(cy[e]);
    workspace[gate(4, 0)] = i;
    workspace[gate(4, 1)] = f;
    workspace[gate(4, 2)] = g;
    workspace[gate(4, 3)] = o;
  });
  write(call.out(0), hy);
  write(call.out(1), cy);
  write(call.out(2), workspace);
}

void lstm_cell_backward(const CpuCall& call) {
  const Cells cells(call.args.tensor(Arg::cx));
  const Values grad_hy = read_optional(call, Arg::grad_hy),
               grad_cy = read_optional(call, Arg::grad_cy),
               cx = read<double>(call.args.tensor(Arg::cx)),
               cy = read<double>(call.args.tensor(Arg::cy)),
               ws = read<double>(call.args.tensor(Arg::workspace));
  Values grads(ws.size()), grad_cx(cx.size());
  cells.each([&](size_t e, auto gate) {
    const double i = ws[gate(4, 0)], f = ws[gate(4, 1)], g = ws[gate(4, 2)], o = ws[gate(4, 3)];
    const double c = std::tanh(cy[e]), from_hy = grad_hy.empty() ? 0 : grad_hy[e];
    const double dc = from_hy * o * tanh_slope(c) + (grad_cy.empty() ? 0 : grad_cy[e]);
    grads[gate(4, 0)] = dc * g * sigmoid_slope(i);
    grads[gate(4, 1)] = dc * cx[e] * sigmoid_slope(f);
    grads[gate(4, 2)] = dc * i * tanh_slope(g);
    grads[gate(4, 3)] = from_hy * c * sigmoid_slope(o);
    grad_cx[e] = dc * f;
  });
  write(call.out(0), grads);
  write(call.out(1), grad_cx);
  write_sums(call, 2, 0);
}

void gru_cell(const CpuCall& call) {
  const Cells cells(call.args.tensor(Arg::hx));
  const Values input = gates_of(call, Arg::input_gates, Arg::input_bias),
               hidden = gates_of(call, Arg::hidden_gates, Arg::hidden_bias),
               hx = read<double>(call.args.tensor(Arg::hx));
  Values hy(hx.size()), workspace(5 * hx.size());
  cells.each([&](size_t e, auto gate) {
    const double reset = sigmoid(input[gate(3, 0)] + hidden[gate(3, 0)]),
                 update = sigmoid(input[gate(3, 1)] + hidden[gate(3, 1)]),
                 inner = hidden[gate(3, 2)], fresh = std::tanh(input[gate(3, 2)] + reset * inner);
    hy[e] = fresh + update * (hx[e] - fresh);
    workspace[gate(5, 0)] = reset;
    workspace[gate(5, 1)] = update;
    workspace[gate(5, 2)] = fresh;
    workspace[gate(5, 3)] = hx[e];
    workspace[gate(5, 4)] = inner;
  });
  write(call.out(0), hy);
  write(call.out(1), workspace);
}

void gru_cell_backward(const CpuCall& call) {
  const Cells cells(call.args.tensor(Arg::grad_hy));
  const Values grad = read<double>(call.args.tensor(Arg::grad_hy)),
               ws = read<double>(call.args.tensor(Arg::workspace));
  Values to_input(3 * grad.size()), to_hidden(3 * grad.size()), grad_hx(grad.size());
  cells.each([&](size_t e, auto gate) {
    const double reset = ws[gate(5, 0)], update = ws[gate(5, 1)], fresh = ws[gate(5, 2)];
    const double d_fresh = grad[e] * (1 - update) * tanh_slope(fresh);
    to_input[gate(3, 0)] = d_fresh * ws[gate(5, 4)] * sigmoid_slope(reset);
    to_input[gate(3, 1)] = grad[e] * (ws[gate(5, 3)] - fresh) * sigmoid_slope(update);
    to_input[gate(3, 2)] = d_fresh;
    to_hidden[gate(3, 0)] = to_input[gate(3, 0)];
    to_hidden[gate(3, 1)] = to_input[gate(3, 1)];
    to_hidden[gate(3, 2)] = d_fresh * reset;
    grad_hx[e] = grad[e] * update;
  });
  write(call.out(0), to_input);
  write(call.out(1), to_hidden);
  write(call.out(2), grad_hx);
  write_sums(call, 3, 0);
  write_sums(call, 4, 1);
}

constexpr CpuOperator kOperators[] = {
    {"_thnn_fused_lstm_cell.out", lstm_cell},
    {"_thnn_fused_lstm_cell_backward_impl.out", lstm_cell_backward},
    {"_thnn_fused_gru_cell.out", gru_cell},
    {"_thnn_fused_gru_cell_backward.out", gru_cell_backward},
};

}  // namespace

std::span<const CpuOperator> rnn_operators() { return kOperators; }

}  // namespace ocltensor::cpu
