// Fused optimizer steps.
#include <cmath>

#include "call/division.h"
#include "kernels/multi_tensor.h"
#include "multi_tensor.h"

namespace ocltensor::opencl::multi_tensor {
namespace {

// Reads arguments by name, gives lists their roles, and does what all optimizers have in common.
class Step {
 public:
  Step(const OpCall& call, DefineName kernel, std::initializer_list<Arg> lists)
      : call_(call),
        type_(type_of_all()),
        tensors_(call, compute_type(type_), lists.size(), count_of_all()) {
    defines_.type(define::A, type_).set(kernel, 1);
    set_flag(define::MAXIMIZE, call.args().boolean(Arg::maximize));
    set_flag(define::DECAY, call.args().real(Arg::weight_decay) != 0);
    for (const Arg list : lists) {
      lists_.push_back(call.args().whole_list(list));
      const bool steps = list == Arg::state_steps;
      is_step_.push_back(steps);
      check_type(lists_.back(), steps ? DType::Float32 : type_);
    }
    share(Arg::lr, define::LR, 0);
    share(Arg::grad_scale, define::SCALE, 1);
    share(Arg::found_inf, define::FOUND, 2);
    tensors_.set_number(1, call.args().real(Arg::weight_decay));
  }

  Step& set_flag(DefineName name, bool value) { return defines_.set(name, value), *this; }
  Step& set_number(size_t slot, double value) { return tensors_.set_number(slot, value), *this; }

  void run(const ListKernel& kernel) {
    std::vector<Role> roles;
    for (size_t t = 0; t < lists_[0].size(); ++t) {
      roles.clear();
      for (size_t k = 0; k < lists_.size(); ++k) {
        // Gradients are written only where they are unscaled.
        const bool written = !is_step_[k] && (k != 1 || scaled_);
        roles.push_back({lists_[k][t], true, written, is_step_[k]});
      }
      tensors_.add(roles);
    }
    tensors_.check_disjoint();
    call_.accept();
    tensors_.run(kernel, defines_);
  }

 private:
  DType type_of_all() const {
    const TensorViews self = call_.args().whole_list(Arg::self);
    return self.empty() ? DType::Float32 : self[0].dtype();
  }
  size_t count_of_all() const { return call_.args().value(Arg::self).count; }
  void check_type(TensorViews list, DType type) const {
    for (const TensorView t : list)
      if (t.dtype() != type)
        unsupported(TB_REASON_DTYPE, "{}: the tensors of a list must be {}, got {}", call_.name(),
                    name(type), name(t.dtype()));
  }
  void share(Arg argument, DefineName type, size_t slot) {
    const Args& args = call_.args();
    if (args.is_number(argument)) return set_number(slot, args.real(argument)), void();
    const auto tensor = args.optional_tensor(argument);
    if (!tensor) return;
    tensors_.share(slot, *tensor);
    defines_.type(type, tensor->dtype());
    if (slot == 1) scaled_ = true;
  }

  const OpCall& call_;
  DType type_;
  TensorLists tensors_;
  Defines defines_;
  std::vector<TensorViews> lists_;
  std::vector<bool> is_step_;
  bool scaled_ = false;
};

void adam(OpCall& call, bool decoupled) {
  check_outputs(call);
  const Args& args = call.args();
  const bool amsgrad = args.boolean(Arg::amsgrad);
  Step step =
      amsgrad ? Step(call, define::ADAM,
                     {Arg::self, Arg::grads, Arg::exp_avgs, Arg::exp_avg_sqs, Arg::state_steps,
                      Arg::max_exp_avg_sqs})
              : Step(call, define::ADAM,
                     {Arg::self, Arg::grads, Arg::exp_avgs, Arg::exp_avg_sqs, Arg::state_steps});
  const double beta1 = args.real(Arg::beta1), beta2 = args.real(Arg::beta2);
  step.set_flag(define::DECOUPLED, decoupled).set_flag(define::AMSGRAD, amsgrad);
  step.set_number(2, args.real(Arg::eps)).set_number(3, beta1).set_number(4, 1 - beta1);
  step.set_number(5, beta2).set_number(6, 1 - beta2);
  step.set_number(7, std::log(beta1))
      .set_number(8, std::log(beta2))
      .run(kernels::multi_tensor::optimizers::adam);
}
void adam_op(OpCall& call) { adam(call, false); }
void adamw_op(OpCall& call) { adam(call, true); }

void sgd_op(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const double momentum = args.real(Arg::momentum);
  Step step = momentum != 0
                  ? Step(call, define::SGD, {Arg::self, Arg::grads, Arg::momentum_buffer_list})
                  : Step(call, define::SGD, {Arg::self, Arg::grads});
  step.set_flag(define::DECOUPLED, false).set_flag(define::MOMENTUM, momentum != 0);
  step.set_flag(define::NESTEROV, args.boolean(Arg::nesterov))
      .set_flag(define::FIRST, args.boolean(Arg::is_first_step));
  step.set_number(2, momentum)
      .set_number(3, 1 - args.real(Arg::dampening))
      .run(kernels::multi_tensor::optimizers::sgd);
}

void adagrad_op(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  Step step(call, define::ADAGRAD, {Arg::self, Arg::grads, Arg::state_sums, Arg::state_steps});
  step.set_flag(define::DECOUPLED, false);
  step.set_number(2, args.real(Arg::eps))
      .set_number(3, args.real(Arg::lr_decay))
      .run(kernels::multi_tensor::optimizers::adagrad);
}

constexpr OpEntry kOperators[] = {{"_fused_adam_.tensor_lr", adam_op},
                                  {"_fused_adamw_.tensor_lr", adamw_op},
                                  {"_fused_sgd_.tensor_lr", sgd_op},
                                  {"_fused_adagrad_.tensor_lr", adagrad_op}};

}  // namespace

std::span<const OpEntry> optimizer_operators() { return kOperators; }

}  // namespace ocltensor::opencl::multi_tensor
