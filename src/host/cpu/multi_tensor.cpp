// Operators over lists of tensors: the foreach operators (which call the pointwise ones), optimizer
// steps, loss scaling.
#include "base/multi_tensor.h"

#include <cmath>
#include <string>

#include "call.h"

namespace ocltensor::cpu {
namespace {

// The numbers of one tensor, read and written back as a whole.
struct Values {
  View view;
  std::vector<double> values;
  explicit Values(TensorView tensor) : view(tensor), values(read<double>(view)) {}
  void write_back() const { write(view, values); }
};

// A number, or a tensor of one element; `otherwise` where there is none.
double single(const CpuCall& call, Arg a, double otherwise) {
  if (call.args.is_none(a)) return otherwise;
  if (call.args.is_number(a)) return call.args.real(a);
  return read<double>(View(call.args.tensor(a)))[0];
}

// The gradient of one element as an optimizer step uses it: unscaled, negated for `maximize`, with
// weight decay.
struct Gradients {
  double scale;
  double sign;
  double decay;
  explicit Gradients(const CpuCall& call, double weight_decay)
      : scale(single(call, Arg::grad_scale, 1)),
        sign(call.args.boolean(Arg::maximize) ? -1 : 1),
        decay(weight_decay) {}
  double of(double& stored, double parameter) const {
    stored /= scale;
    return sign * stored + decay * parameter;
  }
};

bool is_skipped(const CpuCall& call) { return single(call, Arg::found_inf, 0) == 1; }

void run_adam(const CpuCall& call, bool decoupled) {
  if (is_skipped(call)) return;
  const bool amsgrad = call.args.boolean(Arg::amsgrad);
  const double lr = single(call, Arg::lr, 0), decay = call.args.real(Arg::weight_decay);
  const double beta1 = call.args.real(Arg::beta1), beta2 = call.args.real(Arg::beta2),
               eps = call.args.real(Arg::eps);
  const Gradients gradients(call, decoupled ? 0 : decay);
  const size_t count = call.args.tensors(Arg::self).size();
  for (size_t t = 0; t < count; ++t) {
    Values p(*call.args.tensors(Arg::self)[t]), g(*call.args.tensors(Arg::grads)[t]),
        m(*call.args.tensors(Arg::exp_avgs)[t]), v(*call.args.tensors(Arg::exp_avg_sqs)[t]);
    Values most(*call.args.tensors(amsgrad ? Arg::max_exp_avg_sqs : Arg::exp_avg_sqs)[t]);
    const double step = Values(*call.args.tensors(Arg::state_steps)[t]).values[0];
    const double correction1 = 1 - std::pow(beta1, step);
    const double correction2 = std::sqrt(1 - std::pow(beta2, step));
    for (size_t i = 0; i < p.values.size(); ++i) {
      const double gradient = gradients.of(g.values[i], p.values[i]);
      if (decoupled) p.values[i] -= lr * decay * p.values[i];
      m.values[i] = beta1 * m.values[i] + (1 - beta1) * gradient;
      v.values[i] = beta2 * v.values[i] + (1 - beta2) * gradient * gradient;
      most.values[i] = amsgrad ? std::max(most.values[i], v.values[i]) : v.values[i];
      p.values[i] -=
          lr / correction1 * m.values[i] / (std::sqrt(most.values[i]) / correction2 + eps);
    }
    for (const Values* each : {&p, &g, &m, &v}) each->write_back();
    if (amsgrad) most.write_back();
  }
}

void adam(const CpuCall& call) { run_adam(call, false); }
void adamw(const CpuCall& call) { run_adam(call, true); }

void sgd(const CpuCall& call) {
  if (is_skipped(call)) return;
  const double lr = single(call, Arg::lr, 0), momentum = call.args.real(Arg::momentum);
  const double kept = call.args.boolean(Arg::is_first_step) ? 0 : momentum;
  const double taken =
      call.args.boolean(Arg::is_first_step) ? 1 : 1 - call.args.real(Arg::dampening);
  const bool nesterov = call.args.boolean(Arg::nesterov);
  const Gradients gradients(call, call.args.real(Arg::weight_decay));
  const size_t count = call.args.tensors(Arg::self).size();
  for (size_t t = 0; t < count; ++t) {
    Values p(*call.args.tensors(Arg::self)[t]), g(*call.args.tensors(Arg::grads)[t]);
    Values buffer(*call.args.tensors(momentum != 0 ? Arg::momentum_buffer_list : Arg::self)[t]);
    for (size_t i = 0; i < p.values.size(); ++i) {
      double gradient = gradients.of(g.values[i], p.values[i]);
      if (momentum != 0) {
        double& b = buffer.values[i];
        b = (kept == 0 ? 0 : kept * b) + taken * gradient;
        gradient = nesterov ? gradient + momentum * b : b;
      }
      p.values[i] -= lr * gradient;
    }
    p.write_back();
    g.write_back();
    if (momentum != 0) buffer.write_back();
  }
}

void adagrad(const CpuCall& call) {
  if (is_skipped(call)) return;
  const double lr = single(call, Arg::lr, 0), eps = call.args.real(Arg::eps);
  const Gradients gradients(call, call.args.real(Arg::weight_decay));
  const size_t count = call.args.tensors(Arg::self).size();
  for (size_t t = 0; t < count; ++t) {
    Values p(*call.args.tensors(Arg::self)[t]), g(*call.args.tensors(Arg::grads)[t]),
        s(*call.args.tensors(Arg::state_sums)[t]);
    const double step = Values(*call.args.tensors(Arg::state_steps)[t]).values[0];
    const double rate = lr / (1 + (step - 1) * call.args.real(Arg::lr_decay));
    for (size_t i = 0; i < p.values.size(); ++i) {
      const double gradient = gradients.of(g.values[i], p.values[i]);
      s.values[i] += gradient * gradient;
      p.values[i] -= rate * gradient / (std::sqrt(s.values[i]) + eps);
    }
    for (const Values* each : {&p, &g, &s}) each->write_back();
  }
}

void unscale(const CpuCall& call) {
  Values found(call.args.tensor(Arg::found_inf));
  const double inverse = single(call, Arg::inv_scale, 1);
  for (const auto& tensor : call.args.tensors(Arg::self)) {
    Values gradient(*tensor);
    for (double& v : gradient.values) {
      if (!std::isfinite(v)) found.values[0] = 1;
      v *= inverse;
    }
    gradient.write_back();
  }
  found.write_back();
}

void update_scale(const CpuCall& call) {
  Values scale(call.args.tensor(Arg::self));
  int64_t successes = read<int64_t>(View(call.args.tensor(Arg::growth_tracker)))[0] + 1;
  if (single(call, Arg::found_inf, 0) > 0) {
    scale.values[0] *= call.args.real(Arg::scale_backoff_factor);
    successes = 0;
  } else if (successes == call.args.integer(Arg::growth_interval)) {
    const double grown =
        rounded(scale.values[0] * call.args.real(Arg::scale_growth_factor), scale.view.type);
    if (std::isfinite(grown)) scale.values[0] = grown;
    successes = 0;
  }
  scale.write_back();
  write(View(call.args.tensor(Arg::growth_tracker)), std::vector<int64_t>{successes});
}

void zero(const CpuCall& call) {
  for (size_t t = 0; t < call.raw.out_count; ++t)
    write(call.out(t), std::vector<double>(static_cast<size_t>(call.out(t).numel()), 0.0));
}

void copy(const CpuCall& call) {
  for (size_t t = 0; t < call.raw.out_count; ++t) {
    const View source = *call.args.tensors(Arg::src)[t];
    if (computes_in_double(source.type))
      write(call.out(t), read<double>(source));
    else
      write(call.out(t), read<int64_t>(source));
  }
}

void norm(const CpuCall& call) {
  const double order = call.args.real(Arg::ord);
  for (size_t t = 0; t < call.raw.out_count; ++t) {
    double total = 0, largest = 0;
    for (const double v : read<double>(View(*call.args.tensors(Arg::self)[t]))) {
      total += order == 0 ? v != 0 : std::pow(std::fabs(v), order);
      if (!(std::fabs(v) <= largest)) largest = std::fabs(v);  // NaN too
      if (std::isnan(largest)) break;
    }
    const bool infinite = std::isinf(order) && order > 0;
    write(call.out(t), std::vector<double>{infinite     ? largest
                                           : order == 0 ? total
                                                        : std::pow(total, 1 / order)});
  }
}

constexpr CpuOperator kOperators[] = {
    {"_foreach_zero.out", zero},
    {"_foreach_copy.out", copy},
    {"_foreach_norm.Scalar_out", norm},
    {"_fused_adam_.tensor_lr", adam},
    {"_fused_adamw_.tensor_lr", adamw},
    {"_fused_sgd_.tensor_lr", sgd},
    {"_fused_adagrad_.tensor_lr", adagrad},
    {"_amp_foreach_non_finite_check_and_unscale_", unscale},
    {"_amp_update_scale_", update_scale},
};

tb_value of_tensor(TensorView tensor) {
  tb_value v{TB_TENSOR, 0, {}};
  v.as.p = &tensor.raw();
  return v;
}

}  // namespace

// Calls the pointwise operator for each tensor, with its operands, number and alpha.
void run_foreach(const CpuCall& call) {
  const Foreach& f = *find_foreach(*find_operator(call.args.schema().full_name()));
  const Operator& op = *find_operator(f.pointwise);
  for (size_t t = 0; t < call.raw.out_count; ++t) {
    std::vector<tb_value> values;
    for (const Arg list : f.lists) values.push_back(of_tensor(*call.args.tensors(list)[t]));
    if (f.number) {
      const tb_value& number = call.args.value(*f.number);
      const bool listed = number.tag == TB_FLOAT_LIST;
      values.push_back(listed ? Scalar(call.args.reals(*f.number)[t]).to_value() : number);
    }
    if (f.has_alpha) values.push_back(call.args.value(Arg::alpha));
    while (values.size() < op.schema.inputs.size()) values.push_back(Scalar(1).to_value());
    const Args args(op.schema, values);
    tb_call raw = call.raw;
    raw.outs = call.raw.outs + t;
    raw.out_count = 1;
    run_pointwise({args, raw, call.specs.subspan(t, 1)});
  }
}

std::span<const CpuOperator> multi_tensor_operators() { return kOperators; }

}  // namespace ocltensor::cpu
