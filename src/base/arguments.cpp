// Checks of the tensors and values that a caller describes.
#include "arguments.h"

#include "ocltensor/dims.h"
#include "ocltensor/error.h"

namespace ocltensor {
namespace {

// The bytes [low, high) that a tensor spans, relative to its address. Refuses sizes and strides of
// which a sum or a product overflows, so that no operator has to check for overflow.
struct Reach {
  int64_t low = 0, high = 0;
};
Reach reach_of(const tb_tensor& tensor, int64_t item) {
  constexpr int64_t kMost = int64_t{1} << 60;  // no sum of two overflows
  Reach reach;
  int64_t count = item;
  bool fits = true;
  bool empty = false;
  for (uint32_t d = 0; d < tensor.ndim; ++d) {
    const int64_t size = tensor.sizes[d];
    check(size >= 0, "a tensor has the negative size {}", size);
    empty = empty || size == 0;
    int64_t step = 0;
    fits = fits && !__builtin_mul_overflow(count, size > 0 ? size : 1, &count) && count < kMost &&
           !__builtin_mul_overflow(size > 0 ? size - 1 : 0, tensor.strides[d], &step) &&
           !__builtin_mul_overflow(step, item, &step) && step < kMost && step > -kMost;
    (step < 0 ? reach.low : reach.high) += fits ? step : 0;
    fits = fits && reach.low > -kMost && reach.high < kMost;
  }
  check(fits, "a tensor of shape {} and strides {} has more bytes than there are addresses",
        to_string({tensor.sizes, tensor.ndim}), to_string({tensor.strides, tensor.ndim}));
  if (empty) return {};
  reach.high += item;
  return reach;
}

}  // namespace

DType check_described(const tb_tensor* tensor) {
  check(tensor != nullptr, "a tensor argument is NULL");
  check(tensor->struct_size >= TB_TENSOR_SIZE_V1, "a tensor argument has struct_size {}",
        tensor->struct_size);
  if (tensor->ndim > TB_MAX_RANK)
    unsupported(TB_REASON_RANK, "tensors have at most {} dimensions", TB_MAX_RANK);
  check(tensor->ndim == 0 || (tensor->sizes != nullptr && tensor->strides != nullptr),
        "a tensor argument of {} dimensions lacks its sizes or strides", tensor->ndim);
  return from_abi(tensor->dtype);
}

void check_reach(const tb_tensor& tensor, DType dtype) {
  const Reach reach = reach_of(tensor, size_of(dtype));
  if (reach.low == reach.high) return;
  if (tensor.base == 0) {  // unknown; or none, as PyTorch leaves a storage that was freed
    check(tensor.address != 0,
          "a tensor of shape {} has no memory: its storage was freed, or was never allocated",
          to_string({tensor.sizes, tensor.ndim}));
    return;
  }
  const uint64_t start = tensor.address - tensor.base;
  check(start <= tensor.base_bytes && static_cast<uint64_t>(-reach.low) <= start &&
            static_cast<uint64_t>(reach.high) <= tensor.base_bytes - start,
        "a tensor of shape {} and strides {} reaches beyond its storage of {} bytes",
        to_string({tensor.sizes, tensor.ndim}), to_string({tensor.strides, tensor.ndim}),
        tensor.base_bytes);
}

}  // namespace ocltensor
