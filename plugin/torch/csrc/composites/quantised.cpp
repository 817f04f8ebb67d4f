// Products with quantised weights: ATen's names for them, and the plugin's operators as
// torch.ops.ocl, for libraries' own formats (src/base/weight_formats.def).
#include <torch/csrc/autograd/custom_function.h>

#include "composite.h"
#include "operators/operator.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

PluginOperator plugin_mm("_ocl_quantised_mm.out"), plugin_dequantise("_ocl_dequantise.out");

// A weight of a call: its parts, its format, the elements that share a scale.
struct Weight {
  const Tensor& bytes;
  const MaybeTensor& scale;
  const MaybeTensor& zero;
  c10::string_view format;
  int64_t rows, group;
};

Tensor multiply(const Tensor& x, const Weight& w, const MaybeTensor& bias) {
  const BelowAutocast guard;
  return call_plugin<1>(plugin_mm, x, w.bytes, w.scale, w.zero, bias, w.format, w.rows, w.group)[0];
}

// ---- torch.ops.ocl
// x of any dimensions, of which the last one is summed over.
Tensor quantised_mm(const Tensor& x, const Tensor& weight, const MaybeTensor& scale,
                    const MaybeTensor& zero, const MaybeTensor& bias, c10::string_view format,
                    c10::SymInt rows, int64_t group) {
  TORCH_CHECK(x.dim() > 0, "quantised_mm: expected x of shape [..., K], got a number");
  const int64_t n = plain(rows);
  const Weight w{weight, scale, zero, format, n, group};
  if (x.dim() == 2) return multiply(x, w, bias);
  std::vector<int64_t> sizes = x.sizes().vec();
  const int64_t k = sizes.back();
  const int64_t m = c10::multiply_integers(sizes.begin(), sizes.end() - 1);
  sizes.back() = n;
  return multiply(x.reshape({m, k}), w, bias).view(sizes);
}
Tensor quantised_mm_meta(const Tensor& x, const Tensor&, const MaybeTensor&, const MaybeTensor&,
                         const MaybeTensor&, c10::string_view, c10::SymInt rows, int64_t) {
  TORCH_CHECK(x.dim() > 0, "quantised_mm: expected x of shape [..., K], got a number");
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  sizes.back() = std::move(rows);
  return x.new_empty_symint(sizes);
}

Tensor dequantise(const Tensor& weight, const MaybeTensor& scale, const MaybeTensor& zero,
                  const MaybeTensor& index, c10::string_view format, c10::SymIntArrayRef size,
                  at::ScalarType dtype, int64_t group) {
  const at::IntArrayRef sizes = C10_AS_INTARRAYREF_SLOW(size);
  const auto call = [&](const MaybeTensor& rows) {
    return call_plugin<1>(plugin_dequantise, weight, scale, zero, rows, format, sizes, dtype,
                          group)[0];
  };
  if (!index || index->dim() == 1) return call(index);
  std::vector<int64_t> found = index->sizes().vec();
  found.push_back(sizes.back());
  return call(index->reshape({-1})).view(found);
}
Tensor dequantise_meta(const Tensor& weight, const MaybeTensor&, const MaybeTensor&,
                       const MaybeTensor& index, c10::string_view, c10::SymIntArrayRef size,
                       at::ScalarType dtype, int64_t) {
  TORCH_CHECK(size.size() == 2, "dequantise: expected a size [N, K]");
  std::vector<c10::SymInt> sizes = size.vec();
  if (index) {
    sizes = index->sym_sizes().vec();
    sizes.push_back(size.back());
  }
  return weight.new_empty_symint(sizes, weight.options().dtype(dtype));
}

// ---- Gradients of x and bias: products with the weight's values. The other parts have none.
template <typename Function>
auto find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}
Tensor call_quantised_mm(const Tensor& x, const Tensor& weight, const MaybeTensor& scale,
                         const MaybeTensor& zero, const MaybeTensor& bias, c10::string_view format,
                         const c10::SymInt& rows, int64_t group) {
  static const auto op = find_operator<decltype(quantised_mm)>("ocl::quantised_mm");
  const at::AutoDispatchBelowADInplaceOrView below;
  return op.call(x, weight, scale, zero, bias, format, rows, group);
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct QuantisedProduct : torch::autograd::Function<QuantisedProduct> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x, const MaybeTensor& bias,
                        const Tensor& weight, const MaybeTensor& scale, const MaybeTensor& zero,
                        c10::string_view format, const c10::SymInt& rows, int64_t group) {
    ctx->save_for_backward({weight, scale.value_or(Tensor()), zero.value_or(Tensor())});
    ctx->saved_data["format"] = std::string(format);
    ctx->saved_data["group"] = group;
    ctx->saved_data["size"] = std::vector<c10::SymInt>{rows, x.sym_size(-1)};
    ctx->saved_data["has_bias"] = bias.has_value();
    return call_quantised_mm(x, weight, scale, zero, bias, format, rows, group);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    static const auto op = find_operator<decltype(dequantise)>("ocl::dequantise");
    const Tensor& grad = grads[0];
    const variable_list kept = ctx->get_saved_variables();
    const auto maybe = [](const Tensor& t) { return t.defined() ? MaybeTensor(t) : std::nullopt; };
    const auto size = ctx->saved_data["size"].toSymIntVector();
    const bool has_bias = ctx->saved_data["has_bias"].toBool();
    variable_list result(8);
    if (ctx->needs_input_grad(0))
      result[0] = grad.matmul(op.call(kept[0], maybe(kept[1]), maybe(kept[2]), std::nullopt,
                                      ctx->saved_data["format"].toStringRef(), size,
                                      grad.scalar_type(), ctx->saved_data["group"].toInt()));
    if (has_bias && ctx->needs_input_grad(1)) result[1] = grad.reshape_symint({-1, size[0]}).sum(0);
    return result;
  }
};

Tensor quantised_mm_with_gradients(const Tensor& x, const Tensor& weight, const MaybeTensor& scale,
                                   const MaybeTensor& zero, const MaybeTensor& bias,
                                   c10::string_view format, c10::SymInt rows, int64_t group) {
  const auto asks = [](const MaybeTensor& t) { return t.has_value() && t->requires_grad(); };
  if (at::GradMode::is_enabled()) {
    TORCH_CHECK(!asks(scale) && !asks(zero),
                "quantised_mm has no gradient of the weight's scales and zeros: detach them");
    if (x.requires_grad() || asks(bias))
      return QuantisedProduct::apply(x, bias, weight, scale, zero, format, rows, group);
  }
  return call_quantised_mm(x, weight, scale, zero, bias, format, rows, group);
}

// ---- ATen's names
Tensor weight_int8_mm(const Tensor& self, const Tensor& weight, const Tensor& scales) {
  TORCH_CHECK(self.dim() == 2 && weight.dim() == 2 && self.size(1) == weight.size(1),
              "_weight_int8pack_mm: expected matrices [M, K] and [N, K], got ", self.sizes(),
              " and ", weight.sizes());
  TORCH_CHECK(weight.scalar_type() == at::kChar, "_weight_int8pack_mm: expected an int8 weight");
  TORCH_CHECK(scales.dim() == 1 && scales.size(0) == weight.size(0),
              "_weight_int8pack_mm: expect scales to be 1d tensor with size ", weight.size(0));
  const MaybeTensor scale = scales.unsqueeze(1);
  return multiply(self, {weight, scale, {}, "int8", weight.size(0), 0}, {});
}

// q [N, K / 2], the even element of each pair in the high nibble, as tiles of 8 rows and `inner` *
// 16 columns (WeightLayout::Tiles).
Tensor pack_int4(const Tensor& q, int64_t inner) {
  TORCH_CHECK(q.dim() == 2 && q.scalar_type() == at::kByte,
              "_convert_weight_to_int4pack: expected a weight [N, K / 2] of uint8, got ",
              q.scalar_type(), " ", q.sizes());
  TORCH_CHECK(inner == 2 || inner == 4 || inner == 8,
              "_convert_weight_to_int4pack: innerKTiles need to be 2, 4, or 8, got ", inner);
  const int64_t n = q.size(0), k = 2 * q.size(1), columns = 16 * inner;
  TORCH_CHECK(n % 8 == 0, "_convert_weight_to_int4pack: expected N to be divisible by 8, got ", n);
  TORCH_CHECK(k % columns == 0,
              "_convert_weight_to_int4pack: expected K to be divisible by innerKTiles * 16 = ",
              columns, ", got ", k);
  const Tensor pairs = at::stack({q.bitwise_right_shift(4), q.bitwise_and(15)}, -1);
  const Tensor blocks = pairs.view({n / 8, 8, k / columns, inner / 2, 2, 16});
  const Tensor bytes = blocks.select(4, 0).bitwise_or(blocks.select(4, 1).bitwise_left_shift(4));
  return bytes.permute({0, 2, 1, 3, 4})
      .contiguous()
      .view({n / 8, k / columns, 64 * inner})
      .view(at::kInt)
      .view({n / 8, k / columns, 32, inner / 2});
}

void check_group(const char* name, const Tensor& x, int64_t group) {
  TORCH_CHECK(x.dim() == 2, name, ": expected a matrix [M, K], got ", x.sizes());
  TORCH_CHECK(group == 32 || group == 64 || group == 128 || group == 256, name,
              ": expected groups of 32, 64, 128 or 256, got ", group);
  TORCH_CHECK(x.size(1) % group == 0, name, ": groups of ", group,
              " do not divide K = ", x.size(1));
}
void check_parts(const char* name, const char* part, const Tensor& given, at::IntArrayRef sizes) {
  TORCH_CHECK(given.sizes() == sizes, name, ": expected ", part, " of shape ", sizes, ", got ",
              given.sizes());
}

Tensor weight_int4_mm(const Tensor& self, const Tensor& weight, int64_t group,
                      const Tensor& scale_and_zero) {
  constexpr const char* kName = "_weight_int4pack_mm";
  check_group(kName, self, group);
  TORCH_CHECK(weight.dim() == 4 && weight.scalar_type() == at::kInt, kName,
              ": expected a weight packed by _convert_weight_to_int4pack, got ",
              weight.scalar_type(), " ", weight.sizes());
  const int64_t n = 8 * weight.size(0);
  check_parts(kName, "scales and zeros", scale_and_zero, {self.size(1) / group, n, 2});
  const MaybeTensor scale = scale_and_zero.select(2, 0).t(), zero = scale_and_zero.select(2, 1).t();
  return multiply(self, {weight, scale, zero, "int4_tiles", n, group}, {});
}

// The weight is [N, K / 8], the low nibble of a byte first.
Tensor weight_int4_mm_apart(const Tensor& self, const Tensor& weight, int64_t group,
                            const Tensor& scales, const Tensor& zeros) {
  constexpr const char* kName = "_weight_int4pack_mm_with_scales_and_zeros";
  check_group(kName, self, group);
  TORCH_CHECK(weight.dim() == 2 && weight.scalar_type() == at::kInt, kName,
              ": expected a weight [N, K / 8] of int32, got ", weight.scalar_type(), " ",
              weight.sizes());
  const int64_t n = weight.size(0), groups = self.size(1) / group;
  check_parts(kName, "scales", scales, {groups, n});
  check_parts(kName, "zeros", zeros, {groups, n});
  const MaybeTensor scale = scales.t(), zero = zeros.t();
  return multiply(self, {weight, scale, zero, "int4", n, group}, {});
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(ocl, m) {
  m.def(
      "quantised_mm(Tensor x, Tensor weight, Tensor? scale, Tensor? zero, Tensor? bias, str "
      "format, "
      "SymInt rows, int group=0) -> Tensor");
  m.def(
      "dequantise(Tensor weight, Tensor? scale, Tensor? zero, Tensor? index, str format, SymInt[] "
      "size, "
      "ScalarType dtype, int group=0) -> Tensor");
}
TORCH_LIBRARY_IMPL(ocl, PrivateUse1, m) {
  m.impl("quantised_mm", TORCH_FN(quantised_mm));
  m.impl("dequantise", TORCH_FN(dequantise));
}
TORCH_LIBRARY_IMPL(ocl, AutogradPrivateUse1, m) {
  m.impl("quantised_mm", TORCH_FN(quantised_mm_with_gradients));
}
TORCH_LIBRARY_IMPL(ocl, Meta, m) {
  m.impl("quantised_mm", TORCH_FN(quantised_mm_meta));
  m.impl("dequantise", TORCH_FN(dequantise_meta));
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_weight_int8pack_mm", TORCH_FN(weight_int8_mm));
  m.impl("_convert_weight_to_int4pack", TORCH_FN(pack_int4));
  m.impl("_weight_int4pack_mm", TORCH_FN(weight_int4_mm));
  m.impl("_weight_int4pack_mm_with_scales_and_zeros", TORCH_FN(weight_int4_mm_apart));
}

}  // namespace torch_ocl
