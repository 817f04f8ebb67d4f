// Inference for scaled dot product attention: output and attention weights.
#include "common.h"

namespace ocltensor::infer {

Specs scaled_dot_product_attention(const Args& args) {
  const auto query = args.tensor(0);
  const auto key = args.tensor(1);
  const auto value = args.tensor(2);
  check_floating(args, query);
  check_same_type(args, query, key);
  check_same_type(args, query, value);
  check(query.ndim() >= 2 && key.ndim() >= 2 && value.ndim() >= 2,
        "attention needs query, key and value of at least 2 dimensions, got {}, {} and {}",
        query.ndim(), key.ndim(), value.ndim());
  check(query.size(-1) == key.size(-1),
        "attention: query and key must agree in their last dimension, got {} and {}",
        query.size(-1), key.size(-1));
  check(key.size(-2) == value.size(-2),
        "attention: key and value must have the same length, got {} and {}", key.size(-2),
        value.size(-2));
  check(!args.boolean(5) || args.is_none(3),
        "attention: attn_mask must be absent where is_causal is set");
  const auto batch = [](TensorView t) {
    return Dims(t.sizes().first(static_cast<size_t>(t.ndim()) - 2));
  };
  Dims common = batch(query);
  Dims keys = batch(key);
  Dims values = batch(value);
  if (args.boolean(8)) {  // grouped queries: each key head serves a whole number of query heads
    check(query.ndim() >= 3 && key.ndim() >= 3 && value.ndim() >= 3,
          "attention with enable_gqa needs a head dimension");
    check(keys.back() > 0 && values.back() > 0 && common.back() % keys.back() == 0 &&
              common.back() % values.back() == 0,
          "attention with enable_gqa: the number of query heads, {}, must be a multiple of the "
          "number of key heads, {}, and of value heads, {}",
          common.back(), keys.back(), values.back());
    keys.back() = values.back() = common.back();
  }
  common = broadcast(common, keys);
  Dims weights = common;
  weights.push_back(query.size(-2));
  weights.push_back(key.size(-2));
  if (const auto mask = args.optional_tensor(3)) {
    check(mask->dtype() == DType::Bool || is_floating(mask->dtype()),
          "attention: attn_mask must be bool or floating-point, got {}", name(mask->dtype()));
    (void)broadcast_strides(mask->sizes(), mask->strides(), weights);
  }
  Dims output = broadcast(common, values);
  output.push_back(query.size(-2));
  output.push_back(value.size(-1));
  return {spec(query.dtype(), output), spec(query.dtype(), weights)};
}

}  // namespace ocltensor::infer
