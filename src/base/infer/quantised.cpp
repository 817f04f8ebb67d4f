// Inference for quantised weights.
#include "../weight_formats.h"
#include "common.h"

namespace ocltensor::infer {

Specs quantised_mm(const Args& args) {
  const auto self = args.tensor(Arg::self);
  const std::string& name = args.schema().full_name();
  check_floating(args, self);
  check(self.ndim() == 2, "{}: expected a matrix [M, K], got shape {}", name,
        to_string(self.sizes()));
  const int64_t n = args.integer(Arg::n);
  (void)quantised_weight(args, n, self.size(1));
  if (const auto bias = args.optional_tensor(Arg::bias)) {
    check_same_type(args, self, *bias);
    check(bias->ndim() == 1 && bias->size(0) == n, "{}: expected a bias of shape [{}], got {}",
          name, n, to_string(bias->sizes()));
  }
  return {spec(self.dtype(), Dims{self.size(0), n})};
}

Specs dequantise(const Args& args) {
  const std::string& name = args.schema().full_name();
  const auto size = args.ints(Arg::size);
  check(size.size() == 2, "{}: expected a size [N, K], got {}", name, to_string(size));
  (void)quantised_weight(args, size[0], size[1]);
  const auto type = args.optional_dtype(Arg::out_dtype);
  check(type.has_value() && is_floating(*type), "{}: expected a floating-point type", name);
  const auto index = args.optional_tensor(Arg::index);
  if (!index) return {spec(*type, size)};
  check_index_type(args, *index);
  check(index->ndim() == 1, "{}: expected a vector of row numbers, got shape {}", name,
        to_string(index->sizes()));
  check(size[0] > 0 || index->numel() == 0, "{}: a weight without rows has none to choose", name);
  return {spec(*type, Dims{index->size(0), size[1]})};
}

}  // namespace ocltensor::infer
