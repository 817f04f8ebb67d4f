// Inference for cumulative operators.
#include "common.h"

namespace ocltensor::infer {

Specs cumsum(const Args& args) {
  const auto self = args.tensor(0);
  (void)wrap_dim(args.integer(1), self.ndim());
  return {spec(args.optional_dtype(2).value_or(sum_type(self.dtype())), self.sizes())};
}

Specs cumprod(const Args& args) { return cumsum(args); }

}  // namespace ocltensor::infer
