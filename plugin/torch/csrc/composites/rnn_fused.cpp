// A layer of a recurrent network by the fused cells: the products with the inputs are one for all
// steps; a step is the product with its state, and the cell. Backward goes the same way: gradients
// of weights are one product for all steps.
#include "operators/operator.h"
#include "rnn_layer.h"

namespace torch_ocl::rnn {
namespace {

using at::Tensor;

PluginOperator lstm_forward("_thnn_fused_lstm_cell.out");
PluginOperator lstm_backward("_thnn_fused_lstm_cell_backward_impl.out");
PluginOperator gru_forward("_thnn_fused_gru_cell.out");
PluginOperator gru_backward("_thnn_fused_gru_cell_backward.out");
PluginOperator plugin_addmm("addmm.out");

// Calls a cell with outputs of the right shapes, which may be the memory of gates (kernels/rnn says
// which).
template <typename... T>
void call_cell(PluginOperator& op, const char* name, std::span<Tensor> outs, const T&... inputs) {
  Arguments in;
  (in.add(inputs), ...);
  op.invoke(in, outs, in.settle(name, outs[0].device().index(), false));
}

// sum += a b, in place: ATen's addmm_ is derived from the out form, which needs a copy of `sum`.
void add_product(const Tensor& sum, const Tensor& a, const Tensor& b) {
  try {
    Arguments in;
    in.add(sum), in.add(a), in.add(b);
    in.add(at::Scalar(1)), in.add(at::Scalar(1));
    Tensor outs[] = {sum};
    plugin_addmm.run_in_place(in, outs);
  } catch (const Declined&) {
    Tensor out = sum;
    at::addmm_out(out, sum, a, b);
  }
}

// The rows of each step of a tensor [rows, columns].
std::vector<Tensor> rows_of(const Steps& steps, const Tensor& all) {
  std::vector<Tensor> rows;
  rows.reserve(steps.size());
  for (size_t s = 0; s < steps.size(); ++s)
    rows.push_back(all.narrow(0, steps.firsts[s], steps.counts[s]));
  return rows;
}

// With the biases, which for GRU the cell adds: the hidden part of its new gate has one of its own.
Tensor input_product(Cell cell, const Inputs& in) {
  if (cell == Cell::Gru || !in.b_ih.defined()) return at::mm(in.x, in.w_ih.t());
  return at::addmm(in.b_ih + in.b_hh, in.x, in.w_ih.t());
}

// The states of all steps, one step after another, with the memory that the steps share.
class Forward {
 public:
  Forward(Cell cell, const Steps& steps, const Inputs& in, bool keep)
      : cell_(cell),
        steps_(steps),
        in_(in),
        weight_(in.w_hh.t()),
        hidden_size_(in.w_hh.size(0) / gates_of(cell)) {
    const auto options = in.x.options();
    gates_ = input_product(cell, in);
    input_ = rows_of(steps, gates_);
    products_ = at::empty({steps.batch, gates_.size(1)}, options);
    out_.unprojected = at::empty({steps.rows, hidden_size_}, options);
    out_.output =
        in.w_hr.defined() ? at::empty({steps.rows, in.w_hr.size(0)}, options) : out_.unprojected;
    states_ = rows_of(steps, out_.output);
    raw_ = in.w_hr.defined() ? rows_of(steps, out_.unprojected) : states_;
    if (cell == Cell::Lstm) {
      out_.cells = at::empty({steps.rows, hidden_size_}, options);
      cells_ = rows_of(steps, out_.cells);
      out_.workspace = gates_;
    } else if (cell == Cell::Gru) {
      out_.workspace = at::empty({keep ? steps.rows : steps.batch, 5 * hidden_size_}, options);
    }
    keep_ = keep;
  }

  Outputs run() {
    for (size_t s = 0; s < steps_.size(); ++s) step(s);
    out_.hn = final_state(steps_, states_);
    if (cell_ == Cell::Lstm) out_.cn = final_state(steps_, cells_);
    return std::move(out_);
  }

 private:
  void step(size_t s) {
    const int64_t count = steps_.counts[s];
    const Tensor h = state_before(steps_, s, states_, in_.h0);
    if (cell_ == Cell::Tanh || cell_ == Cell::Relu) {
      add_product(input_[s], h, weight_);
      cell_ == Cell::Tanh ? at::tanh_out(states_[s], input_[s])
                          : at::clamp_min_out(states_[s], input_[s], 0);
      return;
    }
    Tensor product = count == steps_.batch ? products_ : products_.narrow(0, 0, count);
    at::mm_out(product, h, weight_);
    const Tensor none;
    if (cell_ == Cell::Lstm) {
      const Tensor c = state_before(steps_, s, cells_, in_.c0);
      Tensor outs[] = {raw_[s], cells_[s], input_[s]};
      call_cell(lstm_forward, "lstm", outs, input_[s], product, c, none, none);
      if (in_.w_hr.defined()) at::mm_out(states_[s], raw_[s], in_.w_hr.t());
    } else {
      Tensor outs[] = {states_[s], out_.workspace.narrow(0, keep_ ? steps_.firsts[s] : 0, count)};
      call_cell(gru_forward, "gru", outs, input_[s], product, h, in_.b_ih, in_.b_hh);
    }
  }

  Cell cell_;
  const Steps& steps_;
  const Inputs& in_;
  Tensor weight_;
  int64_t hidden_size_;
  bool keep_;
  Tensor gates_, products_;
  Outputs out_;
  std::vector<Tensor> input_, states_, raw_, cells_;
};

// The states that the steps start from, in the order of rows.
Tensor states_before(const Steps& steps, const Tensor& all, const Tensor& initial) {
  if (steps.padded()) {
    const int64_t rest = steps.rows - steps.batch;
    if (steps.reverse) return at::cat({all.narrow(0, steps.batch, rest), initial});
    return at::cat({initial, all.narrow(0, 0, rest)});
  }
  const std::vector<Tensor> states = rows_of(steps, all);
  std::vector<Tensor> before;
  for (size_t s = 0; s < steps.size(); ++s)
    before.push_back(state_before(steps, s, states, initial));
  if (steps.reverse) std::reverse(before.begin(), before.end());
  return at::cat(before);
}

class Backward {
 public:
  Backward(Cell cell, const Steps& steps, const Inputs& in, const Outputs& out,
           const Outputs& grads)
      : cell_(cell), steps_(steps), in_(in), out_(out) {
    const auto options = in.x.options();
    grad_ = grads.output.defined() ? grads.output.clone(at::MemoryFormat::Contiguous)
                                   : at::zeros_like(out.output);
    states_ = rows_of(steps, grad_);
    if (grads.hn.defined())
      each_final(steps, [&](size_t s, int64_t first, int64_t count) {
        states_[s].narrow(0, first, count).add_(grads.hn.narrow(0, first, count));
      });
    const int64_t columns = in.w_hh.size(0);
    input_gates_ = at::empty({steps.rows, columns}, options);
    input_ = rows_of(steps, input_gates_);
    hidden_gates_ = cell == Cell::Gru ? at::empty({steps.rows, columns}, options) : input_gates_;
    hidden_ = cell == Cell::Gru ? rows_of(steps, hidden_gates_) : input_;
    values_ = rows_of(steps, out.output);
    if (cell == Cell::Lstm || cell == Cell::Gru) workspace_ = rows_of(steps, out.workspace);
    if (cell == Cell::Gru) direct_ = at::empty({steps.batch, columns / 3}, options);
    if (cell == Cell::Lstm) {
      cells_ = rows_of(steps, out.cells);
      grad_cells_ = grads.cn.defined() ? grads.cn.clone(at::MemoryFormat::Contiguous)
                                       : at::zeros_like(in.c0, at::MemoryFormat::Contiguous);
    }
    grad_h0_ = at::empty_like(in.h0, at::MemoryFormat::Contiguous);
  }

  Inputs run(const std::array<bool, kInputs>& wanted) {
    for (size_t s = steps_.size(); s-- > 0;) {
      cell_gradient(s);
      pass_on(s);
    }
    Inputs g;
    if (wanted[0]) g.x = at::mm(input_gates_, in_.w_ih);
    g.h0 = grad_h0_;
    g.c0 = grad_cells_;
    if (wanted[3]) g.w_ih = at::mm(input_gates_.t(), in_.x);
    if (wanted[4]) g.w_hh = at::mm(hidden_gates_.t(), states_before(steps_, out_.output, in_.h0));
    if (wanted[5]) g.b_ih = input_gates_.sum(0);
    if (wanted[6]) g.b_hh = cell_ != Cell::Gru && wanted[5] ? g.b_ih : hidden_gates_.sum(0);
    if (wanted[7]) g.w_hr = at::mm(grad_.t(), out_.unprojected);
    return g;
  }

 private:
  // The gradient of a step's gates, and of the states before it but for the product.
  void cell_gradient(size_t s) {
    const int64_t count = steps_.counts[s];
    if (cell_ == Cell::Tanh) {
      at::tanh_backward_out(input_[s], states_[s], values_[s]);
    } else if (cell_ == Cell::Relu) {
      at::threshold_backward_out(input_[s], states_[s], values_[s], 0);
    } else if (cell_ == Cell::Gru) {
      const Tensor none = empty_bias();
      Tensor outs[] = {input_[s], hidden_[s], direct_.narrow(0, 0, count), none, none};
      call_cell(gru_backward, "gru", outs, states_[s], workspace_[s], false);
    } else {
      const Tensor c = state_before(steps_, s, cells_, in_.c0);
      const Tensor grad_c = grad_cells_.narrow(0, 0, count);
      const Tensor grad_h = in_.w_hr.defined() ? at::mm(states_[s], in_.w_hr) : states_[s];
      Tensor outs[] = {input_[s], grad_c, empty_bias()};
      call_cell(lstm_backward, "lstm", outs, grad_h, grad_c, c, cells_[s], workspace_[s], false);
    }
  }

  // Adds what step s says about the state before it to the gradient of that state.
  void pass_on(size_t s) {
    const int64_t count = steps_.counts[s];
    const int64_t shared = s == 0 ? 0 : std::min(count, steps_.counts[s - 1]);
    if (shared > 0) {
      Tensor target = states_[s - 1].narrow(0, 0, shared);
      const Tensor gates = hidden_[s].narrow(0, 0, shared);
      add_product(target, gates, in_.w_hh);
      if (cell_ == Cell::Gru) target.add_(direct_.narrow(0, 0, shared));
    }
    if (shared == count) return;
    // Sequences that begin here.
    Tensor target = grad_h0_.narrow(0, shared, count - shared);
    const Tensor gates = hidden_[s].narrow(0, shared, count - shared);
    if (cell_ == Cell::Gru)
      at::addmm_out(target, direct_.narrow(0, shared, count - shared), gates, in_.w_hh);
    else
      at::mm_out(target, gates, in_.w_hh);
  }
  Tensor empty_bias() {
    if (!nothing_.defined()) nothing_ = at::empty({0}, in_.x.options());
    return nothing_;
  }

  Cell cell_;
  const Steps& steps_;
  const Inputs& in_;
  const Outputs& out_;
  Tensor grad_, input_gates_, hidden_gates_, direct_, grad_cells_, grad_h0_, nothing_;
  std::vector<Tensor> states_, input_, hidden_, values_, workspace_, cells_;
};

}  // namespace

Outputs run_fused(Cell cell, const Steps& steps, const Inputs& in, bool keep) {
  return Forward(cell, steps, in, keep).run();
}

Inputs run_fused_backward(Cell cell, const Steps& steps, const Inputs& in, const Outputs& out,
                          const Outputs& grads, const std::array<bool, kInputs>& wanted) {
  return Backward(cell, steps, in, out, grads).run(wanted);
}

}  // namespace torch_ocl::rnn
