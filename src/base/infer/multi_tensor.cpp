// Inference for operators over lists of tensors: lists of one length, floating types, equal shapes
// at each position.

#include "common.h"

namespace ocltensor::infer {
namespace {

// Checks that a list has the length of `first` and equal shapes and dtypes at each position;
// `any_type`: of any dtype.
void check_along(const Args& args, Arg a, TensorViews first, bool any_type = false) {
  const TensorViews list = args.whole_list(a);
  check(list.size() == first.size(), "{}: '{}' has {} tensors, '{}' has {}",
        args.schema().full_name(), name(Arg::self), first.size(), name(a), list.size());
  for (size_t k = 0; k < list.size(); ++k) {
    const TensorView tensor = list[k], expected = first[k];
    check(same(tensor.sizes(), expected.sizes()), "{}: tensor {} of '{}' has shape {}, expected {}",
          args.schema().full_name(), k, name(a), to_string(tensor.sizes()),
          to_string(expected.sizes()));
    if (!any_type) check_same_type(args, expected, tensor);
  }
}

// Checks that an argument is a tensor of one element or None; `or_number`: or a number.
void check_single(const Args& args, Arg a, bool or_number = false) {
  if (or_number && args.is_number(a)) return;
  const auto t = args.optional_tensor(a);
  if (!t) return;
  check_floating(args, *t);
  check(t->numel() == 1, "{}: '{}' must have one element, got shape {}", args.schema().full_name(),
        name(a), to_string(t->sizes()));
}

Specs like(TensorViews list) {
  Specs specs;
  specs.reserve(list.size());
  for (const TensorView t : list) specs.push_back(spec(t.dtype(), t.sizes()));
  return specs;
}

TensorViews leading_list(const Args& args) {
  const TensorViews self = args.whole_list(Arg::self);
  for (const TensorView t : self) check_floating(args, t);
  return self;
}

// Checks an optimizer's state: lists with an entry for each parameter (the list `may_be_empty` may
// have none), and steps of one element.
void check_state(const Args& args, TensorViews self, std::initializer_list<Arg> lists,
                 std::optional<Arg> may_be_empty) {
  for (const Arg a : lists) {
    if (a == may_be_empty && args.value(a).tag == TB_TENSOR_LIST && args.value(a).count == 0)
      continue;
    check_along(args, a, self);
  }
  if (args.has(Arg::state_steps)) {
    const TensorViews list = args.whole_list(Arg::state_steps);
    check(list.size() == self.size(), "{}: there are {} parameters and {} steps",
          args.schema().full_name(), self.size(), list.size());
    for (const TensorView t : list)
      check(is_floating(t.dtype()) && t.numel() == 1,
            "{}: steps must be floating-point tensors of one element, got {} {}",
            args.schema().full_name(), name(t.dtype()), to_string(t.sizes()));
  }
  check_single(args, Arg::lr, true);
  check_single(args, Arg::grad_scale);
  check_single(args, Arg::found_inf);
}

}  // namespace

TensorViews check_foreach(const Args& args) {
  const TensorViews self = leading_list(args);
  for (size_t i = 1; i < args.size(); ++i) {
    const ArgType type = args.schema().inputs[i].type;
    const Arg a = args.nth(i);
    if (type == ArgType::TensorList) check_along(args, a, self);
    if (type == ArgType::Tensor) check_single(args, a, true);
    if (type == ArgType::FloatList)
      check(args.reals(a).size() == self.size(), "{}: {} tensors and {} numbers",
            args.schema().full_name(), self.size(), args.reals(a).size());
    if (type == ArgType::Scalar) (void)args.scalar(a);
  }
  return self;
}

Specs foreach (const Args& args) { return like(check_foreach(args)); }

Specs foreach_copy(const Args& args) {
  const TensorViews self = leading_list(args);
  check_along(args, Arg::src, self, true);
  return like(self);
}

Specs foreach_norm(const Args& args) {
  const TensorViews self = leading_list(args);
  const auto type = args.optional_dtype(Arg::dtype);
  check(!type || is_floating(*type), "_foreach_norm: dtype must be floating-point");
  (void)args.scalar(Arg::ord);
  Specs specs;
  for (const TensorView t : self) specs.push_back(spec(type.value_or(t.dtype()), Dims{}));
  return specs;
}

Specs fused_adam(const Args& args) {
  const TensorViews self = leading_list(args);
  std::optional<Arg> may_be_empty;
  if (!args.boolean(Arg::amsgrad)) may_be_empty = Arg::max_exp_avg_sqs;
  check_state(args, self, {Arg::grads, Arg::exp_avgs, Arg::exp_avg_sqs, Arg::max_exp_avg_sqs},
              may_be_empty);
  return {};
}

Specs fused_sgd(const Args& args) {
  const TensorViews self = leading_list(args);
  std::optional<Arg> may_be_empty;
  if (args.real(Arg::momentum) == 0) may_be_empty = Arg::momentum_buffer_list;
  check_state(args, self, {Arg::grads, Arg::momentum_buffer_list}, may_be_empty);
  return {};
}

Specs fused_adagrad(const Args& args) {
  check_state(args, leading_list(args), {Arg::grads, Arg::state_sums}, {});
  return {};
}

Specs amp_unscale(const Args& args) {
  (void)leading_list(args);
  for (const Arg a : {Arg::found_inf, Arg::inv_scale}) {
    (void)args.tensor(a);
    check_single(args, a);
  }
  return {};
}

Specs amp_update_scale(const Args& args) {
  for (const Arg a : {Arg::self, Arg::growth_tracker, Arg::found_inf}) {
    const DType type = a == Arg::growth_tracker ? DType::Int32 : DType::Float32;
    check(args.tensor(a).dtype() == type && args.tensor(a).numel() == 1,
          "_amp_update_scale_: '{}' must be {} of one element, got {} {}", name(a), name(type),
          name(args.tensor(a).dtype()), to_string(args.tensor(a).sizes()));
  }
  (void)args.real(Arg::scale_growth_factor);
  (void)args.real(Arg::scale_backoff_factor);
  (void)args.integer(Arg::growth_interval);
  return {};
}

}  // namespace ocltensor::infer
