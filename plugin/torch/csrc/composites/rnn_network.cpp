// lstm, gru, rnn_tanh and rnn_relu, padded and packed: layers by the fused cells. What these do not
// take, and wrong calls, go to ATen's own composition of operators, which raises the errors.
#include <ATen/FuncTorchTLS.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "operators/operator.h"
#include "rnn_layer.h"

namespace torch_ocl::rnn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// ---- one layer in one direction
// Gradients of gradients are taken through the composed form, which is run again for that.
variable_list differentiable_backward(Cell cell, const Steps& steps, const Inputs& in,
                                      const variable_list& grads) {
  const at::AutoGradMode enable(true);
  const Outputs out = run_composed(cell, steps, in);
  variable_list outputs, seeds, wanted, result(kInputs);
  const Tensor all[] = {out.output, out.hn, out.cn};
  for (size_t i = 0; i < 3; ++i) {
    if (!grads[i].defined() || !all[i].defined()) continue;
    outputs.push_back(all[i]);
    seeds.push_back(grads[i]);
  }
  const variable_list inputs = list_of(in);
  for (const Tensor& t : inputs)
    if (t.defined() && t.requires_grad()) wanted.push_back(t);
  const variable_list found =
      torch::autograd::grad(outputs, wanted, seeds, /*retain_graph=*/true, /*create_graph=*/true,
                            /*allow_unused=*/true);
  size_t next = 0;
  for (size_t i = 0; i < kInputs; ++i)
    if (inputs[i].defined() && inputs[i].requires_grad()) result[i] = found[next++];
  return result;
}

std::optional<Tensor> maybe(const Tensor& t) {
  return t.defined() ? std::optional<Tensor>(t) : std::nullopt;
}

struct Layer : torch::autograd::Function<Layer> {
  using Maybe = const std::optional<Tensor>&;  // undefined tensors are no inputs of a Function
  static variable_list forward(AutogradContext* ctx, int64_t cell, const Steps& steps,
                               const Tensor& x, const Tensor& h0, Maybe c0, const Tensor& w_ih,
                               const Tensor& w_hh, Maybe b_ih, Maybe b_hh, Maybe w_hr) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const Tensor none;
    const Inputs in{x,
                    h0,
                    c0.value_or(none),
                    w_ih,
                    w_hh,
                    b_ih.value_or(none),
                    b_hh.value_or(none),
                    w_hr.value_or(none)};
    const Outputs out = run_fused(static_cast<Cell>(cell), steps, in, true);
    variable_list kept = list_of(in);
    kept.insert(kept.end(), {out.output, out.cells, out.workspace});
    kept.push_back(w_hr.has_value() ? out.unprojected : Tensor());
    ctx->save_for_backward(std::move(kept));
    ctx->saved_data["cell"] = cell;
    ctx->saved_data["reverse"] = steps.reverse;
    // In the order of time.
    const Steps& forwards = steps.reverse ? steps.reversed() : steps;
    ctx->saved_data["counts"] = forwards.counts;
    ctx->set_materialize_grads(false);
    variable_list results{out.output, out.hn};
    if (out.cn.defined()) results.push_back(out.cn);
    return results;
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    grads.resize(3);
    const variable_list kept = ctx->get_saved_variables();
    const Inputs in = inputs_of(at::TensorList(kept).slice(0, kInputs));
    const auto cell = static_cast<Cell>(ctx->saved_data["cell"].toInt());
    Steps steps = make_steps(ctx->saved_data["counts"].toIntVector());
    if (ctx->saved_data["reverse"].toBool()) steps = steps.reversed();
    variable_list result(2);  // not of the cell's kind and the steps
    const bool any = grads[0].defined() || grads[1].defined() || grads[2].defined();
    if (!any) {
      result.resize(2 + kInputs);
      return result;
    }
    variable_list found;
    if (at::GradMode::is_enabled()) {
      found = differentiable_backward(cell, steps, in, grads);
    } else {
      const at::AutoDispatchBelowADInplaceOrView below;
      std::array<bool, kInputs> wanted{};
      size_t edge = 0;  // absent inputs have none
      for (size_t i = 0; i < kInputs; ++i)
        wanted[i] = kept[i].defined() && ctx->needs_input_grad(edge++);
      Outputs out{kept[8], {}, {}, kept[9], kept[10], kept[11].defined() ? kept[11] : kept[8]};
      found = list_of(run_fused_backward(cell, steps, in, out,
                                         {grads[0], grads[1], grads[2], {}, {}, {}}, wanted));
      for (size_t i = 0; i < kInputs; ++i)
        if (!wanted[i]) found[i] = Tensor();
    }
    result.insert(result.end(), found.begin(), found.end());
    return result;
  }
};

Outputs run_layer(Cell cell, const Steps& steps, const Inputs& in) {
  const variable_list inputs = list_of(in);
  bool forward_mode = false, wants_grad = false;
  for (const Tensor& t : inputs) {
    if (!t.defined()) continue;
    forward_mode = forward_mode || t._fw_grad(0).defined();
    wants_grad = wants_grad || t.requires_grad();
  }
  if (forward_mode) return run_composed(cell, steps, in);
  if (!wants_grad || !at::GradMode::is_enabled()) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return run_fused(cell, steps, in, false);
  }
  const variable_list out =
      Layer::apply(static_cast<int64_t>(cell), steps, in.x, in.h0, maybe(in.c0), in.w_ih, in.w_hh,
                   maybe(in.b_ih), maybe(in.b_hh), maybe(in.w_hr));
  return {out[0], out[1], out.size() > 2 ? out[2] : Tensor(), {}, {}, {}};
}

// ---- all layers
struct Network {
  Cell cell;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional;

  int64_t directions() const { return bidirectional ? 2 : 1; }
};

struct States {
  Tensor h, c;  // [layers * directions, batch, size]; c undefined but for LSTM
};

size_t weights_of(const Network& n, bool projected) { return 2 + 2 * n.has_biases + projected; }

Inputs inputs_at(const Network& n, const States& states, at::TensorList params, int64_t at,
                 const Tensor& x) {
  const bool projected = states.c.defined() && states.c.size(2) != states.h.size(2);
  const size_t count = weights_of(n, projected);
  const at::TensorList w = params.slice(static_cast<size_t>(at) * count, count);
  Inputs in{x,
            states.h.select(0, at),
            states.c.defined() ? states.c.select(0, at) : Tensor(),
            w[0],
            w[1],
            {},
            {},
            {}};
  if (n.has_biases) in.b_ih = w[2], in.b_hh = w[3];
  if (projected) in.w_hr = w[count - 1];
  return in;
}

struct Result {
  Tensor output;
  States states;
};

Result run_network(const Network& n, const Steps& steps, Tensor x, const States& states,
                   at::TensorList params) {
  std::vector<Tensor> h, c;
  const Steps backwards = n.bidirectional ? steps.reversed() : Steps();
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    std::vector<Tensor> outputs;
    for (int64_t d = 0; d < n.directions(); ++d) {
      const Inputs in = inputs_at(n, states, params, layer * n.directions() + d, x);
      const Outputs out = run_layer(n.cell, d == 0 ? steps : backwards, in);
      outputs.push_back(out.output);
      h.push_back(out.hn);
      if (out.cn.defined()) c.push_back(out.cn);
    }
    x = n.bidirectional ? at::cat(outputs, 1) : outputs[0];
    if (n.dropout != 0 && n.train && layer + 1 < n.layers) x = at::dropout(x, n.dropout, true);
  }
  return {x, {at::stack(h), c.empty() ? Tensor() : at::stack(c)}};
}

// ---- which calls the fused cells take
// A tensor of the device as the operators below see it: no wrapper of another mode.
bool is_plain(const Tensor& t) {
  const auto outer =
      c10::autograd_dispatch_keyset_with_ADInplaceOrView | c10::autocast_dispatch_keyset;
  return t.defined() &&
         (t.key_set() - outer).highestPriorityTypeId() == c10::DispatchKey::PrivateUse1 &&
         t.layout() == at::kStrided;
}

bool is_transformed() {
  if (c10::impl::dispatch_mode_enabled()) return true;
  const auto& functorch = at::functorch::functorchTLSAccessor();
  if (!functorch) return false;
  try {
    functorch->checkSupportsCppAutogradFunction();
    return false;
  } catch (const c10::Error&) {
    return true;
  }
}

bool has_shape(const Tensor& t, at::IntArrayRef shape) { return t.sizes() == shape; }

bool weights_fit(const Network& n, const Inputs& in, int64_t inputs, int64_t hidden) {
  const int64_t gates = gates_of(n.cell) * hidden, state = in.h0.size(1);
  return has_shape(in.w_ih, {gates, inputs}) && has_shape(in.w_hh, {gates, state}) &&
         (!n.has_biases || (has_shape(in.b_ih, {gates}) && has_shape(in.b_hh, {gates}))) &&
         (!in.w_hr.defined() || has_shape(in.w_hr, {state, hidden}));
}

bool is_taken(const Network& n, const Tensor& x, const States& states, at::TensorList params,
              int64_t batch) {
  if (is_transformed() || !is_plain(x) || x.numel() == 0 || n.layers < 1) return false;
  const bool lstm = n.cell == Cell::Lstm;
  std::vector<Tensor> all(params.begin(), params.end());
  all.push_back(states.h);
  if (lstm) all.push_back(states.c);
  for (const Tensor& t : all)
    if (!is_plain(t) || t.device() != x.device() || t.scalar_type() != x.scalar_type() ||
        t.numel() == 0)
      return false;
  const auto type = x.scalar_type();
  if (type != at::kFloat && type != at::kDouble && type != at::kHalf && type != at::kBFloat16)
    return false;
  const int64_t count = n.layers * n.directions();
  if (states.h.dim() != 3 || states.h.size(0) != count || states.h.size(1) != batch) return false;
  if (lstm && (states.c.dim() != 3 || states.c.size(0) != count || states.c.size(1) != batch))
    return false;
  const int64_t state = states.h.size(2), hidden = lstm ? states.c.size(2) : state;
  if (params.size() != static_cast<size_t>(count) * weights_of(n, hidden != state)) return false;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t inputs = i < n.directions() ? x.size(-1) : state * n.directions();
    if (!weights_fit(n, inputs_at(n, states, params, i, x), inputs, hidden)) return false;
  }
  return true;
}

// nullopt: ATen's own composition has to answer.
std::optional<Result> run_padded(const Network& n, const Tensor& input, const States& states,
                                 at::TensorList params, bool batch_first) {
  if (input.dim() != 3) return std::nullopt;
  const Tensor x = batch_first ? input.transpose(0, 1) : input;
  const int64_t time = x.size(0), batch = x.size(1);
  if (!is_taken(n, x, states, params, batch)) return std::nullopt;
  const Steps steps = make_steps(std::vector<int64_t>(static_cast<size_t>(time), batch));
  try {
    Result r = run_network(n, steps, x.reshape({time * batch, x.size(2)}), states, params);
    r.output = r.output.view({time, batch, -1});
    if (batch_first) r.output = r.output.transpose(0, 1);
    return r;
  } catch (const Declined&) {
    return std::nullopt;
  }
}

std::optional<Result> run_packed(const Network& n, const Tensor& data, const Tensor& batch_sizes,
                                 const States& states, at::TensorList params) {
  if (data.dim() != 2 || !batch_sizes.defined() || !batch_sizes.is_cpu() ||
      batch_sizes.scalar_type() != at::kLong || batch_sizes.dim() != 1 || batch_sizes.numel() == 0)
    return std::nullopt;
  const Tensor dense = batch_sizes.contiguous();
  const at::IntArrayRef sizes(dense.const_data_ptr<int64_t>(), static_cast<size_t>(dense.numel()));
  const bool falling = std::is_sorted(sizes.rbegin(), sizes.rend());
  if (!falling || sizes.back() < 1 || !is_taken(n, data, states, params, sizes[0]))
    return std::nullopt;
  const Steps steps = make_steps(sizes);
  if (steps.rows != data.size(0)) return std::nullopt;
  try {
    return run_network(n, steps, data, states, params);
  } catch (const Declined&) {
    return std::nullopt;
  }
}

// ---- the operators
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Three lstm_input(const Tensor& input, at::TensorList hx, at::TensorList params, bool has_biases,
                 int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  const Network n{Cell::Lstm, has_biases, layers, dropout, train, bidirectional};
  if (hx.size() == 2)
    if (auto r = run_padded(n, input, {hx[0], hx[1]}, params, batch_first))
      return {r->output, r->states.h, r->states.c};
  return at::native::lstm(input, hx, params, has_biases, layers, dropout, train, bidirectional,
                          batch_first);
}

Three lstm_data(const Tensor& data, const Tensor& batch_sizes, at::TensorList hx,
                at::TensorList params, bool has_biases, int64_t layers, double dropout, bool train,
                bool bidirectional) {
  const Network n{Cell::Lstm, has_biases, layers, dropout, train, bidirectional};
  if (hx.size() == 2)
    if (auto r = run_packed(n, data, batch_sizes, {hx[0], hx[1]}, params))
      return {r->output, r->states.h, r->states.c};
  return at::native::lstm(data, batch_sizes, hx, params, has_biases, layers, dropout, train,
                          bidirectional);
}

using Padded = Two(const Tensor&, const Tensor&, at::TensorList, bool, int64_t, double, bool, bool,
                   bool);
using Packed = Two(const Tensor&, const Tensor&, const Tensor&, at::TensorList, bool, int64_t,
                   double, bool, bool);

// The operators with one state, which differ in the cell and in ATen's composition.
template <Cell cell, Padded* composed>
Two padded(const Tensor& input, const Tensor& hx, at::TensorList params, bool has_biases,
           int64_t layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  const Network n{cell, has_biases, layers, dropout, train, bidirectional};
  if (auto r = run_padded(n, input, {hx, {}}, params, batch_first)) return {r->output, r->states.h};
  return composed(input, hx, params, has_biases, layers, dropout, train, bidirectional,
                  batch_first);
}

template <Cell cell, Packed* composed>
Two packed(const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, at::TensorList params,
           bool has_biases, int64_t layers, double dropout, bool train, bool bidirectional) {
  const Network n{cell, has_biases, layers, dropout, train, bidirectional};
  if (auto r = run_packed(n, data, batch_sizes, {hx, {}}, params)) return {r->output, r->states.h};
  return composed(data, batch_sizes, hx, params, has_biases, layers, dropout, train, bidirectional);
}

void register_networks(torch::Library& m) {
  m.impl("lstm.input", TORCH_FN(lstm_input));
  m.impl("lstm.data", TORCH_FN(lstm_data));
  m.impl("gru.input", TORCH_FN((padded<Cell::Gru, at::native::gru>)));
  m.impl("gru.data", TORCH_FN((packed<Cell::Gru, at::native::gru>)));
  m.impl("rnn_tanh.input", TORCH_FN((padded<Cell::Tanh, at::native::rnn_tanh>)));
  m.impl("rnn_tanh.data", TORCH_FN((packed<Cell::Tanh, at::native::rnn_tanh>)));
  m.impl("rnn_relu.input", TORCH_FN((padded<Cell::Relu, at::native::rnn_relu>)));
  m.impl("rnn_relu.data", TORCH_FN((packed<Cell::Relu, at::native::rnn_relu>)));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) { register_networks(m); }
// ATen composes these operators of others; so they have no derivative of their own.
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { register_networks(m); }

}  // namespace torch_ocl::rnn
