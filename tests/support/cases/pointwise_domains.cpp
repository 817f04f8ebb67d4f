// The domain table of the pointwise operators. k is in units of eps of the compute type.
//
// OpenCL C (specification, "Relative error as ULPs") guarantees per function, full profile: acos 4,
// acosh 4, asin 4, atan 5, atan2 6, atanh 5, cos 4, cosh 4, erf 16, erfc 16, exp 3, exp2 3, expm1
// 3, hypot 4, log 3, log10 3, log1p 2, log2 3, pow 16, rsqrt 2, sin 4, sinh 4, sqrt 3, tan 5, tanh
// 5, division 2.5. One ulp is at most eps * |x|. Rows give these figures where a function is called
// once.
#include "pointwise_domains.h"

namespace ocltensor::testing {
namespace {

constexpr const char* kUlps = "accuracy that OpenCL C guarantees for the function";
constexpr const char* kZeros = "zeros that arguments cannot resolve: absolute accuracy near them";
constexpr const char* kSeries = "a series or rational approximation of some tens of operations";
constexpr const char* kCancel = "a short formula whose terms cancel";
constexpr const char* kLinear = "one rounding per operation, terms may cancel";

constexpr Tolerance ulps(double k) { return {Scale::Result, k, 1, 1, nullptr, kUlps}; }
constexpr Tolerance unit(double k, const char* why = kZeros) {
  return {Scale::Unit, k, 1, 1, nullptr, why};
}
constexpr Tolerance series(double k) { return {Scale::Result, k, 1, 1, nullptr, kSeries}; }
constexpr Tolerance inputs(double k, int degree = 1) {
  return {Scale::Inputs, k, 1, degree, nullptr, kCancel};
}
constexpr Tolerance linear(const char* op) { return {Scale::Absolute, 3, 1, 1, op, kLinear}; }
constexpr Tolerance kExactly = {Scale::Exact, 0, 1, 1, nullptr, kWhyExact};
constexpr Tolerance kBitwise = {Scale::Bits, 0, 1, 1, nullptr, kWhyExact};

constexpr Domain real(double low, double high) { return {low, high, 0, true, false}; }
// Small multiples of 1/4, so that quotients and remainders are exact and ties occur.
constexpr Domain kGrid = {-8, 8, 0.25, true, false};
constexpr Domain kTies = {-3, 3, 0.5, true, true};
constexpr Domain kWild = {-100, 100, 0.5, true, true};
constexpr Domain kNonZero = {1, 12, 0.25, false, false};
constexpr Domain kAround = {-4, 4, 0, true, false};
// Factors of a product of three: of a denormal a number's share may be zero, and a quotient by it
// infinite, in float32 alone; beside an infinity that is NaN.
constexpr Domain factor(double low, double high) {
  return {low, high, 0, true, false, true, true, false};
}
// No special values: ATen's own vector and scalar loops disagree on them (NaN in the operand that
// decides a branch), or on the boundaries.
constexpr Domain plain(double low, double high) { return {low, high, 0, false, false}; }
// Degrees of polynomials, which are truncated. Integers become floating-point, with limits of
// +-1.5.
constexpr Domain kDegrees = {-2, 12, 0.25, false, false};
// Each of up to 12 steps adds two roundings, of numbers up to twice the largest result.
constexpr Tolerance kRecurrence = {
    Scale::FromOne, 64, 1, 1, nullptr, "a recurrence of up to 12 steps that starts at 1"};
// Gradients: an infinite one may meet a slope that is 0 in float and tiny in double, so it has a
// row of its own, where slopes are large enough.
constexpr Domain finite(double low, double high) { return {low, high, 0, true, false, false}; }

const PointwiseDomain kRows[] = {
    {"acos", real(-1, 1), {}, ulps(4)},
    {"asin", real(-1, 1), {}, ulps(4)},
    {"atan", real(-20, 20), {}, ulps(5)},
    {"acosh", real(1, 50), {}, ulps(4)},
    {"asinh", real(-50, 50), {}, ulps(4)},
    {"atanh", real(-1, 1), {}, ulps(5)},
    {"cos", real(-20, 20), {}, ulps(4)},
    {"sin", real(-20, 20), {}, ulps(4)},
    {"tan", real(-20, 20), {}, ulps(5)},
    {"cosh", real(-9, 9), {}, ulps(4)},
    {"sinh", real(-9, 9), {}, ulps(4)},
    {"tanh", real(-9, 9), {}, ulps(5)},
    {"digamma", real(0.1, 20), {}, unit(32)},
    {"lgamma", real(0.05, 30), {}, unit(32)},
    {"polygamma", real(0.5, 10), {}, unit(128)},
    {"erf", real(-4, 4), {}, ulps(16)},
    {"erfc", real(-4, 4), {}, ulps(16)},
    {"erfinv", real(-1, 1), {}, series(64)},
    {"exp", real(-10, 10), {}, ulps(3)},
    {"exp2", real(-10, 10), {}, ulps(3)},
    {"expm1", real(-10, 10), {}, ulps(3)},
    {"i0", real(-10, 10), {}, series(64)},
    {"special_i0e", real(-10, 10), {}, series(64)},
    {"special_i1", real(-10, 10), {}, series(64)},
    {"special_i1e", real(-10, 10), {}, series(64)},
    {"log", real(0.001, 100), {}, ulps(3)},
    {"log2", real(0.001, 100), {}, ulps(3)},
    {"log10", real(0.001, 100), {}, ulps(3)},
    {"log1p", real(-0.9, 20), {}, ulps(2)},
    {"reciprocal", real(-8, 8), {}, ulps(3)},
    {"rsqrt", real(0.001, 100), {}, ulps(4)},
    {"sqrt", real(0, 100), {}, ulps(3)},
    {"sigmoid", real(-15, 15), {}, series(8)},
    {"sinc", real(-5, 5), {}, unit(24)},
    {"special_ndtri", real(0.01, 0.99), {}, unit(64)},
    {"special_log_ndtr", real(-8, 6), {}, series(128)},
    {"special_erfcx", real(-4, 10), {}, series(128)},
    {"special_entr", real(0, 10), {}, unit(8)},
    {"special_bessel_j0", real(-30, 30), {}, unit(64)},
    {"special_bessel_j1", real(-30, 30), {}, unit(64)},
    {"special_bessel_y0", real(0.1, 30), {}, unit(64)},
    {"special_bessel_y1", real(0.1, 30), {}, unit(64)},
    {"special_modified_bessel_i0", real(-10, 10), {}, series(64)},
    {"special_modified_bessel_i1", real(-10, 10), {}, series(64)},
    {"special_modified_bessel_k0", real(0, 20), {}, series(128)},
    {"special_modified_bessel_k1", real(0, 20), {}, series(128)},
    {"special_scaled_modified_bessel_k0", real(0, 60), {}, series(128)},
    {"special_scaled_modified_bessel_k1", real(0, 60), {}, series(128)},
    {"special_airy_ai", real(-20, 8), {}, unit(128)},
    {"special_spherical_bessel_j0", real(-20, 20), {}, unit(8)},
    {"special_chebyshev_polynomial_t", plain(-1.5, 1.5), kDegrees, kRecurrence},
    {"special_chebyshev_polynomial_u", plain(-1.5, 1.5), kDegrees, kRecurrence},
    {"special_chebyshev_polynomial_v", plain(-1.5, 1.5), kDegrees, kRecurrence},
    {"special_chebyshev_polynomial_w", plain(-1.5, 1.5), kDegrees, kRecurrence},
    {"special_shifted_chebyshev_polynomial_t", plain(-0.25, 1.25), kDegrees, kRecurrence},
    {"special_shifted_chebyshev_polynomial_u", plain(-0.25, 1.25), kDegrees, kRecurrence},
    {"special_shifted_chebyshev_polynomial_v", plain(-0.25, 1.25), kDegrees, kRecurrence},
    {"special_shifted_chebyshev_polynomial_w", plain(-0.25, 1.25), kDegrees, kRecurrence},
    {"special_hermite_polynomial_h", plain(-1.5, 1.5), kDegrees, kRecurrence},
    {"special_hermite_polynomial_he", plain(-1.5, 1.5), kDegrees, kRecurrence},
    {"special_laguerre_polynomial_l", plain(-1.5, 1.5), kDegrees, kRecurrence},
    {"special_legendre_polynomial_p", plain(-1.5, 1.5), kDegrees, kRecurrence},
    {"special_zeta", plain(1.2, 10), plain(0.2, 10), series(256)},
    {"igamma", plain(0.1, 10), plain(0.01, 12), unit(256)},
    {"igammac", plain(0.1, 10), plain(0.01, 12), unit(256)},
    {"_standard_gamma_grad", plain(0.1, 10), plain(0.01, 12), series(256)},
    {"_dirichlet_grad", plain(0.01, 0.99), plain(0.1, 4), series(256)},
    {"logit", real(0.01, 0.99), {}, unit(16)},
    {"logit_backward", kAround, plain(0.05, 0.95), series(32)},
    {"xlogy", kAround, real(0.05, 10), unit(16)},
    {"special_xlog1py", kAround, real(-0.9, 10), unit(16)},
    {"logaddexp", real(-10, 10), real(-10, 10), inputs(4)},
    {"logaddexp2", real(-10, 10), real(-10, 10), inputs(4)},
    {"pow", {0.125, 4, 0, true, false}, {-3, 3, 0.5, true, false}, ulps(16)},
    {"atan2", kAround, kAround, ulps(6)},
    {"hypot", kAround, kAround, ulps(4)},
    {"copysign", kAround, kAround, kBitwise},
    {"nextafter", kTies, kTies, kBitwise},
    {"heaviside", kTies, kTies, kExactly},
    {"gcd", {-60, 60}, {-60, 60}, kExactly},
    {"lcm", {-11, 11}, {-11, 11}, kExactly},
    {"div", kGrid, kNonZero, ulps(3)},
    {"floor_divide", kGrid, kNonZero, kExactly},
    {"remainder", kGrid, kNonZero, kExactly},
    {"fmod", kGrid, kNonZero, kExactly},
    {"add", kWild, kWild, linear("add.out")},
    {"sub", kWild, kWild, linear("add.out")},
    {"rsub", kWild, kWild, linear("add.out")},
    {"mul", kAround, kAround, ulps(1)},
    {"addcmul", kAround, factor(-4, 4), linear(nullptr)},
    {"addcdiv", kAround, factor(0.25, 4), linear(nullptr)},
    {"lerp", kAround, kAround, inputs(4, 2)},
    {"frac", real(-50, 50), {}, kExactly},
    {"round", kGrid, {}, kExactly},
    {"eq", kTies, kTies, kExactly},
    {"ne", kTies, kTies, kExactly},
    {"lt", kTies, kTies, kExactly},
    {"le", kTies, kTies, kExactly},
    {"gt", kTies, kTies, kExactly},
    {"ge", kTies, kTies, kExactly},
    {"maximum", kTies, kTies, kExactly},
    {"minimum", kTies, kTies, kExactly},
    {"fmax", kTies, kTies, kExactly},
    {"fmin", kTies, kTies, kExactly},
    {"logical_and", kTies, kTies, kExactly},
    {"logical_or", kTies, kTies, kExactly},
    {"logical_xor", kTies, kTies, kExactly},
    {"logical_not", kTies, {}, kExactly},
    {"isnan", kTies, {}, kExactly},
    {"isposinf", kTies, {}, kExactly},
    {"isneginf", kTies, {}, kExactly},
    {"signbit", kTies, {}, kExactly},
    {"sign", kTies, {}, kExactly},
    {"sgn", kTies, {}, kExactly},
    {"abs", kWild, {}, kBitwise},
    {"neg", kWild, {}, kBitwise},
    {"ceil", kGrid, {}, kExactly},
    {"floor", kGrid, {}, kExactly},
    {"trunc", kGrid, {}, kExactly},
    {"relu", kWild, {}, kExactly},
    {"nan_to_num", kWild, {}, kExactly},
    {"where", kWild, kWild, kBitwise},
    {"masked_fill", kWild, kWild, kBitwise},
    {"clamp", kTies, kTies, kExactly},
    {"clamp_min", kTies, kTies, kExactly},
    {"clamp_max", kTies, kTies, kExactly},
    {"bitwise_and", {-120, 250, 0, false, true}, {-120, 250, 0, false, true}, kExactly},
    {"bitwise_or", {-120, 250, 0, false, true}, {-120, 250, 0, false, true}, kExactly},
    {"bitwise_xor", {-120, 250, 0, false, true}, {-120, 250, 0, false, true}, kExactly},
    {"bitwise_not", {-120, 250, 0, false, true}, {}, kExactly},
    {"bitwise_left_shift", {-100, 100}, {0, 7}, kExactly},
    {"bitwise_right_shift", {-100, 100}, {0, 7}, kExactly},
    {"hardshrink", kGrid, {}, kExactly},
    {"softshrink", kGrid, {}, kExactly},
    {"hardshrink_backward", kGrid, plain(-6, 6), kExactly},
    {"softshrink_backward", kGrid, plain(-6, 6), kExactly},
    {"threshold", kTies, {}, kExactly},
    {"threshold_backward", kTies, kTies, kExactly},
    {"hardtanh", kTies, {}, kExactly},
    {"hardtanh_backward", kGrid, plain(-6, 6), kExactly},
    {"leaky_relu", kGrid, {}, ulps(1)},
    {"leaky_relu_backward", kGrid, kGrid, ulps(1)},
    {"_prelu_kernel", kGrid, kAround, ulps(1)},
    {"gelu", real(-6, 6), {}, inputs(8)},
    {"gelu_backward", finite(-3, 3), real(-6, 6), inputs(8, 2)},
    {"gelu_backward", real(-3, 3), real(-3, 6), inputs(8, 2)},
    {"silu", real(-15, 15), {}, series(8)},
    {"silu_backward", finite(-3, 3), real(-9, 9), inputs(8, 2)},
    {"silu_backward", real(-3, 3), real(-5, 9), inputs(8, 2)},
    {"mish", real(-9, 9), {}, inputs(16)},
    {"mish_backward", finite(-3, 3), real(-9, 9), inputs(16, 2)},
    {"mish_backward", real(-3, 3), real(-5, 9), inputs(16, 2)},
    {"softplus", real(-9, 9), {}, inputs(8)},
    {"softplus_backward", real(-3, 3), real(-9, 9), inputs(8)},
    {"log_sigmoid", real(-15, 15), {}, inputs(8)},
    {"log_sigmoid_backward", real(-3, 3), real(-9, 9), inputs(8)},
    {"elu", real(-9, 9), {}, inputs(8)},
    {"elu_backward", real(-3, 3), plain(-1, 4), inputs(8, 2)},
    {"hardsigmoid", real(-5, 5), {}, inputs(4)},
    {"hardsigmoid_backward", kGrid, plain(-6, 6), ulps(4)},
    {"hardswish", real(-5, 5), {}, inputs(4)},
    {"hardswish_backward", kGrid, plain(-6, 6), inputs(4, 2)},
    {"sigmoid_backward", real(-3, 3), real(0, 1), inputs(4, 2)},
    {"tanh_backward", real(-3, 3), real(-1, 1), inputs(4, 2)},
};

}  // namespace

const PointwiseDomain* find_pointwise_domain(std::string_view name, Rng& rng) {
  const PointwiseDomain* found = nullptr;
  int count = 0;
  for (const PointwiseDomain& row : kRows)
    if (row.name == name && (++count == 1 || rng.chance(1.0 / count))) found = &row;
  return found;
}

}  // namespace ocltensor::testing
