// Inference for cumulative operators.
#include "common.h"

namespace ocltensor::infer {

Specs cumsum(const Args& args) {
  const auto self = args.tensor(Arg::self);
  (void)wrap_dim(args.integer(Arg::dim), self.ndim());
  return {spec(args.optional_dtype(Arg::dtype).value_or(sum_type(self.dtype())), self.sizes())};
}

Specs cumprod(const Args& args) { return cumsum(args); }

Specs logcumsumexp(const Args& args) {
  const auto self = args.tensor(Arg::self);
  if (!is_floating(self.dtype()) && !is_complex(self.dtype()))
    unsupported(TB_REASON_DTYPE, "logcumsumexp: dtype {}", name(self.dtype()));
  (void)wrap_dim(args.integer(Arg::dim), self.ndim());
  return {spec(self.dtype(), self.sizes())};
}

// Also for cummin.
Specs cummax(const Args& args) {
  const auto self = args.tensor(Arg::self);
  (void)wrap_dim(args.integer(Arg::dim), self.ndim());
  return {spec(self.dtype(), self.sizes()), spec(DType::Int64, self.sizes())};
}

}  // namespace ocltensor::infer
