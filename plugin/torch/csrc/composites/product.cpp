// Matrix products with another result type than that of the factors, with scales, and of groups.
#include <ATen/native/GroupedMMUtils.h>

#include "composite.h"
#include "operators/operator.h"

namespace torch_ocl {
namespace {

using at::Scalar;
using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

// ---- mm.dtype and its relatives: factors of 16 bits, a float32 result; what is added has the type
// of the factors, or that of the result
void check_type(const Tensor& factor, at::ScalarType type) {
  const bool narrow = factor.scalar_type() == at::kHalf || factor.scalar_type() == at::kBFloat16;
  TORCH_CHECK(type == factor.scalar_type() || (type == at::kFloat && narrow),
              "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
}

PluginOperator plugin_mm_as("mm.dtype_out"), plugin_bmm_as("bmm.dtype_out"),
    plugin_addmm_as("addmm.dtype_out"), plugin_baddbmm_as("baddbmm.dtype_out");
Tensor mm_as(const Tensor& self, const Tensor& other, at::ScalarType type) {
  const BelowAutocast guard;
  check_type(self, type);
  return call_plugin<1>(plugin_mm_as, self, other, type)[0];
}
Tensor bmm_as(const Tensor& self, const Tensor& other, at::ScalarType type) {
  const BelowAutocast guard;
  check_type(self, type);
  return call_plugin<1>(plugin_bmm_as, self, other, type)[0];
}
Tensor addmm_as(const Tensor& self, const Tensor& a, const Tensor& b, at::ScalarType type,
                const Scalar& beta, const Scalar& alpha) {
  const BelowAutocast guard;
  check_type(a, type);
  return call_plugin<1>(plugin_addmm_as, self, a, b, type, beta, alpha)[0];
}
Tensor baddbmm_as(const Tensor& self, const Tensor& a, const Tensor& b, at::ScalarType type,
                  const Scalar& beta, const Scalar& alpha) {
  const BelowAutocast guard;
  check_type(a, type);
  return call_plugin<1>(plugin_baddbmm_as, self, a, b, type, beta, alpha)[0];
}
Tensor& mm_as_out(const Tensor& self, const Tensor& other, at::ScalarType type, Tensor& out) {
  return deliver(out, mm_as(self, other, type));
}
Tensor& bmm_as_out(const Tensor& self, const Tensor& other, at::ScalarType type, Tensor& out) {
  return deliver(out, bmm_as(self, other, type));
}
Tensor& addmm_as_out(const Tensor& self, const Tensor& a, const Tensor& b, at::ScalarType type,
                     const Scalar& beta, const Scalar& alpha, Tensor& out) {
  return deliver(out, addmm_as(self, a, b, type, beta, alpha));
}
Tensor& baddbmm_as_out(const Tensor& self, const Tensor& a, const Tensor& b, at::ScalarType type,
                       const Scalar& beta, const Scalar& alpha, Tensor& out) {
  return deliver(out, baddbmm_as(self, a, b, type, beta, alpha));
}

// ---- integers of 8 bits
// The plugin multiplies int8. uint8 is that and 128 more.
constexpr int64_t kShift = 128;
Tensor as_signed(const Tensor& bytes) {
  return bytes.scalar_type() == at::kByte ? bytes.bitwise_xor(kShift).view(at::kChar) : bytes;
}

PluginOperator plugin_int_mm("_int_mm.out");
Tensor product_of_bytes(const Tensor& self, const Tensor& other) {
  const bool shift_a = self.scalar_type() == at::kByte, shift_b = other.scalar_type() == at::kByte;
  const Tensor a = as_signed(self), b = as_signed(other);
  Tensor sum = call_plugin<1>(plugin_int_mm, a, b)[0];
  if (shift_a) sum.add_(b.sum(0, true, at::kInt), kShift);
  if (shift_b) sum.add_(a.sum(1, true, at::kInt), kShift);
  if (shift_a && shift_b) sum.add_(kShift * kShift * a.size(1));
  return sum;
}

Tensor int_mm(const Tensor& self, const Tensor& other) {
  const auto is_byte = [](const Tensor& t) {
    return t.scalar_type() == at::kChar || t.scalar_type() == at::kByte;
  };
  TORCH_CHECK(self.dim() == 2, "Expected self to be of dimension 2 but got ", self.dim());
  TORCH_CHECK(other.dim() == 2, "Expected mat2 to be of dimension 2 but got ", other.dim());
  TORCH_CHECK(self.size(1) == other.size(0), "self.size(1) needs to match mat2.size(0) but got ",
              self.size(1), " and ", other.size(0));
  TORCH_CHECK(is_byte(self), "Expected self dtype to be int8 or uint8 but got ",
              self.scalar_type());
  TORCH_CHECK(is_byte(other), "Expected mat2 dtype to be int8 or uint8 but got ",
              other.scalar_type());
  return product_of_bytes(self, other);
}

// ---- products of groups, whose parts of a dimension stand on the device (every mixture of
// experts)
PluginOperator plugin_grouped_mm("_ocl_grouped_mm.out");
Tensor grouped_mm(const Tensor& self, const Tensor& mat2, const MaybeTensor& offs,
                  const MaybeTensor& bias, std::optional<at::ScalarType> type) {
  const BelowAutocast guard;
  at::native::_grouped_mm_validate_inputs(self, mat2, offs, bias, type);
  type = at::native::_resolve_grouped_mm_out_dtype(self, mat2, type);
  Tensor out = at::native::create_grouped_gemm_output_tensor(self, mat2, offs, *type);
  if (!offs.has_value()) return at::bmm_out(out, self, mat2);
  Arguments in;
  in.add(self);
  in.add(mat2);
  in.add(*offs);
  try {
    plugin_grouped_mm.run_out(in, std::span(&out, 1));
  } catch (const Declined& declined) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "ocl: _grouped_mm: ", declined.what());
  }
  return out;
}

// result[s] = the sum over t of coefficients[s, t] input[t]
Tensor linear_combination(const Tensor& input, const Tensor& coefficients) {
  const BelowAutocast guard;
  TORCH_CHECK(input.dim() > 0 && input.numel() > 0 && coefficients.dim() == 2 &&
                  coefficients.size(1) == input.size(0),
              "_compute_linear_combination: input of size ", input.sizes(),
              " and coefficients of size ", coefficients.sizes(), " do not fit together");
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes[0] = coefficients.size(0);
  return at::mm(coefficients, input.reshape({input.size(0), -1})).view(sizes);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("mm.dtype", TORCH_FN(mm_as));
  m.impl("mm.dtype_out", TORCH_FN(mm_as_out));
  m.impl("bmm.dtype", TORCH_FN(bmm_as));
  m.impl("bmm.dtype_out", TORCH_FN(bmm_as_out));
  m.impl("addmm.dtype", TORCH_FN(addmm_as));
  m.impl("addmm.dtype_out", TORCH_FN(addmm_as_out));
  m.impl("baddbmm.dtype", TORCH_FN(baddbmm_as));
  m.impl("baddbmm.dtype_out", TORCH_FN(baddbmm_as_out));
  m.impl("_int_mm", TORCH_FN(int_mm));
  register_out<int_mm>(m, "_int_mm.out");
  m.impl("_grouped_mm", TORCH_FN(grouped_mm));
  m.impl("_compute_linear_combination", TORCH_FN(linear_combination));
  register_out<linear_combination>(m, "_compute_linear_combination.out");
}

}  // namespace torch_ocl
