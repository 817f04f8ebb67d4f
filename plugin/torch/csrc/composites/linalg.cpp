// Dense linear algebra: the plugin's factorisations with ATen's checks of their results, and
// operators composed of them.
#include <ATen/ScalarOps.h>
#include <ATen/native/LinearAlgebraUtils.h>

#include <algorithm>
#include <cmath>

#include "composite.h"
#include "operators/register_kernels.h"

namespace torch_ocl {
namespace {

using at::Tensor;
namespace ops = at::_ops;

PluginOperator plugin_cholesky("linalg_cholesky_ex.L");
PluginOperator plugin_lu_factor("linalg_lu_factor_ex.out");
PluginOperator plugin_solve("_linalg_solve_ex.result");
PluginOperator plugin_inverse("linalg_inv_ex.inverse");
PluginOperator plugin_triangular("linalg_solve_triangular.out");
PluginOperator plugin_geqrf("geqrf.a");
PluginOperator plugin_product("linalg_householder_product.out");

// Column-major, which is LAPACK's layout and that of ATen's results.
Tensor column_major(const Tensor& matrices) { return matrices.mT().contiguous().mT(); }

// ---- factorisations that report failures in `info`, which is read only if the caller asks for it

std::tuple<Tensor&, Tensor&> cholesky_ex_out(const Tensor& self, bool upper, bool check_errors,
                                             Tensor& l, Tensor& info) {
  Out<ops::linalg_cholesky_ex_L, plugin_cholesky>::call(self, upper, check_errors, l, info);
  if (check_errors) at::_linalg_check_errors(info, "linalg.cholesky_ex", self.dim() == 2);
  return {l, info};
}
std::tuple<Tensor&, Tensor&, Tensor&> lu_factor_ex_out(const Tensor& a, bool pivot,
                                                       bool check_errors, Tensor& lu,
                                                       Tensor& pivots, Tensor& info) {
  Out<ops::linalg_lu_factor_ex_out, plugin_lu_factor>::call(a, pivot, check_errors, lu, pivots,
                                                            info);
  if (check_errors) at::_linalg_check_errors(info, "torch.linalg.lu_factor_ex", a.dim() == 2);
  return {lu, pivots, info};
}
std::tuple<Tensor&, Tensor&> inv_ex_out(const Tensor& a, bool check_errors, Tensor& inverse,
                                        Tensor& info) {
  Out<ops::linalg_inv_ex_inverse, plugin_inverse>::call(a, check_errors, inverse, info);
  if (check_errors) at::_linalg_check_errors(info, "linalg.inv_ex", a.dim() == 2);
  return {inverse, info};
}

// ATen's text is made from numbers of the host: one copy instead of a reduction and a copy.
void check_errors_on_host(const Tensor& info, c10::string_view name, bool is_matrix) {
  at::_linalg_check_errors(info.cpu(), name, is_matrix);
}
std::tuple<Tensor, Tensor, Tensor, Tensor> solve_ex(const Tensor& a, const Tensor& b, bool left,
                                                    bool check_errors) {
  const char* const name = "linalg.solve";
  const bool is_vector = at::native::linalg_solve_is_vector_rhs(a, b);
  const Tensor columns = is_vector ? b.unsqueeze(-1) : b;
  at::native::checkFloatingOrComplex(a, name);
  at::native::checkInputsSolver(a, columns, left, name);
  TORCH_CHECK(a.scalar_type() == b.scalar_type(), name,
              ": Expected A and B to have the same dtype, but found A of type ", a.scalar_type(),
              " and B of type ", b.scalar_type(), " instead");
  TORCH_CHECK(
      left || !is_vector, name,
      ": Vector broadcasting of the left hand side is not supported for left=False. In this "
      "case linalg.solve is equivalent to B / A.squeeze(-1)");
  (void)at::native::_linalg_broadcast_batch_dims(columns, a);  // for its error
  auto [x, lu, pivots, info] =
      Functional<ops::_linalg_solve_ex, plugin_solve>::call(a, columns, left, check_errors);
  if (check_errors) at::_linalg_check_errors(info, "torch.linalg.solve_ex", a.dim() == 2);
  if (is_vector) x = x.squeeze(-1);
  return {is_vector && x.dim() > 1 ? column_major(x) : x, lu, pivots, info};
}
std::tuple<Tensor&, Tensor&, Tensor&, Tensor&> solve_ex_out(const Tensor& a, const Tensor& b,
                                                            bool left, bool check_errors, Tensor& x,
                                                            Tensor& lu, Tensor& pivots,
                                                            Tensor& info) {
  const auto made = solve_ex(a, b, left, check_errors);
  return {deliver(x, std::get<0>(made)), deliver(lu, std::get<1>(made)),
          deliver(pivots, std::get<2>(made)), deliver(info, std::get<3>(made))};
}

// ---- kernels that ATen registers for the CPU, but that run on any device, as they only call other
// operators

constexpr c10::DispatchKeySet kAnyDevice{c10::DispatchKey::CPU};
constexpr auto kSame = at::ScalarType::Undefined;
constexpr auto kReal = at::ScalarType::Half;  // stands for the real type of a complex one

// Calls ATen's out form with new results to resize, because it would replace given ones whose
// strides differ by memory of the CPU. `types` are the types of the results; kSame is that of the
// first argument, kReal that of its parts.
template <typename OutOp, typename Signature, at::ScalarType... types>
struct Made;
template <typename OutOp, typename R, typename... A, at::ScalarType... types>
struct Made<OutOp, R(const Tensor&, A...), types...> {
  static R call(const Tensor& a, A... args) {
    const auto type = [&](at::ScalarType wanted) {
      if (wanted == kSame) return a.scalar_type();
      return wanted == kReal ? c10::toRealValueType(a.scalar_type()) : wanted;
    };
    R results{at::empty({0}, a.options().dtype(type(types)))...};
    std::apply([&](auto&... out) { OutOp::redispatch(kAnyDevice, a, args..., out...); }, results);
    return results;
  }
  template <typename... O>
  static std::tuple<O&...> call_out(const Tensor& a, A... args, O&... outs) {
    R results = call(a, args...);
    std::apply([&](auto&... result) { (deliver(outs, result), ...); }, results);
    return {outs...};
  }
};
// The out form: its last parameters are references, as many as there are results.
template <typename Kernel, typename Signature>
struct MadeOut;
template <typename Kernel, typename R, typename... A>
struct MadeOut<Kernel, R(A...)> {
  static R call(A... args) { return Kernel::call_out(args...); }
};

template <typename Op, typename OutOp, at::ScalarType... types>
void register_made(torch::Library& library) {
  using Kernel = Made<OutOp, typename Op::schema, types...>;
  register_kernel<Op, Kernel>(library);
  register_kernel<OutOp, MadeOut<Kernel, typename OutOp::schema>>(library);
}

// ---- triangular solves

void check_solver(const Tensor& a, const Tensor& b, bool left) {
  at::native::checkInputsSolver(a, b, left, "linalg.solve_triangular");
  TORCH_CHECK(a.scalar_type() == b.scalar_type(),
              "linalg.solve_triangular: Expected A and B to have the same dtype, but got ",
              a.scalar_type(), " and ", b.scalar_type());
}
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  check_solver(a, b, left);
  return Functional<ops::linalg_solve_triangular, plugin_triangular>::call(a, b, upper, left, unit);
}
Tensor& solve_triangular_out(const Tensor& a, const Tensor& b, bool upper, bool left, bool unit,
                             Tensor& out) {
  check_solver(a, b, left);
  return Out<ops::linalg_solve_triangular_out, plugin_triangular>::call(a, b, upper, left, unit,
                                                                        out);
}
std::tuple<Tensor&, Tensor&> triangular_solve_out(const Tensor& self, const Tensor& a, bool upper,
                                                  bool transpose, bool unit, Tensor& x, Tensor& m) {
  const auto [right, coefficients] =
      at::native::_linalg_broadcast_batch_dims(self, a, "triangular_solve");
  const Tensor solution = at::linalg_solve_triangular(transpose ? coefficients.mT() : coefficients,
                                                      right, upper != transpose, true, unit);
  return {deliver(x, solution), deliver(m, coefficients)};
}

// ---- Cholesky

Tensor cholesky(const Tensor& self, bool upper) {
  if (self.numel() == 0) return at::empty_like(self, at::MemoryFormat::Contiguous);
  at::native::squareCheckInputs(self, "cholesky");
  const auto [factor, info] = at::linalg_cholesky_ex(self, upper);
  at::_linalg_check_errors(info, "cholesky", self.dim() == 2);
  return factor;
}
Tensor cholesky_solve_helper(const Tensor& self, const Tensor& a, bool upper) {
  const Tensor first = at::linalg_solve_triangular(upper ? a.mH() : a, self, false);
  return at::linalg_solve_triangular(upper ? a : a.mH(), first, true);
}
Tensor cholesky_inverse(const Tensor& self, bool upper) {
  at::native::squareCheckInputs(self, "cholesky_inverse");
  const Tensor zeros = self.diagonal(0, -2, -1).eq(0).to(at::kInt);
  if (self.numel() > 0) {
    const Tensor info = zeros.argmax(-1).add_(1).mul_(zeros.amax(-1)).to(at::kInt);
    at::_linalg_check_errors(info, "cholesky_inverse", self.dim() == 2);
  }
  const Tensor identity = at::eye(self.size(-1), self.options()).expand_as(self);
  return cholesky_solve_helper(identity, self, upper);
}

// ---- QR

void check_reflectors(const Tensor& input, const Tensor& tau) {
  const char* const name = "torch.linalg.householder_product: ";
  TORCH_CHECK(input.dim() >= 2, name, "input must have at least 2 dimensions.");
  TORCH_CHECK(input.size(-2) >= input.size(-1), name,
              "input.shape[-2] must be greater than or equal to input.shape[-1]");
  TORCH_CHECK(input.size(-1) >= tau.size(-1), name,
              "input.shape[-1] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(input.dim() - tau.dim() == 1, name,
              "Expected tau to have one dimension less than input, but got tau.ndim equal to ",
              tau.dim(), " and input.ndim is equal to ", input.dim());
  const auto batch = input.sizes().slice(0, input.dim() - 2);
  const auto tau_batch = tau.sizes().slice(0, tau.dim() - 1);
  TORCH_CHECK(batch == tau_batch, name,
              "Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
              tau_batch);
  TORCH_CHECK(tau.scalar_type() == input.scalar_type(), name, "tau dtype ", tau.scalar_type(),
              " does not match input dtype ", input.scalar_type());
}
Tensor householder_product(const Tensor& input, const Tensor& tau) {
  check_reflectors(input, tau);
  return Functional<ops::linalg_householder_product, plugin_product>::call(input, tau);
}
Tensor& householder_product_out(const Tensor& input, const Tensor& tau, Tensor& out) {
  check_reflectors(input, tau);
  return Out<ops::linalg_householder_product_out, plugin_product>::call(input, tau, out);
}

// Multiplies by the whole square matrix that the reflectors represent.
Tensor ormqr(const Tensor& input, const Tensor& tau, const Tensor& other, bool left,
             bool transpose) {
  const char* const name = "torch.ormqr: ";
  TORCH_CHECK(input.dim() >= 2, name, "input must have at least 2 dimensions.");
  TORCH_CHECK(other.dim() >= 2, name, "other must have at least 2 dimensions.");
  const int64_t size = other.size(left ? -2 : -1);
  const int64_t count = tau.size(-1);
  TORCH_CHECK(size >= count, name, "other.shape[", left ? -2 : -1,
              "] must be greater than or equal to tau.shape[-1]");
  TORCH_CHECK(size == input.size(-2), name, "other.shape[", left ? -2 : -1,
              "] must be equal to input.shape[-2]");
  TORCH_CHECK(tau.size(-1) <= input.size(-1), name,
              "tau.shape[-1] must be less than or equal to input.shape[-1]");
  TORCH_CHECK(input.dim() - tau.dim() == 1, name,
              "Expected tau to have one dimension less than input, but got tau.ndim equal to ",
              tau.dim(), " and input.ndim is equal to ", input.dim());
  TORCH_CHECK(input.dim() == other.dim(), name,
              "Expected other to have the same number of dimensions as input, but got other.ndim "
              "equal to ",
              other.dim(), " and input.ndim is equal to ", input.dim());
  const auto batch = input.sizes().slice(0, input.dim() - 2);
  const auto tau_batch = tau.sizes().slice(0, tau.dim() - 1);
  TORCH_CHECK(batch == tau_batch, name,
              "Expected batch dimensions of tau to be equal to input.shape[:-2], but got ",
              tau_batch);
  const auto other_batch = other.sizes().slice(0, other.dim() - 2);
  TORCH_CHECK(batch == other_batch, name,
              "Expected batch dimensions of other to be equal to input.shape[:-2], but got ",
              other_batch);
  TORCH_CHECK(tau.scalar_type() == input.scalar_type(), name,
              "Expected input and tau to have the same dtype, but input has dtype ",
              input.scalar_type(), " and tau has dtype ", tau.scalar_type());
  TORCH_CHECK(other.scalar_type() == input.scalar_type(), name,
              "Expected input and other to have the same dtype, but input has dtype ",
              input.scalar_type(), " and other has dtype ", other.scalar_type());
  const BelowAutocast guard;
  const Tensor padded = at::constant_pad_nd(input.narrow(-1, 0, count), {0, size - count});
  const Tensor q = at::linalg_householder_product(padded, tau);
  const Tensor used = transpose ? q.mH() : q;
  return column_major(left ? used.matmul(other) : other.matmul(used));
}

// ---- the exponential: a Taylor polynomial of the scaled matrix, squared as often as the matrix
// was halved

// The polynomial of degree 18 takes seven products: three blocks of six powers. The largest norms
// for which it is as accurate as the type: Bader, Blanes and Casas, "Computing the matrix
// exponential with an optimized Taylor polynomial approximation", 2019, table 1.
constexpr double kNormFloat = 3.01;
constexpr double kNormDouble = 1.09;
// The polynomial of matrices [count, n, n] times `factor`. The powers are stored next to each
// other, so that one product computes all blocks.
Tensor taylor(const Tensor& a, const Tensor& factor) {
  constexpr int kBlock = 6;
  constexpr int kBlocks = 3;
  const int64_t count = a.size(0), n = a.size(-1);
  const Tensor powers = at::empty({kBlock + 1, count, n, n}, a.options());
  Tensor identity = powers[0][0];
  at::eye_out(identity, n, n);
  if (count > 1) powers[0].narrow(0, 1, count - 1).copy_(identity.expand({count - 1, n, n}));
  Tensor first = powers[1];
  at::mul_out(first, a, factor);
  for (int i = 2; i <= kBlock; ++i) {
    Tensor power = powers[i];
    at::bmm_out(power, powers[(i + 1) / 2], powers[i / 2]);
  }
  std::vector<double> weights(static_cast<size_t>(kBlocks * (kBlock + 1)));
  double weight = 1;
  for (int i = 0; i <= kBlock * kBlocks; weight /= ++i) {
    const int block = std::min(i / kBlock, kBlocks - 1);
    weights[static_cast<size_t>(block * (kBlock + 1) + i - block * kBlock)] = weight;
  }
  const Tensor factors = at::tensor(weights, at::TensorOptions().dtype(a.scalar_type()))
                             .view({kBlocks, kBlock + 1})
                             .to(a.device());
  const Tensor blocks = factors.mm(powers.view({kBlock + 1, -1})).view({kBlocks, count, n, n});
  Tensor sum = blocks[kBlocks - 1];
  for (int block = kBlocks - 2; block >= 0; --block)
    sum = at::baddbmm(blocks[block], sum, powers[kBlock]);
  return sum;
}

// How often each matrix has to be halved; the host reads their norms for this.
std::vector<double> halvings_of(const Tensor& a) {
  const Tensor norms = at::linalg_vector_norm(a, 1, -2).amax(-1).cpu().to(at::kDouble);
  const double least =
      c10::toRealValueType(a.scalar_type()) == at::kDouble ? kNormDouble : kNormFloat;
  std::vector<double> halvings;
  for (int64_t i = 0; i < norms.numel(); ++i) {
    const double norm = norms.const_data_ptr<double>()[i];
    halvings.push_back(std::isfinite(norm) && norm > least ? std::ceil(std::log2(norm / least))
                                                           : 0);
  }
  return halvings;
}

Tensor matrix_exp(const Tensor& self) {
  at::native::squareCheckInputs(self, "linalg.matrix_exp");
  at::native::checkFloatingOrComplex(self, "linalg.matrix_exp");
  if (self.numel() == 0) return at::empty_like(self, at::MemoryFormat::Contiguous);
  if (self.size(-1) == 1) return self.exp();
  const BelowAutocast guard;
  const bool narrow = self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16;
  const Tensor a =
      (narrow ? self.to(at::kFloat) : self).reshape({-1, self.size(-2), self.size(-1)});
  const std::vector<double> halvings = halvings_of(a);
  const auto [least, most] = std::ranges::minmax(halvings);
  Tensor result, each;
  if (least == most) {
    result = taylor(a, at::native::wrapped_scalar_tensor(std::exp2(-most)));
  } else {
    each = at::tensor(halvings, at::TensorOptions().dtype(c10::toRealValueType(a.scalar_type())))
               .view({-1, 1, 1})
               .to(a.device());
    result = taylor(a, each.neg().exp2_());
  }
  for (double i = 0; i < most; ++i) {
    const Tensor square = result.bmm(result);
    result = i < least ? square : at::where(each.gt(i), square, result);
  }
  return result.view(self.sizes()).to(self.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("linalg_cholesky_ex.L", TORCH_FN(cholesky_ex_out));
  m.impl("linalg_lu_factor_ex.out", TORCH_FN(lu_factor_ex_out));
  m.impl("linalg_inv_ex.inverse", TORCH_FN(inv_ex_out));
  register_made<ops::_linalg_det, ops::_linalg_det_result, kSame, kSame, at::kInt>(m);
  register_made<ops::_linalg_slogdet, ops::_linalg_slogdet_sign, kSame, kReal, kSame, at::kInt>(m);
  m.impl("_linalg_check_errors", TORCH_FN(check_errors_on_host));
  m.impl("_linalg_solve_ex", TORCH_FN(solve_ex));
  m.impl("_linalg_solve_ex.result", TORCH_FN(solve_ex_out));
  register_made<ops::linalg_lu, ops::linalg_lu_out, kSame, kSame, kSame>(m);
  m.impl("linalg_solve_triangular", TORCH_FN(solve_triangular));
  m.impl("linalg_solve_triangular.out", TORCH_FN(solve_triangular_out));
  m.impl("triangular_solve.X", TORCH_FN(triangular_solve_out));
  m.impl("cholesky", TORCH_FN(cholesky));
  register_out<cholesky>(m, "cholesky.out");
  m.impl("cholesky_inverse", TORCH_FN(cholesky_inverse));
  register_out<cholesky_inverse>(m, "cholesky_inverse.out");
  m.impl("_cholesky_solve_helper", TORCH_FN(cholesky_solve_helper));
  register_kernel<ops::geqrf, Functional<ops::geqrf, plugin_geqrf>>(m);
  register_kernel<ops::geqrf_a, Out<ops::geqrf_a, plugin_geqrf>>(m);
  m.impl("linalg_householder_product", TORCH_FN(householder_product));
  m.impl("linalg_householder_product.out", TORCH_FN(householder_product_out));
  m.impl("ormqr", TORCH_FN(ormqr));
  register_out<ormqr>(m, "ormqr.out");
  m.impl("linalg_matrix_exp", TORCH_FN(matrix_exp));
}

}  // namespace torch_ocl
