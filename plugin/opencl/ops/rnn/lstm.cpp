// _thnn_fused_lstm_cell and its backward: one launch each, and a sum for the biases' gradient.
#include "kernels/rnn.h"
#include "ops/copy/copy.h"
#include "rnn.h"

namespace ocltensor::opencl::rnn {
namespace {

// All tensors are row-major. Forward: gates, cx, biases give hy, cy, workspace; backward: the
// gradients, cx, cy, workspace give grad_gates, grad_cx.
struct Lstm {
  bool backward;
  TensorView state;
  MemoryRange hy, cy, cx, workspace;
  MemoryRange input = nullptr, hidden = nullptr, input_bias = nullptr, hidden_bias = nullptr;
  MemoryRange grad_gates = nullptr, grad_cx = nullptr, grad_cy = nullptr;
  bool has_bias = false, has_hy = false, has_cy = false;
};

void run_forward(const OpCall& call, const Lstm& what) {
  const Cells cells(call, what.state);
  call.launch(kernels::rnn::lstm::forward, cell_defines(what.state.dtype(), what.has_bias),
              {.hy = what.hy,
               .cy = what.cy,
               .workspace = what.workspace,
               .input = what.input,
               .hidden = what.hidden,
               .cx = what.cx,
               .input_bias = what.input_bias,
               .hidden_bias = what.hidden_bias,
               .p = cells.p})
      .run(cells.division.global, cells.division.local);
}

void run_backward(const OpCall& call, const Lstm& what) {
  const Cells cells(call, what.state);
  Defines d = cell_defines(what.state.dtype(), false);
  if (what.has_hy) d.set(define::HAS_HY, 1);
  if (what.has_cy) d.set(define::HAS_CY, 1);
  call.launch(kernels::rnn::lstm::backward, d,
              {.grad_gates = what.grad_gates,
               .grad_cx = what.grad_cx,
               .grad_hy = what.hy,
               .grad_cy = what.grad_cy,
               .cx = what.cx,
               .cy = what.cy,
               .workspace = what.workspace,
               .p = cells.p})
      .run(cells.division.global, cells.division.local);
}

void run(const OpCall& call, const Lstm& what) {
  what.backward ? run_backward(call, what) : run_forward(call, what);
}

constinit const AlgorithmFor<Lstm> kLstm(
    {.id = "lstm.elements",
     .description = "an element of the state, or a vector of them, after another",
     .last_resort = true},
    Steps<takes_all<Lstm>, run>());

struct Traits {
  static std::string describe(const OpCall& call, const Lstm& what) {
    return fmt::format("{} {} {} x {}", call.name(), name(what.state.dtype()), what.state.size(0),
                       what.state.size(1));
  }
};
using Algorithms = AlgorithmList<Lstm, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("lstm", kLstmOperators, {&kLstm});  // leaked
  return list;
}

void forward(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView state = args.tensor(Arg::cx);
  call.accept();
  if (state.numel() == 0) return;
  const Contiguous input(call, args.tensor(Arg::input_gates)),
      hidden(call, args.tensor(Arg::hidden_gates)), cx(call, state);
  const MaybeContiguous input_bias(call, Arg::input_bias), hidden_bias(call, Arg::hidden_bias);
  ContiguousOutput hy(call, call.out(0)), cy(call, call.out(1)), workspace(call, call.out(2));
  algorithms().run(call, {.backward = false,
                          .state = cx.view(),
                          .hy = hy,
                          .cy = cy,
                          .cx = cx,
                          .workspace = workspace,
                          .input = input,
                          .hidden = hidden,
                          .input_bias = input_bias,
                          .hidden_bias = hidden_bias,
                          .has_bias = static_cast<bool>(input_bias)});
  hy.finish();
  cy.finish();
  workspace.finish();
}

void backward(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView state = args.tensor(Arg::cx);
  const bool has_bias = args.boolean(Arg::has_bias);
  call.accept();
  if (state.numel() == 0) {
    if (has_bias) copy::fill_tensor(call, call.out(2), 0);
    return;
  }
  const MaybeContiguous grad_hy(call, Arg::grad_hy), grad_cy(call, Arg::grad_cy);
  const Contiguous cx(call, state), cy(call, args.tensor(Arg::cy)),
      workspace(call, args.tensor(Arg::workspace));
  ContiguousOutput gates(call, call.out(0)), grad_cx(call, call.out(1));
  algorithms().run(call, {.backward = true,
                          .state = cx.view(),
                          .hy = grad_hy,
                          .cy = cy,
                          .cx = cx,
                          .workspace = workspace,
                          .grad_gates = gates,
                          .grad_cx = grad_cx,
                          .grad_cy = grad_cy,
                          .has_hy = static_cast<bool>(grad_hy),
                          .has_cy = static_cast<bool>(grad_cy)});
  if (has_bias) sum_of_rows(call, gates.view(), call.out(2));
  gates.finish();
  grad_cx.finish();
}

constexpr OpEntry kOperators[] = {{"_thnn_fused_lstm_cell.out", forward},
                                  {"_thnn_fused_lstm_cell_backward_impl.out", backward}};

}  // namespace

const std::span<const OpEntry> kLstmOperators = kOperators;

const AlgorithmFamily& lstm_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::rnn
