// Layers of recurrent networks: steps, states, and the form by differentiable operators, which
// forward mode and gradients of gradients take.
#include "rnn_layer.h"

namespace torch_ocl::rnn {

using at::Tensor;

Steps make_steps(at::IntArrayRef sizes) {
  Steps steps;
  for (const int64_t count : sizes) {
    steps.firsts.push_back(steps.rows);
    steps.counts.push_back(count);
    steps.rows += count;
  }
  steps.batch = sizes[0];
  return steps;
}

Steps Steps::reversed() const {
  Steps other = *this;
  std::reverse(other.firsts.begin(), other.firsts.end());
  std::reverse(other.counts.begin(), other.counts.end());
  other.reverse = !reverse;
  return other;
}

std::vector<Tensor> list_of(const Inputs& in) {
  return {in.x, in.h0, in.c0, in.w_ih, in.w_hh, in.b_ih, in.b_hh, in.w_hr};
}

Inputs inputs_of(at::TensorList l) { return {l[0], l[1], l[2], l[3], l[4], l[5], l[6], l[7]}; }

Tensor state_before(const Steps& steps, size_t s, const std::vector<Tensor>& states,
                    const Tensor& initial) {
  const int64_t count = steps.counts[s];
  if (s == 0) return count == steps.batch ? initial : initial.narrow(0, 0, count);
  const int64_t before = steps.counts[s - 1];
  const Tensor& state = states[s - 1];
  if (count == before) return state;
  if (count < before) return state.narrow(0, 0, count);
  return at::cat({state, initial.narrow(0, before, count - before)});
}

Tensor final_state(const Steps& steps, const std::vector<Tensor>& states) {
  std::vector<Tensor> parts;
  each_final(steps, [&](size_t s, int64_t first, int64_t count) {
    parts.push_back(states[s].narrow(0, first, count));
  });
  return parts.size() == 1 ? parts[0] : at::cat(parts);
}

namespace {

// The state after a step, and for LSTM the cell's, by operators that have all derivatives.
std::pair<Tensor, Tensor> step(Cell cell, const Tensor& input, const Tensor& hidden,
                               const Tensor& h, const Tensor& c) {
  if (cell == Cell::Lstm) {
    const auto gate = (input + hidden).chunk(4, 1);
    const Tensor cy = gate[1].sigmoid() * c + gate[0].sigmoid() * gate[2].tanh();
    return {gate[3].sigmoid() * cy.tanh(), cy};
  }
  if (cell == Cell::Gru) {
    const auto i = input.chunk(3, 1), j = hidden.chunk(3, 1);
    const Tensor reset = (i[0] + j[0]).sigmoid(), update = (i[1] + j[1]).sigmoid();
    const Tensor fresh = (i[2] + reset * j[2]).tanh();
    return {fresh + update * (h - fresh), Tensor()};
  }
  const Tensor sum = input + hidden;
  return {cell == Cell::Tanh ? sum.tanh() : sum.relu(), Tensor()};
}

Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return bias.defined() ? at::addmm(bias, x, weight.t()) : at::mm(x, weight.t());
}

}  // namespace

Outputs run_composed(Cell cell, const Steps& steps, const Inputs& in) {
  const Tensor input = product(in.x, in.w_ih, in.b_ih);
  std::vector<Tensor> states, cells;
  for (size_t s = 0; s < steps.size(); ++s) {
    const Tensor h = state_before(steps, s, states, in.h0);
    const Tensor c = cell == Cell::Lstm ? state_before(steps, s, cells, in.c0) : Tensor();
    const Tensor rows = input.narrow(0, steps.firsts[s], steps.counts[s]);
    auto [hy, cy] = step(cell, rows, product(h, in.w_hh, in.b_hh), h, c);
    states.push_back(in.w_hr.defined() ? at::mm(hy, in.w_hr.t()) : hy);
    if (cell == Cell::Lstm) cells.push_back(cy);
  }
  Outputs out;
  out.hn = final_state(steps, states);
  if (cell == Cell::Lstm) out.cn = final_state(steps, cells);
  if (steps.reverse) std::reverse(states.begin(), states.end());
  out.output = at::cat(states);
  return out;
}

}  // namespace torch_ocl::rnn
