// Inference for scaled dot product attention: output and attention weights.
#include "common.h"

namespace ocltensor::infer {
namespace {

// Query, key and value, of one floating type.
std::array<TensorView, 3> operands(const Args& args) {
  const auto query = args.tensor(Arg::query);
  const auto key = args.tensor(Arg::key);
  const auto value = args.tensor(Arg::value);
  check_floating(args, query);
  check_same_type(args, query, key);
  check_same_type(args, query, value);
  return {query, key, value};
}

// Checks query [B, H, L, E], key [B, K, S, E], value [B, K, S, V], H a multiple of K, and a bias
// that broadcasts to [B, H, L, S]. Returns the shape of the output.
Dims fused_shape(const Args& args) {
  const auto [query, key, value] = operands(args);
  check(query.ndim() == 4 && key.ndim() == 4 && value.ndim() == 4,
        "fused attention needs query, key and value of 4 dimensions, got {}, {} and {}",
        query.ndim(), key.ndim(), value.ndim());
  const int64_t heads = key.size(1);
  check(query.size(0) == key.size(0) && key.size(0) == value.size(0) && heads == value.size(1) &&
            key.size(2) == value.size(2) && query.size(3) == key.size(3),
        "fused attention: shapes {}, {} and {} of query, key and value do not fit together",
        to_string(query.sizes()), to_string(key.sizes()), to_string(value.sizes()));
  check(heads > 0 ? query.size(1) % heads == 0 : query.size(1) == 0,
        "fused attention: the number of query heads, {}, must be a multiple of the number of key "
        "heads, {}",
        query.size(1), heads);
  if (const auto bias = args.optional_tensor(Arg::attn_bias)) {
    check(!args.boolean(Arg::is_causal),
          "attention: attn_bias must be absent where is_causal is set");
    check(bias->dtype() == DType::Bool || is_floating(bias->dtype()),
          "attention: attn_bias must be bool or floating-point, got {}", name(bias->dtype()));
    (void)broadcast_strides(bias->sizes(), bias->strides(),
                            Dims{query.size(0), query.size(1), query.size(2), key.size(2)});
  }
  return {query.size(0), query.size(1), query.size(2), value.size(3)};
}

void check_dropout(const Args& args) {
  const double p = args.real(Arg::dropout_p);
  check(p >= 0 && p < 1, "attention: dropout_p must be in [0, 1), got {}", p);
}

}  // namespace

Specs fused_attention(const Args& args) {
  const Dims output = fused_shape(args);
  check_dropout(args);
  const DType type = args.tensor(Arg::query).dtype();
  return {spec(type, output), spec(compute_type(type), Dims{output[0], output[1], output[2]})};
}

Specs fused_attention_backward(const Args& args) {
  const Dims output = fused_shape(args);
  check_dropout(args);
  const auto query = args.tensor(Arg::query);
  const auto sum = args.tensor(Arg::logsumexp);
  for (const Arg a : {Arg::grad_out, Arg::out}) {
    check_same_type(args, query, args.tensor(a));
    check(Dims(args.tensor(a).sizes()) == output,
          "attention backward: {} has shape {}, expected {}", name(a),
          to_string(args.tensor(a).sizes()), to_string(output));
  }
  check(sum.dtype() == compute_type(query.dtype()) &&
            Dims(sum.sizes()) == Dims{output[0], output[1], output[2]},
        "attention backward: logsumexp must be {} of shape [{}, {}, {}]",
        name(compute_type(query.dtype())), output[0], output[1], output[2]);
  return {spec(query.dtype(), Dims(query.sizes())),
          spec(query.dtype(), Dims(args.tensor(Arg::key).sizes())),
          spec(query.dtype(), Dims(args.tensor(Arg::value).sizes()))};
}

Specs scaled_dot_product_attention(const Args& args) {
  const auto [query, key, value] = operands(args);
  check(query.ndim() >= 2 && key.ndim() >= 2 && value.ndim() >= 2,
        "attention needs query, key and value of at least 2 dimensions, got {}, {} and {}",
        query.ndim(), key.ndim(), value.ndim());
  check(query.size(-1) == key.size(-1),
        "attention: query and key must agree in their last dimension, got {} and {}",
        query.size(-1), key.size(-1));
  check(key.size(-2) == value.size(-2),
        "attention: key and value must have the same length, got {} and {}", key.size(-2),
        value.size(-2));
  check(!args.boolean(Arg::is_causal) || args.is_none(Arg::attn_mask),
        "attention: attn_mask must be absent where is_causal is set");
  const auto batch = [](TensorView t) {
    return Dims(t.sizes().first(static_cast<size_t>(t.ndim()) - 2));
  };
  Dims common = batch(query);
  Dims keys = batch(key);
  Dims values = batch(value);
  if (args.boolean(Arg::enable_gqa)) {  // grouped queries: each key head belongs to a whole number
                                        // of query heads
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
  if (const auto mask = args.optional_tensor(Arg::attn_mask)) {
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
