// One layer of a recurrent network in one direction: the rows of all steps lie one after another,
// so that padded and packed sequences are the same. Forward and backward by the fused cells, or by
// differentiable operators.
#pragma once

#include "composite.h"

namespace torch_ocl::rnn {

enum class Cell : int64_t { Lstm, Gru, Tanh, Relu };
constexpr int64_t gates_of(Cell cell) { return cell == Cell::Lstm ? 4 : cell == Cell::Gru ? 3 : 1; }

// The steps in the order of computation. Step s takes `counts[s]` rows from `firsts[s]` on: those
// of the sequences that have an element there, the longest sequence first.
struct Steps {
  std::vector<int64_t> firsts, counts;
  bool reverse = false;
  size_t size() const { return counts.size(); }
  int64_t rows = 0, batch = 0;
  bool padded() const { return rows == batch * static_cast<int64_t>(size()); }
  Steps reversed() const;
};
// `sizes`: the number of sequences that have an element at each time.
Steps make_steps(at::IntArrayRef sizes);

// Absent tensors are undefined. x is [rows, inputs], h0 [batch, P], c0 [batch, H].
struct Inputs {
  at::Tensor x, h0, c0;
  at::Tensor w_ih, w_hh, b_ih, b_hh, w_hr;
};
constexpr size_t kInputs = 8;
std::vector<at::Tensor> list_of(const Inputs& in);
Inputs inputs_of(at::TensorList list);

// What a layer gives, and what its backward needs besides: the cells' states c and workspaces, and
// the states before a projection.
struct Outputs {
  at::Tensor output, hn, cn;
  at::Tensor cells, workspace, unprojected;
};

// By the fused cells, without a graph. Throws Declined before anything is visible.
Outputs run_fused(Cell cell, const Steps& steps, const Inputs& in, bool keep);
// The gradients of the inputs that are wanted; those of the outputs may be undefined.
Inputs run_fused_backward(Cell cell, const Steps& steps, const Inputs& in, const Outputs& out,
                          const Outputs& grads, const std::array<bool, kInputs>& wanted);
// By differentiable operators.
Outputs run_composed(Cell cell, const Steps& steps, const Inputs& in);

// ---- states
// The state that step s starts from: rows of the step before it, and of the initial state where
// sequences begin.
at::Tensor state_before(const Steps& steps, size_t s, const std::vector<at::Tensor>& states,
                        const at::Tensor& initial);
// Calls body(step, first row in it, rows) for the parts of the final state.
template <typename Body>
void each_final(const Steps& steps, Body&& body) {
  int64_t done = 0;
  for (size_t s = steps.size(); s-- > 0;) {
    if (steps.counts[s] <= done) continue;
    body(s, done, steps.counts[s] - done);
    done = steps.counts[s];
  }
}
at::Tensor final_state(const Steps& steps, const std::vector<at::Tensor>& states);

}  // namespace torch_ocl::rnn
