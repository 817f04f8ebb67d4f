// Inference for operators over lists of tensors: lists of one length, floating types, equal shapes
// at each position.

#include "common.h"

namespace ocltensor::infer {
namespace {

// A list that goes along with `first`, position by position; `any_type`: of any dtype.
void check_along(const Args& args, size_t i, TensorViews first, bool any_type = false) {
  const TensorViews list = args.whole_list(i);
  check(list.size() == first.size(), "{}: '{}' has {} tensors, '{}' has {}",
        args.schema().full_name(), args.schema().inputs[0].name, first.size(),
        args.schema().inputs[i].name, list.size());
  for (size_t k = 0; k < list.size(); ++k) {
    const TensorView tensor = list[k], expected = first[k];
    check(same(tensor.sizes(), expected.sizes()), "{}: tensor {} of '{}' has shape {}, expected {}",
          args.schema().full_name(), k, args.schema().inputs[i].name, to_string(tensor.sizes()),
          to_string(expected.sizes()));
    if (!any_type) check_same_type(args, expected, tensor);
  }
}

// A tensor of one element, or nothing; where `or_number`, a number too.
void check_single(const Args& args, std::string_view name, bool or_number = false) {
  const auto i = static_cast<size_t>(args.schema().input(name));
  if (or_number && args.is_number(i)) return;
  const auto t = args.optional_tensor(i);
  if (!t) return;
  check_floating(args, *t);
  check(t->numel() == 1, "{}: '{}' must have one element, got shape {}", args.schema().full_name(),
        name, to_string(t->sizes()));
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

// Lists with an entry for each parameter, one of which may be empty, and steps of one element.
void check_state(const Args& args, TensorViews self, std::initializer_list<std::string_view> lists,
                 std::string_view may_be_empty) {
  for (const std::string_view name : lists) {
    const auto i = static_cast<size_t>(args.schema().input(name));
    if (name == may_be_empty && args.value(i).tag == TB_TENSOR_LIST && args.value(i).count == 0)
      continue;
    check_along(args, i, self);
  }
  if (const int steps = args.schema().input("state_steps"); steps >= 0) {
    const TensorViews list = args.whole_list(static_cast<size_t>(steps));
    check(list.size() == self.size(), "{}: there are {} parameters and {} steps",
          args.schema().full_name(), self.size(), list.size());
    for (const TensorView t : list)
      check(is_floating(t.dtype()) && t.numel() == 1,
            "{}: steps must be floating-point tensors of one element, got {} {}",
            args.schema().full_name(), name(t.dtype()), to_string(t.sizes()));
  }
  check_single(args, "lr", true);
  check_single(args, "grad_scale");
  check_single(args, "found_inf");
}

}  // namespace

TensorViews check_foreach(const Args& args) {
  const TensorViews self = leading_list(args);
  for (size_t i = 1; i < args.size(); ++i) {
    const Argument& argument = args.schema().inputs[i];
    if (argument.type == ArgType::TensorList) check_along(args, i, self);
    if (argument.type == ArgType::Tensor) check_single(args, argument.name, true);
    if (argument.type == ArgType::FloatList)
      check(args.reals(i).size() == self.size(), "{}: {} tensors and {} numbers",
            args.schema().full_name(), self.size(), args.reals(i).size());
    if (argument.type == ArgType::Scalar) (void)args.scalar(i);
  }
  return self;
}

Specs foreach (const Args& args) { return like(check_foreach(args)); }

Specs foreach_copy(const Args& args) {
  const TensorViews self = leading_list(args);
  check_along(args, 1, self, true);
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
  const bool amsgrad = args.boolean(static_cast<size_t>(args.schema().input("amsgrad")));
  check_state(args, self, {"grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"},
              amsgrad ? "" : "max_exp_avg_sqs");
  return {};
}

Specs fused_sgd(const Args& args) {
  const TensorViews self = leading_list(args);
  const bool momentum = args.real(static_cast<size_t>(args.schema().input("momentum"))) != 0;
  check_state(args, self, {"grads", "momentum_buffer_list"},
              momentum ? "" : "momentum_buffer_list");
  return {};
}

Specs fused_adagrad(const Args& args) {
  check_state(args, leading_list(args), {"grads", "state_sums"}, "");
  return {};
}

Specs amp_unscale(const Args& args) {
  (void)leading_list(args);
  for (const std::string_view argument : {"found_inf", "inv_scale"}) {
    (void)args.tensor(static_cast<size_t>(args.schema().input(argument)));
    check_single(args, argument);
  }
  return {};
}

Specs amp_update_scale(const Args& args) {
  for (size_t i = 0; i < 3; ++i) {
    const DType type = i == 1 ? DType::Int32 : DType::Float32;
    check(args.tensor(i).dtype() == type && args.tensor(i).numel() == 1,
          "_amp_update_scale_: '{}' must be {} of one element, got {} {}",
          args.schema().inputs[i].name, name(type), name(args.tensor(i).dtype()),
          to_string(args.tensor(i).sizes()));
  }
  for (size_t i = 3; i < 5; ++i) (void)args.real(i);
  (void)args.integer(Arg::growth_interval);
  return {};
}

}  // namespace ocltensor::infer
