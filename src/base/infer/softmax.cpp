// Inference for softmax and log-softmax.
#include "common.h"

namespace ocltensor::infer {

Specs log_softmax(const Args& args) { return softmax(args); }
Specs log_softmax_backward_data(const Args& args) { return softmax_backward_data(args); }

Specs softmax(const Args& args) {
  const auto self = args.tensor(Arg::self);
  check_floating(args, self);
  (void)wrap_dim(args.integer(Arg::dim), self.ndim());
  check(!args.boolean(Arg::half_to_float) || self.dtype() == DType::Float16,
        "{}: half_to_float needs a float16 tensor, got {}", args.schema().full_name(),
        name(self.dtype()));
  return {spec(args.boolean(Arg::half_to_float) ? DType::Float32 : self.dtype(), self.sizes())};
}

Specs softmax_backward_data(const Args& args) {
  const auto grad = args.tensor(Arg::grad_output);
  check_floating(args, grad);
  check(Dims(grad.sizes()) == Dims(args.tensor(Arg::output).sizes()),
        "{}: grad_output and output must have the same shape, got {} and {}",
        args.schema().full_name(), to_string(grad.sizes()),
        to_string(args.tensor(Arg::output).sizes()));
  (void)wrap_dim(args.integer(Arg::dim), grad.ndim());
  return {spec(args.optional_dtype(Arg::input_dtype).value_or(grad.dtype()), grad.sizes())};
}

}  // namespace ocltensor::infer
