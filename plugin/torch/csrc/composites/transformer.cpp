// The fast path of nn.MultiheadAttention and nn.TransformerEncoderLayer, and batch normalisation in
// its newer form, composed of the operators that the ordinary paths use.
#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;
using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

enum MaskType { kSource = 0, kPadding = 1, kGeneric = 2 };

// The mask, expanded so that it broadcasts to [N, heads, L, S].
Tensor expand_mask(const Tensor& mask, int64_t type) {
  TORCH_CHECK(type == kSource || type == kPadding || type == kGeneric,
              "mask_type must be 0 (source), 1 (padding) or 2 (generic), got ", type);
  if (type == kPadding) {
    TORCH_CHECK(mask.dim() == 2, "expected a padding mask of size [N, S], got ", mask.sizes());
    return mask.view({mask.size(0), 1, 1, mask.size(1)});
  }
  if (type == kSource && mask.dim() == 2) return mask.view({1, 1, mask.size(0), mask.size(1)});
  return mask;
}

// The mask as it broadcasts to the scores; undefined: none. True excludes a position. Numbers are
// added to the scores, as the modules document it: they are 0 and -inf, made from a bool mask, or
// any numbers from the user.
Tensor wide_mask(const MaybeTensor& mask, std::optional<int64_t> type) {
  if (!mask.has_value() || !mask->defined()) return {};
  TORCH_CHECK(type.has_value(), "a mask needs its mask_type: 0 (source), 1 (padding), 2 (generic)");
  const Tensor wide = expand_mask(*mask, *type);
  TORCH_CHECK(wide.scalar_type() == at::kBool || at::isFloatingType(wide.scalar_type()),
              "the mask must be of type bool or floating-point, got ", wide.scalar_type());
  return wide;
}
Tensor masked(const Tensor& scores, const Tensor& mask) {
  if (!mask.defined()) return scores;
  if (mask.scalar_type() == at::kBool) return scores.masked_fill(mask, -INFINITY);
  return scores + mask.to(scores.scalar_type());
}
// Attention without weights as a result: by the fused kernels, which want True for what is kept,
// and give zeros for rows of which everything is masked. Here these are NaN, as softmax makes them.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) {
  if (!mask.defined()) return at::scaled_dot_product_attention(q, k, v);
  const bool is_bool = mask.scalar_type() == at::kBool;
  const Tensor excluded = is_bool ? mask : mask.eq(-INFINITY);
  const Tensor out = at::scaled_dot_product_attention(
      q, k, v, is_bool ? mask.logical_not() : mask.to(q.scalar_type()));
  return out.masked_fill(excluded.all(-1, true), NAN);
}

std::tuple<Tensor, Tensor> multi_head_attention(const Tensor& query, const Tensor& key,
                                                const Tensor& value, int64_t embed_dim,
                                                int64_t heads, const Tensor& qkv_weight,
                                                const Tensor& qkv_bias, const Tensor& proj_weight,
                                                const Tensor& proj_bias, const MaybeTensor& mask,
                                                bool need_weights, bool average_weights,
                                                std::optional<int64_t> mask_type) {
  TORCH_CHECK(query.dim() == 3 && query.size(2) == embed_dim && embed_dim % heads == 0,
              "expected query of size [N, L, ", embed_dim, "] and ", heads, " heads, got ",
              query.sizes());
  // [N, L, n D] as n tensors [N, heads, L, D / heads].
  const auto heads_of = [&](const Tensor& x, int64_t n) {
    return x.view({x.size(0), x.size(1), n, heads, embed_dim / heads})
        .permute({2, 0, 3, 1, 4})
        .unbind(0);
  };
  std::vector<Tensor> parts;
  if (query.is_same(key) && query.is_same(value)) {
    parts = heads_of(at::linear(query, qkv_weight, qkv_bias), 3);
  } else {
    const auto weights = qkv_weight.chunk(3, 0);
    const auto biases = qkv_bias.chunk(3, 0);
    for (const Tensor* x : {&query, &key, &value}) {
      const size_t i = parts.size();
      parts.push_back(heads_of(at::linear(*x, weights[i], biases[i]), 1)[0]);
    }
  }
  const Tensor &q = parts[0], &k = parts[1], &v = parts[2];
  const Tensor excluded = wide_mask(mask, mask_type);
  const auto project = [&](const Tensor& x) {
    return at::linear(x.transpose(1, 2).flatten(2), proj_weight, proj_bias);
  };
  if (!need_weights) return {project(attention(q, k, v, excluded)), Tensor()};
  const Tensor scores = at::matmul(q / std::sqrt(static_cast<double>(embed_dim / heads)), k.mT());
  const Tensor shares = at::softmax(masked(scores, excluded), -1);
  return {project(at::matmul(shares, v)), average_weights ? shares.mean(1) : shares};
}

Tensor transformer_encoder_layer(const Tensor& src, int64_t embed_dim, int64_t heads,
                                 const Tensor& qkv_weight, const Tensor& qkv_bias,
                                 const Tensor& proj_weight, const Tensor& proj_bias, bool use_gelu,
                                 bool norm_first, double eps, const Tensor& norm_weight_1,
                                 const Tensor& norm_bias_1, const Tensor& norm_weight_2,
                                 const Tensor& norm_bias_2, const Tensor& ffn_weight_1,
                                 const Tensor& ffn_bias_1, const Tensor& ffn_weight_2,
                                 const Tensor& ffn_bias_2, const MaybeTensor& mask,
                                 std::optional<int64_t> mask_type) {
  const auto norm1 = [&](const Tensor& x) {
    return at::layer_norm(x, {embed_dim}, norm_weight_1, norm_bias_1, eps);
  };
  const auto norm2 = [&](const Tensor& x) {
    return at::layer_norm(x, {embed_dim}, norm_weight_2, norm_bias_2, eps);
  };
  const auto attend = [&](const Tensor& x) {
    return std::get<0>(multi_head_attention(x, x, x, embed_dim, heads, qkv_weight, qkv_bias,
                                            proj_weight, proj_bias, mask, false, true, mask_type));
  };
  const auto feed = [&](const Tensor& x) {
    const Tensor wide = at::linear(x, ffn_weight_1, ffn_bias_1);
    return at::linear(use_gelu ? at::gelu(wide) : at::relu(wide), ffn_weight_2, ffn_bias_2);
  };
  // Sums go in place to what the products gave, as in ATen: they are contiguous then, whatever the
  // layout of `src`, and so are all later layers.
  if (norm_first) {
    const Tensor x = attend(norm1(src)).add_(src);
    return feed(norm2(x)).add_(x);
  }
  const Tensor x = norm1(attend(src).add_(src));
  return norm2(feed(x).add_(x));
}

// ---- the pieces that ATen's own fast path consists of
void check_mask(const Tensor& input, const Tensor& mask, std::optional<int64_t> type) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  TORCH_CHECK(type.has_value(), "Mask Type should be defined");
  TORCH_CHECK(*type == kSource || *type == kPadding || *type == kGeneric,
              "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)");
  if (*type == kGeneric)
    TORCH_CHECK(input.sizes() == mask.sizes(),
                "For mask_type == 2 mask shape should match input shape");
  if (*type == kPadding)
    TORCH_CHECK(input.dim() == 4 && mask.dim() == 2 && mask.size(0) == input.size(0) &&
                    mask.size(1) == input.size(2) && mask.size(1) == input.size(3),
                "For mask_type == 1 mask shape should be (B, L)");
  if (*type == kSource)
    TORCH_CHECK(input.dim() == 4 && mask.dim() == 2 && mask.size(0) == input.size(2) &&
                    mask.size(1) == input.size(2) && mask.size(1) == input.size(3),
                "For mask_type == 0 mask shape should be (L, L)");
}

// Rows of which everything is masked are NaN.
Tensor masked_softmax(const Tensor& input, const Tensor& mask, std::optional<int64_t> dim,
                      std::optional<int64_t> type) {
  check_mask(input, mask, type);
  const Tensor wide = expand_mask(mask, *type);
  return at::softmax(input.masked_fill(wide, -INFINITY), dim.value_or(input.dim() - 1));
}

Tensor masked_softmax_backward(const Tensor& grad, const Tensor& output, const Tensor& mask,
                               std::optional<int64_t> dim) {
  TORCH_CHECK(grad.sizes() == mask.sizes(), "Mask shape should match grad shape");
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Mask should be a boolean tensor");
  const Tensor kept = grad.masked_fill(mask, 0);
  return at::_softmax_backward_data(kept, output.masked_fill(mask, 0),
                                    dim.value_or(output.dim() - 1), output.scalar_type());
}

// [N, L, 3 D] becomes query, divided by the root of a head's size, key and value, each
// [N, heads, L, D / heads].
Three transform_bias_rescale(const Tensor& qkv, const Tensor& bias, int64_t heads) {
  TORCH_CHECK(qkv.dim() == 3 && qkv.size(2) % (3 * heads) == 0 && bias.numel() == qkv.size(2),
              "_transform_bias_rescale_qkv: expected [N, L, 3 D], D divisible by ", heads,
              " heads, and a bias of 3 D, got ", qkv.sizes(), " and ", bias.sizes());
  const int64_t each = qkv.size(2) / (3 * heads);
  const auto parts = (qkv + bias)
                         .view({qkv.size(0), qkv.size(1), 3, heads, each})
                         .permute({2, 0, 3, 1, 4})
                         .contiguous()
                         .unbind(0);
  return {parts[0] / std::sqrt(static_cast<double>(each)), parts[1], parts[2]};
}

// The reserve is memory for cuDNN: empty here.
Four batch_norm_with_update(const Tensor& input, const MaybeTensor& weight, const MaybeTensor& bias,
                            Tensor& mean, Tensor& var, double momentum, double eps) {
  auto [out, save_mean, save_invstd] =
      at::_native_batch_norm_legit(input, weight, bias, mean, var, true, momentum, eps);
  return {out, save_mean, save_invstd, at::empty({0}, input.options().dtype(at::kByte))};
}

Three batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                          const MaybeTensor& mean, const MaybeTensor& var,
                          const MaybeTensor& save_mean, const MaybeTensor& save_invstd, bool update,
                          double eps, std::array<bool, 3> mask, const Tensor&) {
  return at::native_batch_norm_backward(grad, input, weight, mean, var, save_mean, save_invstd,
                                        update, eps, mask);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_native_multi_head_attention", TORCH_FN(multi_head_attention));
  m.impl("_transformer_encoder_layer_fwd", TORCH_FN(transformer_encoder_layer));
  m.impl("_masked_softmax", TORCH_FN(masked_softmax));
  m.impl("_masked_softmax_backward", TORCH_FN(masked_softmax_backward));
  m.impl("_transform_bias_rescale_qkv", TORCH_FN(transform_bias_rescale));
  m.impl("_batch_norm_with_update", TORCH_FN(batch_norm_with_update));
  m.impl("batch_norm_backward", TORCH_FN(batch_norm_backward));
}

}  // namespace torch_ocl
