// Inference for sort and topk.
#include "common.h"

namespace ocltensor::infer {

Specs sort(const Args& args) {
  const auto self = args.tensor(0);
  (void)wrap_dim(args.integer(2), self.ndim());
  return {spec(self.dtype(), self.sizes()), spec(DType::Int64, self.sizes())};
}

Specs topk(const Args& args) {
  const auto self = args.tensor(0);
  const int64_t k = args.integer(1);
  const int64_t dim = wrap_dim(args.integer(2), self.ndim());
  const int64_t length = self.ndim() == 0 ? 1 : self.size(dim);
  check(k >= 0 && k <= length, "topk: k must be between 0 and {}, got {}", length, k);
  Dims sizes = self.sizes();
  if (!sizes.empty()) sizes[static_cast<size_t>(dim)] = k;
  return {spec(self.dtype(), sizes), spec(DType::Int64, sizes)};
}

}  // namespace ocltensor::infer
