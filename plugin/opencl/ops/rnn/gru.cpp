// _thnn_fused_gru_cell and its backward: one launch each, and sums for the biases' gradients.
#include "kernels/rnn.h"
#include "ops/copy/copy.h"
#include "rnn.h"

namespace ocltensor::opencl::rnn {
namespace {

// All tensors are row-major. Forward: gates, hx, biases give hy, workspace; backward: grad_hy and
// the workspace give grad_input, grad_hidden, grad_hx.
struct Gru {
  bool backward;
  TensorView state;
  MemoryRange hy, workspace, input, hidden, hx;
  MemoryRange input_bias = nullptr, hidden_bias = nullptr;
  bool has_bias = false;
};

void run_forward(const OpCall& call, const Gru& what) {
  const Cells cells(call, what.state);
  call.launch(kernels::rnn::gru::forward, cell_defines(what.state.dtype(), what.has_bias),
              {.hy = what.hy,
               .workspace = what.workspace,
               .input = what.input,
               .hidden = what.hidden,
               .hx = what.hx,
               .input_bias = what.input_bias,
               .hidden_bias = what.hidden_bias,
               .p = cells.p})
      .run(cells.division.global, cells.division.local);
}

void run_backward(const OpCall& call, const Gru& what) {
  const Cells cells(call, what.state);
  call.launch(kernels::rnn::gru::backward, cell_defines(what.state.dtype(), false),
              {.grad_input = what.input,
               .grad_hidden = what.hidden,
               .grad_hx = what.hx,
               .grad_hy = what.hy,
               .workspace = what.workspace,
               .p = cells.p})
      .run(cells.division.global, cells.division.local);
}

void run(const OpCall& call, const Gru& what) {
  what.backward ? run_backward(call, what) : run_forward(call, what);
}

constinit const AlgorithmFor<Gru> kGru(
    {.id = "gru.elements",
     .description = "an element of the state, or a vector of them, after another",
     .last_resort = true},
    Steps<takes_all<Gru>, run>());

struct Traits {
  static std::string describe(const OpCall& call, const Gru& what) {
    return fmt::format("{} {} {} x {}", call.name(), name(what.state.dtype()), what.state.size(0),
                       what.state.size(1));
  }
};
using Algorithms = AlgorithmList<Gru, Traits>;

Algorithms& algorithms() {
  static Algorithms& list = *new Algorithms("gru", kGruOperators, {&kGru});  // leaked
  return list;
}

void forward(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView state = args.tensor(Arg::hx);
  call.accept();
  if (state.numel() == 0) return;
  const Contiguous input(call, args.tensor(Arg::input_gates)),
      hidden(call, args.tensor(Arg::hidden_gates)), hx(call, state);
  const MaybeContiguous input_bias(call, Arg::input_bias), hidden_bias(call, Arg::hidden_bias);
  ContiguousOutput hy(call, call.out(0)), workspace(call, call.out(1));
  algorithms().run(call, {.backward = false,
                          .state = hx.view(),
                          .hy = hy,
                          .workspace = workspace,
                          .input = input,
                          .hidden = hidden,
                          .hx = hx,
                          .input_bias = input_bias,
                          .hidden_bias = hidden_bias,
                          .has_bias = static_cast<bool>(input_bias)});
  hy.finish();
  workspace.finish();
}

void backward(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView state = args.tensor(Arg::grad_hy);
  const bool has_bias = args.boolean(Arg::has_bias);
  call.accept();
  if (state.numel() == 0) {
    for (const size_t i : {3, 4})
      if (has_bias) copy::fill_tensor(call, call.out(i), 0);
    return;
  }
  const Contiguous grad(call, state), workspace(call, args.tensor(Arg::workspace));
  ContiguousOutput input(call, call.out(0)), hidden(call, call.out(1)), hx(call, call.out(2));
  algorithms().run(call, {.backward = true,
                          .state = grad.view(),
                          .hy = grad,
                          .workspace = workspace,
                          .input = input,
                          .hidden = hidden,
                          .hx = hx});
  if (has_bias) {
    sum_of_rows(call, input.view(), call.out(3));
    sum_of_rows(call, hidden.view(), call.out(4));
  }
  input.finish();
  hidden.finish();
  hx.finish();
}

constexpr OpEntry kOperators[] = {{"_thnn_fused_gru_cell.out", forward},
                                  {"_thnn_fused_gru_cell_backward.out", backward}};

}  // namespace

const std::span<const OpEntry> kGruOperators = kOperators;

const AlgorithmFamily& gru_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::rnn
