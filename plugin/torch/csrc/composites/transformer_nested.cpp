// The fast path of nn.TransformerEncoder for padded sequences, which it packs into a nested tensor
// of the strided layout: a layer's work is done on padded rows, and what is padding is left out
// again. Padded positions of the encoder's result are zero, as on the CPU.
#include <ATen/NestedTensorImpl.h>
#include <ATen/native/nested/NestedTensorUtils.h>
#include <ATen/ops/_nested_tensor_from_mask_left_aligned_native.h>

#include <algorithm>

#include "composite.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

constexpr int64_t kPaddingMask = 1;  // the type of a mask [N, L]

// Sequences [*, D] one after another. The host knows their lengths.
class Packed {
 public:
  // `sizes`: [N, 2] on the CPU, the length and D of each.
  Packed(const Tensor& sizes, const Tensor& like) : sizes_(sizes.contiguous()) {
    const int64_t* size = sizes_.const_data_ptr<int64_t>();
    std::vector<int64_t> starts{0};
    for (int64_t n = 0; n < sizes_.size(0); ++n) {
      starts.push_back(starts.back() + size[2 * n]);
      longest_ = std::max(longest_, size[2 * n]);
    }
    all_ = starts.back();
    offsets_ = at::tensor(starts, at::kLong).to(like.device());
  }
  // [N, longest, D], zero behind each sequence.
  Tensor padded(const Tensor& rows) const {
    return at::_jagged_to_padded_dense_forward(rows, {offsets_}, {longest_}, 0);
  }
  // True behind each sequence: [N, longest].
  Tensor padding() const {
    return at::arange(longest_, offsets_.options()).ge(offsets_.diff().unsqueeze(1));
  }
  // The nested tensor of a padded one.
  Tensor nested(const Tensor& padded) const {
    const Tensor rows = at::_padded_dense_to_jagged_forward(padded, {offsets_}, all_);
    return at::native::wrap_buffer(rows.reshape({-1}), sizes_);
  }
  bool is_empty() const { return all_ == 0; }

 private:
  Tensor sizes_, offsets_;
  int64_t longest_ = 0, all_ = 0;
};

// The rows of a nested tensor [N, *, D], and how they are packed.
struct Rows {
  Tensor rows;
  Packed packed;
};
Rows rows_of_nested(const Tensor& nested, const char* name) {
  const Tensor dense = nested.contiguous();
  const Tensor sizes = at::native::get_nested_sizes(dense);
  TORCH_CHECK(sizes.dim() == 2 && sizes.size(1) == 2, name,
              ": expected a nested tensor of sequences [N, *, D]");
  const Tensor buffer = at::native::get_buffer(dense);
  const int64_t width = sizes.size(0) == 0 ? 1 : sizes[0][1].item<int64_t>();
  return {buffer.view({-1, std::max<int64_t>(width, 1)}), Packed(sizes, buffer)};
}

Tensor encoder_layer(const Tensor& src, int64_t embed_dim, int64_t heads, const Tensor& qkv_weight,
                     const Tensor& qkv_bias, const Tensor& proj_weight, const Tensor& proj_bias,
                     bool use_gelu, bool norm_first, double eps, const Tensor& norm_weight_1,
                     const Tensor& norm_bias_1, const Tensor& norm_weight_2,
                     const Tensor& norm_bias_2, const Tensor& ffn_weight_1,
                     const Tensor& ffn_bias_1, const Tensor& ffn_weight_2, const Tensor& ffn_bias_2,
                     const MaybeTensor& mask, std::optional<int64_t>) {
  TORCH_CHECK(!mask.has_value() || !mask->defined(),
              "src_key_padding_mask and src_mask are not supported for nested tensors, whose "
              "sequences have no padding");
  const Rows given = rows_of_nested(src, "_transformer_encoder_layer_fwd");
  if (given.packed.is_empty()) return src.clone();
  return given.packed.nested(at::_transformer_encoder_layer_fwd(
      given.packed.padded(given.rows), embed_dim, heads, qkv_weight, qkv_bias, proj_weight,
      proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2,
      ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, given.packed.padding(), kPaddingMask));
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& input, at::IntArrayRef normalized,
                                              const MaybeTensor& weight, const MaybeTensor& bias,
                                              double eps) {
  const Rows given = rows_of_nested(input, "native_layer_norm");
  auto [out, mean, rstd] = at::native_layer_norm(given.rows, normalized, weight, bias, eps);
  return {at::native::wrap_buffer(out.reshape({-1}), at::native::get_nested_sizes(input)), mean,
          rstd};
}

// nn.TransformerEncoder packs sequences by these. The host reads their lengths.
bool may_nest(const Tensor& padded, const Tensor& mask) {
  return at::native::NestedTensor_nested_tensor_from_mask_left_aligned(padded, mask);
}
Tensor nest(const Tensor& padded, const Tensor& mask, bool check) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "Expected mask to be of ScalarType Bool, but got ",
              mask.scalar_type(), " instead.");
  TORCH_CHECK(mask.dim() == 2, "Padding mask should be 2D");
  TORCH_CHECK(padded.dim() == 3, "Input should be a 3D tensor, N * L * D");
  TORCH_CHECK(padded.size(0) == mask.size(0) && padded.size(1) == mask.size(1),
              "Mask size should match input size");
  TORCH_CHECK(!check || may_nest(padded, mask), "Mask must be left-aligned without gaps");
  const Tensor lengths = mask.sum(1).cpu();
  return Packed(at::stack({lengths, at::full_like(lengths, padded.size(2))}, 1), padded)
      .nested(padded);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(may_nest));
  m.impl("_nested_tensor_from_mask", TORCH_FN(nest));
}

TORCH_LIBRARY_IMPL(aten, NestedTensorPrivateUse1, m) {
  m.impl("_transformer_encoder_layer_fwd", TORCH_FN(encoder_layer));
  m.impl("native_layer_norm", TORCH_FN(layer_norm));
}

}  // namespace torch_ocl
