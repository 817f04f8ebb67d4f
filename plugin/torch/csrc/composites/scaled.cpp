// Products of float8 factors with scales: for each factor one of all numbers, of each row (column
// of the second factor), or of blocks of 128 (of e8m0's scales 32) along the sum.
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
Tensor spread(Tensor scale, int64_t rows, int64_t columns, int64_t block = kBlock) {
  if (scale.size(1) != columns) {
    scale = scale.unsqueeze(2).expand({-1, -1, block}).reshape({scale.size(0), -1});
    scale = scale.narrow(1, 0, columns);
  }
  if (scale.size(0) == rows) return scale;
  scale = scale.unsqueeze(1).expand({-1, block, -1}).reshape({-1, columns});
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
  const char* format = b.scalar_type() == at::kFloat8_e4m3fn ? "e4m3"
                       : b.scalar_type() == at::kFloat8_e5m2 ? "e5m2"
                                                             : nullptr;
  if (m <= kMostRows && k > 0 && format != nullptr && b.t().is_contiguous()) {
    const MaybeTensor scale = right.t(), none;
    return call_plugin<1>(plugin_quantised, a.to(at::kFloat).mul_(left), b.t(), scale, none, none,
                          c10::string_view(format), n, int64_t{0})[0];
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

// Scales of MX formats: powers of 2 for 32 neighbours along the sum.
constexpr int64_t kMxBlock = 32;

// Scales [rows, blocks] of a factor, as numbers. Swizzled ones come in tiles of 128 rows and 4
// blocks, whose rows 32 apart are neighbours: SWIZZLE_32_4_4 (cuBLAS, "1D block scaling factors
// layout").
Tensor mx_scales(const Tensor& given, int64_t rows, int64_t blocks, bool swizzled, char name) {
  const int64_t tall = (rows + 127) / 128, wide = (blocks + 3) / 4;
  const int64_t wanted = swizzled ? tall * 128 * wide * 4 : rows * blocks;
  TORCH_CHECK_VALUE(given.scalar_type() == at::kFloat8_e8m0fnu && given.numel() == wanted,
                    "scaled_mm: scale_", name, " of blocks of 32 must have ", wanted,
                    " elements of Float8_e8m0fnu, got ", given.numel(), " of ",
                    given.scalar_type());
  TORCH_CHECK_VALUE(
      swizzled || given.dim() != 2 || given.sizes() == at::IntArrayRef({rows, blocks}),
      "scaled_mm: scale_", name, " of blocks of 32 must be [", rows, ", ", blocks, "], got ",
      given.sizes());
  const Tensor scale = given.to(at::kFloat);
  if (!swizzled) return scale.reshape({rows, blocks});
  const Tensor tiles = scale.reshape({tall, wide, 32, 4, 4}).permute({0, 3, 2, 1, 4});
  return tiles.reshape({tall * 128, wide * 4}).narrow(0, 0, rows).narrow(1, 0, blocks);
}

Tensor mx_scaled_mm(const Tensor& a, const Tensor& b, const Tensor& scale_a, bool swizzled_a,
                    const Tensor& scale_b, bool swizzled_b, const MaybeTensor& bias,
                    MaybeType out_dtype) {
  const BelowAutocast guard;
  const Tensor one = at::ones({1}, scale_a.options().dtype(at::kFloat));
  check(a, b, one, one, bias, out_dtype);
  const int64_t m = a.size(0), n = b.size(1), k = a.size(1), blocks = (k + kMxBlock - 1) / kMxBlock;
  const Tensor left = mx_scales(scale_a, m, blocks, swizzled_a, 'a');
  const Tensor right = mx_scales(scale_b, n, blocks, swizzled_b, 'b');
  Tensor result = at::mm(a.to(at::kFloat).mul_(spread(left, m, k, kMxBlock)),
                         b.to(at::kFloat).mul_(spread(right, n, k, kMxBlock).t()));
  if (bias) result.add_(bias->reshape({-1}));
  return result.to(out_dtype.value_or(a.scalar_type()));
}

// In place of shapes recipes say how scales are meant. Scales of a second factor's rows are a
// column or a row; of its columns' blocks [N, K / 128], as of the first factor's; of square blocks
// [K / 128, N / 128], padded along K to a multiple of 4.
Tensor scaled_mm_v2(const Tensor& self, const Tensor& mat2, at::TensorList scale_a,
                    at::IntArrayRef recipe_a, at::IntArrayRef swizzle_a, at::TensorList scale_b,
                    at::IntArrayRef recipe_b, at::IntArrayRef swizzle_b, const MaybeTensor& bias,
                    MaybeType out_dtype, at::IntArrayRef contraction_dim, bool use_fast_accum) {
  using at::blas::ScalingType;
  const auto are = [&](ScalingType a, ScalingType b) {
    return recipe_a == at::IntArrayRef{static_cast<int64_t>(a)} &&
           recipe_b == at::IntArrayRef{static_cast<int64_t>(b)};
  };
  const auto is = [&](ScalingType type) { return are(type, type); };
  const auto is_plain = [](at::IntArrayRef swizzle) {
    return std::all_of(swizzle.begin(), swizzle.end(), [](int64_t s) { return s == 0; });
  };
  constexpr auto kLine = ScalingType::BlockWise1x128, kSquare = ScalingType::BlockWise128x128;
  const bool mx = is(ScalingType::BlockWise1x32);
  const bool blocks = is(kLine) || are(kLine, kSquare) || are(kSquare, kLine);
  const bool plain = is_plain(swizzle_a) && is_plain(swizzle_b);
  TORCH_CHECK_NOT_IMPLEMENTED(
      (mx || ((is(ScalingType::TensorWise) || is(ScalingType::RowWise) || blocks) && plain)) &&
          contraction_dim.empty(),
      "ocl: scaled_mm knows scales of tensors, of rows, and of blocks of 1x32, 1x128 and 128x128, "
      "of which those of 1x32 alone may be swizzled, got recipes ",
      recipe_a, " and ", recipe_b, ", swizzles ", swizzle_a, " and ", swizzle_b);
  TORCH_CHECK_VALUE(scale_a.size() == 1 && scale_b.size() == 1,
                    "scaled_mm: expected a scale for each factor, got ", scale_a.size(), " and ",
                    scale_b.size());
  Tensor left = scale_a[0], right = scale_b[0];
  if (mx)
    return mx_scaled_mm(self, mat2, left, !is_plain(swizzle_a), right, !is_plain(swizzle_b), bias,
                        out_dtype);
  if (blocks && self.dim() == 2 && left.dim() == 2 && right.dim() == 2) {
    const int64_t along = blocks_of(self.size(1));
    const auto cut = [&](const Tensor& t) { return t.size(0) > along ? t.narrow(0, 0, along) : t; };
    if (are(kSquare, kLine)) left = cut(left).t();
    right = are(kLine, kSquare) ? cut(right) : right.t();
  }
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
