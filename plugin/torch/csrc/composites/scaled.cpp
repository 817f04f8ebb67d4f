// Products of float8 factors with scales: for each factor one of all numbers, of each row (column
// of the second factor), or of blocks of 128 along the sum.
#include <ATen/BlasBackend.h>

#include "composite.h"
#include "operators/operator.h"

namespace torch_ocl {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using MaybeType = std::optional<at::ScalarType>;

constexpr int64_t kBlock = 128;
constexpr int64_t kMostRows = 8;  // of a first factor with which kernels read the second as it is

int64_t blocks_of(int64_t size) { return (size + kBlock - 1) / kBlock; }

enum class Scaling { Wrong, Whole, Rows, Blocks };
Scaling scaling_of(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b) {
  const auto is_float8 = [](const Tensor& t) {
    return at::isFloat8Type(t.scalar_type()) && t.scalar_type() != at::kFloat8_e8m0fnu;
  };
  if (!is_float8(a) || !is_float8(b) || scale_a.scalar_type() != at::kFloat ||
      scale_b.scalar_type() != at::kFloat)
    return Scaling::Wrong;
  if (scale_a.numel() == 1 && scale_b.numel() == 1) return Scaling::Whole;
  const int64_t m = a.size(0), n = b.size(1), blocks = blocks_of(a.size(1));
  const auto of_a = [&](int64_t rows, int64_t columns) {
    return scale_a.sizes() == at::IntArrayRef{rows, columns};
  };
  const auto of_b = [&](int64_t rows, int64_t columns) {
    return scale_b.sizes() == at::IntArrayRef{rows, columns};
  };
  if (of_a(m, 1) && of_b(1, n)) return Scaling::Rows;
  const bool a_by_rows = of_a(m, blocks), b_by_columns = of_b(blocks, n);
  const bool a_by_tiles = of_a(blocks_of(m), blocks), b_by_tiles = of_b(blocks, blocks_of(n));
  const bool known = (a_by_rows && (b_by_columns || b_by_tiles)) || (a_by_tiles && b_by_columns);
  return known ? Scaling::Blocks : Scaling::Wrong;
}

// Raises ATen's errors, in the words that it has for the CPU.
Scaling check(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b,
              const MaybeTensor& bias, const MaybeType& type) {
  TORCH_CHECK(a.dim() == 2, "mat1 must be a matrix");
  TORCH_CHECK(b.dim() == 2, "mat2 must be a matrix");
  TORCH_CHECK(a.size(1) == b.size(0), "mat_a and mat_b shapes cannot be multiplied (", a.size(0),
              "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  const Scaling scaling = scaling_of(a, b, scale_a, scale_b);
  const int64_t m = a.size(0), n = b.size(1), blocks = blocks_of(a.size(1));
  TORCH_CHECK_VALUE(
      scaling != Scaling::Wrong,
      "Invalid scaling configuration.\n- For TensorWise scaling, a and b should be float8, scales "
      "should be float and singletons.\n- For RowWise scaling, a and b should be float8, scales "
      "should be float, scale_a should be (",
      m, ", 1) and scale_b should be (1, ", n,
      ").\n- For blocks of 128, a and b should be float8, scales should be float, scale_a should "
      "be (",
      m, ", ", blocks, ") and scale_b (", blocks, ", ", n, ") or (", blocks, ", ", blocks_of(n),
      "), or scale_a (", blocks_of(m), ", ", blocks, ") and scale_b (", blocks, ", ", n,
      ").\nGot mat_a.dtype()=", a.scalar_type(), ", mat_b.dtype()=", b.scalar_type(),
      ", scale_a.dtype()=", scale_a.scalar_type(), ", scale_a.size()=", scale_a.sizes(),
      ", scale_b.dtype()=", scale_b.scalar_type(), ", scale_b.size()=", scale_b.sizes());
  TORCH_CHECK(!bias || bias->numel() == n, "Bias must be size ", n, " but got ", bias->numel());
  const auto is_known = [](at::ScalarType t) {
    return t == at::kFloat || t == at::kHalf || t == at::kBFloat16 || at::isFloat8Type(t);
  };
  TORCH_CHECK_NOT_IMPLEMENTED(!type || is_known(*type), "ocl: _scaled_mm with results of ", *type);
  return scaling;
}

// A scale for each number of a factor [rows, columns].
Tensor spread(Tensor scale, int64_t rows, int64_t columns) {
  if (scale.size(1) != columns) {
    scale = scale.unsqueeze(2).expand({-1, -1, kBlock}).reshape({scale.size(0), -1});
    scale = scale.narrow(1, 0, columns);
  }
  if (scale.size(0) == rows) return scale;
  scale = scale.unsqueeze(1).expand({-1, kBlock, -1}).reshape({-1, columns});
  return scale.narrow(0, 0, rows);
}

PluginOperator plugin_quantised("_ocl_quantised_mm.out");

// Float sums of the scaled products. Float8 numbers are exact in float16, and so are their products
// in a float; scales of blocks are multiplied with the factors, as floats.
Tensor sums(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b,
            Scaling scaling) {
  const int64_t m = a.size(0), n = b.size(1), k = a.size(1);
  if (scaling == Scaling::Blocks)
    return at::mm(a.to(at::kFloat).mul_(spread(scale_a, m, k)),
                  b.to(at::kFloat).mul_(spread(scale_b, k, n)));
  const bool whole = scaling == Scaling::Whole;
  const Tensor left = whole ? scale_a.reshape({1, 1}) : scale_a;
  const Tensor right = whole ? scale_b.reshape({1, 1}) : scale_b;
  if (m <= kMostRows && k > 0 && b.scalar_type() == at::kFloat8_e4m3fn && b.t().is_contiguous()) {
    const MaybeTensor scale = right.t(), none;
    return call_plugin<1>(plugin_quantised, a.to(at::kFloat).mul_(left), b.t(), scale, none, none,
                          c10::string_view("e4m3"), n, int64_t{0})[0];
  }
  return at::mm(a.to(at::kHalf), b.to(at::kHalf), at::kFloat).mul_(left).mul_(right);
}

Tensor scaled_mm(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                 const Tensor& scale_b, const MaybeTensor& bias, const MaybeTensor& scale_result,
                 MaybeType out_dtype, bool /*use_fast_accum*/) {
  const BelowAutocast guard;
  const Scaling scaling = check(self, mat2, scale_a, scale_b, bias, out_dtype);
  const at::ScalarType type = out_dtype.value_or(self.scalar_type());
  Tensor result = sums(self, mat2, scale_a, scale_b, scaling);
  if (bias) result.add_(bias->reshape({-1}));
  if (scale_result && at::isFloat8Type(type)) result.mul_(*scale_result);
  return result.to(type);
}

// In place of shapes recipes say how scales are meant. Scales of a second factor's rows are a
// column or a row.
Tensor scaled_mm_v2(const Tensor& self, const Tensor& mat2, at::TensorList scale_a,
                    at::IntArrayRef recipe_a, at::IntArrayRef swizzle_a, at::TensorList scale_b,
                    at::IntArrayRef recipe_b, at::IntArrayRef swizzle_b, const MaybeTensor& bias,
                    MaybeType out_dtype, at::IntArrayRef contraction_dim, bool use_fast_accum) {
  using at::blas::ScalingType;
  const auto is = [&](ScalingType type) {
    const auto number = static_cast<int64_t>(type);
    return recipe_a == at::IntArrayRef{number} && recipe_b == at::IntArrayRef{number};
  };
  const auto is_plain = [](at::IntArrayRef swizzle) {
    return std::all_of(swizzle.begin(), swizzle.end(), [](int64_t s) { return s == 0; });
  };
  TORCH_CHECK_NOT_IMPLEMENTED(
      (is(ScalingType::TensorWise) || is(ScalingType::RowWise)) && is_plain(swizzle_a) &&
          is_plain(swizzle_b) && contraction_dim.empty(),
      "ocl: scaled_mm knows scales of tensors and of rows, not swizzled, got recipes ", recipe_a,
      " and ", recipe_b, ", swizzles ", swizzle_a, " and ", swizzle_b);
  TORCH_CHECK_VALUE(scale_a.size() == 1 && scale_b.size() == 1,
                    "scaled_mm: expected a scale for each factor, got ", scale_a.size(), " and ",
                    scale_b.size());
  Tensor left = scale_a[0], right = scale_b[0];
  if (is(ScalingType::RowWise)) {
    if (left.numel() == self.size(0)) left = left.reshape({-1, 1});
    if (right.numel() == mat2.size(-1)) right = right.reshape({1, -1});
  }
  return scaled_mm(self, mat2, left, right, bias, {}, out_dtype, use_fast_accum);
}

// Results have the type of `out`, which is rounded to once.
void take_type(MaybeType& type, const Tensor& out) {
  TORCH_CHECK(!type || *type == out.scalar_type(), "out_dtype must match output matrix type");
  type = out.scalar_type();
}
Tensor& scaled_mm_out(const Tensor& self, const Tensor& mat2, const Tensor& scale_a,
                      const Tensor& scale_b, const MaybeTensor& bias,
                      const MaybeTensor& scale_result, MaybeType out_dtype, bool use_fast_accum,
                      Tensor& out) {
  take_type(out_dtype, out);
  return deliver(
      out, scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum));
}
Tensor& scaled_mm_v2_out(const Tensor& self, const Tensor& mat2, at::TensorList scale_a,
                         at::IntArrayRef recipe_a, at::IntArrayRef swizzle_a,
                         at::TensorList scale_b, at::IntArrayRef recipe_b,
                         at::IntArrayRef swizzle_b, const MaybeTensor& bias, MaybeType out_dtype,
                         at::IntArrayRef contraction_dim, bool use_fast_accum, Tensor& out) {
  take_type(out_dtype, out);
  return deliver(out, scaled_mm_v2(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b,
                                   swizzle_b, bias, out_dtype, contraction_dim, use_fast_accum));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_scaled_mm", TORCH_FN(scaled_mm));
  m.impl("_scaled_mm.out", TORCH_FN(scaled_mm_out));
  m.impl("_scaled_mm_v2", TORCH_FN(scaled_mm_v2));
  m.impl("_scaled_mm_v2.out", TORCH_FN(scaled_mm_v2_out));
}

}  // namespace torch_ocl
