// The cells of LSTM and GRU, forward and backward, and the gated linear unit. What the plugin's
// cells decline is composed of smaller operators.
#include "composite.h"
#include "operators/operator.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Tensor plus(const Tensor& gates, const MaybeTensor& bias) {
  return bias.has_value() && bias->defined() ? gates + *bias : gates;
}

// The workspace holds the four activated gates, in the order of the weights.
Three composed_lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                         const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
  const Tensor gates = plus(plus(input_gates + hidden_gates, input_bias), hidden_bias);
  const auto raw = gates.chunk(4, 1);
  Tensor workspace = at::empty_like(gates, at::MemoryFormat::Contiguous);
  auto gate = workspace.chunk(4, 1);
  at::sigmoid_out(gate[0], raw[0]);
  at::sigmoid_out(gate[1], raw[1]);
  at::tanh_out(gate[2], raw[2]);
  at::sigmoid_out(gate[3], raw[3]);
  Tensor cy = at::addcmul(gate[1] * cx, gate[0], gate[2]);
  return {gate[3] * cy.tanh(), cy, workspace};
}

Three composed_lstm_cell_backward(const MaybeTensor& grad_hy, const MaybeTensor& grad_cy,
                                  const Tensor& cx, const Tensor& cy, const Tensor& workspace,
                                  bool has_bias) {
  const bool from_hy = grad_hy.has_value() && grad_hy->defined();
  const bool from_cy = grad_cy.has_value() && grad_cy->defined();
  const auto gate = workspace.chunk(4, 1);
  Tensor grads = at::empty_like(workspace);
  auto grad = grads.chunk(4, 1);
  Tensor through = from_cy ? *grad_cy : Tensor();
  if (from_hy) {
    const Tensor squashed = cy.tanh();
    at::sigmoid_backward_out(grad[3], *grad_hy * squashed, gate[3]);
    const Tensor inner = at::tanh_backward(*grad_hy * gate[3], squashed);
    through = from_cy ? inner + through : inner;
  } else {
    grad[3].zero_();
  }
  at::sigmoid_backward_out(grad[0], through * gate[2], gate[0]);
  at::sigmoid_backward_out(grad[1], through * cx, gate[1]);
  at::tanh_backward_out(grad[2], through * gate[0], gate[2]);
  return {grads, through * gate[1], has_bias ? grads.sum(0) : Tensor()};
}

// The workspace holds the reset, update and new gates, the old state and the hidden part of the
// new gate: ATen's order, [N, 5H].
Two composed_gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
                      const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
  const auto from_input = plus(input_gates, input_bias).chunk(3, 1);
  const auto from_hidden = plus(hidden_gates, hidden_bias).chunk(3, 1);
  Tensor workspace = at::empty({hx.size(0), 5 * hx.size(1)}, hx.options());
  auto part = workspace.chunk(5, 1);
  at::sigmoid_out(part[0], from_input[0] + from_hidden[0]);
  at::sigmoid_out(part[1], from_input[1] + from_hidden[1]);
  at::tanh_out(part[2], at::addcmul(from_input[2], part[0], from_hidden[2]));
  part[3].copy_(hx);
  part[4].copy_(from_hidden[2]);
  return {at::addcmul(part[2], part[1], hx - part[2]), workspace};
}

Five composed_gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  const auto part = workspace.chunk(5, 1);
  const int64_t hidden = part[0].size(1);
  Tensor to_input = at::empty({grad_hy.size(0), 3 * hidden}, workspace.options());
  auto input = to_input.chunk(3, 1);
  at::sigmoid_backward_out(input[1], grad_hy * (part[3] - part[2]), part[1]);
  at::tanh_backward_out(input[2], grad_hy - grad_hy * part[1], part[2]);
  at::sigmoid_backward_out(input[0], input[2] * part[4], part[0]);
  Tensor to_hidden = at::cat({to_input.narrow(1, 0, 2 * hidden), input[2] * part[0]}, 1);
  return {to_input, to_hidden, grad_hy * part[1], has_bias ? to_input.sum(0) : Tensor(),
          has_bias ? to_hidden.sum(0) : Tensor()};
}

// ---- by the plugin's kernels
Three lstm_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& cx,
                const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
  static PluginOperator& op = *new PluginOperator("_thnn_fused_lstm_cell.out");
  std::array<Tensor, 3> o;
  if (try_plugin(op, o, input_gates, hidden_gates, cx, input_bias, hidden_bias))
    return {o[0], o[1], o[2]};
  return composed_lstm_cell(input_gates, hidden_gates, cx, input_bias, hidden_bias);
}

Three lstm_cell_backward(const MaybeTensor& grad_hy, const MaybeTensor& grad_cy, const Tensor& cx,
                         const Tensor& cy, const Tensor& workspace, bool has_bias) {
  static PluginOperator& op = *new PluginOperator("_thnn_fused_lstm_cell_backward_impl.out");
  const bool any =
      (grad_hy.has_value() && grad_hy->defined()) || (grad_cy.has_value() && grad_cy->defined());
  if (!any) return {};
  std::array<Tensor, 3> o;
  if (!try_plugin(op, o, grad_hy, grad_cy, cx, cy, workspace, has_bias))
    return composed_lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias);
  return {o[0], o[1], has_bias ? o[2] : Tensor()};
}

Two gru_cell(const Tensor& input_gates, const Tensor& hidden_gates, const Tensor& hx,
             const MaybeTensor& input_bias, const MaybeTensor& hidden_bias) {
  static PluginOperator& op = *new PluginOperator("_thnn_fused_gru_cell.out");
  std::array<Tensor, 2> o;
  if (try_plugin(op, o, input_gates, hidden_gates, hx, input_bias, hidden_bias))
    return {o[0], o[1]};
  return composed_gru_cell(input_gates, hidden_gates, hx, input_bias, hidden_bias);
}

Five gru_cell_backward(const Tensor& grad_hy, const Tensor& workspace, bool has_bias) {
  static PluginOperator& op = *new PluginOperator("_thnn_fused_gru_cell_backward.out");
  std::array<Tensor, 5> o;
  if (!try_plugin(op, o, grad_hy, workspace, has_bias))
    return composed_gru_cell_backward(grad_hy, workspace, has_bias);
  if (!has_bias) o[3] = o[4] = Tensor();
  return {o[0], o[1], o[2], o[3], o[4]};
}

// ---- the gated linear unit
Tensor glu(const Tensor& self, int64_t dim) {
  const auto half = self.chunk(2, dim);
  return half[0] * half[1].sigmoid();
}

Tensor glu_backward(const Tensor& grad, const Tensor& self, int64_t dim) {
  const auto half = self.chunk(2, dim);
  const Tensor gate = half[1].sigmoid();
  return at::cat({grad * gate, at::sigmoid_backward(grad * half[0], gate)}, dim);
}

Tensor glu_jvp(const Tensor& result, const Tensor& x, const Tensor& tangent, int64_t dim) {
  const Tensor gate = x.chunk(2, dim)[1].sigmoid();
  const auto half = tangent.chunk(2, dim);
  return gate * half[0] + result * (1 - gate) * half[1];
}

// The derivative of glu_backward along (dgrad, dx). With s = sigmoid(b): s' = s (1 - s), s'' = s'
// (1 - 2 s).
Tensor glu_backward_jvp(const Tensor&, const Tensor& grad, const Tensor& x, const Tensor& dgrad,
                        const Tensor& dx, int64_t dim) {
  const auto parts = x.chunk(2, dim), tangents = dx.chunk(2, dim);
  const Tensor &a = parts[0], &da = tangents[0], &db = tangents[1];
  const Tensor s = parts[1].sigmoid(), slope = s * (1 - s), bend = slope * (1 - 2 * s);
  const Tensor first = dgrad * s + grad * slope * db;
  const Tensor second = (dgrad * a + grad * da) * slope + grad * a * bend * db;
  return at::cat({first, second}, dim);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_lstm_cell_backward_impl", TORCH_FN(lstm_cell_backward));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("_thnn_fused_gru_cell_backward", TORCH_FN(gru_cell_backward));
  register_out<glu>(m, "glu.out");
  m.impl("glu_backward", TORCH_FN(glu_backward));
  register_out<glu_backward>(m, "glu_backward.grad_input");
  m.impl("glu_jvp", TORCH_FN(glu_jvp));
  m.impl("glu_backward_jvp", TORCH_FN(glu_backward_jvp));
}

}  // namespace torch_ocl
