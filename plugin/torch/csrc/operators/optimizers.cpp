// ATen's fused optimizer steps and loss scaling.
#include <ATen/ATen.h>
#include <ATen/Operators.h>

#include "list_operator.h"
#include "register_kernels.h"

namespace torch_ocl {
namespace {

// One step, with all arguments in the schema's order.
class Step {
 public:
  explicit Step(const at::Tensor& first) : device_(first.device().index()) {}
  // Lists change in place: a shared storage is replaced before addresses are taken.
  void add(at::TensorList list) {
    for (const at::Tensor& t : list) (void)t.mutable_data_ptr();
    in_.add(list);
  }
  // The learning rate: a tensor on the device, or a number.
  void add(const at::Tensor& number) {
    if (number.device().type() == kOcl)
      in_.add(number);
    else
      in_.add(number.item().toDouble());
  }
  void add(const std::optional<at::Tensor>& flag) { in_.add(flag); }
  void add(double value) { in_.add(value); }
  void add(bool value) { in_.add(value); }

  void run(ListOperator& op) { op.invoke(in_, {}, device_); }  // throws Declined

 private:
  c10::DeviceIndex device_;
  Arguments in_;
};

template <typename Op, auto& plugin_op, typename Signature = typename Op::schema>
struct Fused;
template <typename Op, auto& plugin_op, typename... A>
struct Fused<Op, plugin_op, void(at::TensorList, A...)> {
  static void call(at::TensorList self, A... args) {
    if (self.empty()) return;
    Step step(self[0]);
    step.add(self);
    (step.add(args), ...);
    try {
      step.run(plugin_op);
    } catch (const Declined& declined) {
      run_elsewhere<Op>(declined.what(), self, args...);
    }
  }
};

ListOperator fused_adam("_fused_adam_.tensor_lr");
ListOperator fused_adamw("_fused_adamw_.tensor_lr");
ListOperator fused_sgd("_fused_sgd_.tensor_lr");
ListOperator fused_adagrad("_fused_adagrad_.tensor_lr");
ListOperator amp_unscale("_amp_foreach_non_finite_check_and_unscale_");

void unscale(at::TensorList gradients, at::Tensor& found_inf, const at::Tensor& inv_scale) {
  if (gradients.empty()) return;
  Arguments in;
  for (const at::Tensor& t : gradients) (void)t.mutable_data_ptr();
  (void)found_inf.mutable_data_ptr();
  in.add(gradients);
  in.add(found_inf);
  in.add(inv_scale);
  try {
    return amp_unscale.invoke(in, {}, gradients[0].device().index());
  } catch (const Declined& declined) {
    if (gradients.size() == 1)
      return (void)run_elsewhere<at::_ops::_amp_foreach_non_finite_check_and_unscale_>(
          declined.what(), gradients, found_inf, inv_scale);
  }
  // Gradients of several types, or that share memory, are unscaled one by one.
  for (size_t i = 0; i < gradients.size(); ++i)
    unscale(gradients.slice(i, 1), found_inf, inv_scale);
}

at::Tensor& update_scale(at::Tensor& scale, at::Tensor& growth_tracker, const at::Tensor& found_inf,
                         double growth_factor, double backoff_factor, int64_t growth_interval) {
  static ListOperator& op = *new ListOperator("_amp_update_scale_");
  Arguments in;
  (void)scale.mutable_data_ptr();
  (void)growth_tracker.mutable_data_ptr();
  for (const at::Tensor* t : {static_cast<const at::Tensor*>(&scale),
                              static_cast<const at::Tensor*>(&growth_tracker), &found_inf})
    in.add(*t);
  in.add(growth_factor);
  in.add(backoff_factor);
  in.add(growth_interval);
  try {
    op.invoke(in, {}, scale.device().index());
  } catch (const Declined& declined) {
    run_elsewhere<at::_ops::_amp_update_scale_>(declined.what(), scale, growth_tracker, found_inf,
                                                growth_factor, backoff_factor, growth_interval);
  }
  return scale;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
#define OCL_FUSED(optimizer)                                                                  \
  register_kernel<at::_ops::_##optimizer##_, Fused<at::_ops::_##optimizer##_, optimizer>>(m); \
  register_kernel<at::_ops::_##optimizer##__tensor_lr,                                        \
                  Fused<at::_ops::_##optimizer##__tensor_lr, optimizer>>(m);
  OCL_FUSED(fused_adam)
  OCL_FUSED(fused_adamw)
  OCL_FUSED(fused_sgd)
  OCL_FUSED(fused_adagrad)
#undef OCL_FUSED
  m.impl("_amp_foreach_non_finite_check_and_unscale_", TORCH_FN(unscale));
  m.impl("_amp_update_scale_", TORCH_FN(update_scale));
}

}  // namespace torch_ocl
