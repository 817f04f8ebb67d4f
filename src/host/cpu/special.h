// The functions that pointwise.def calls special::*: the short ones here, with an overload for
// integers where ATen has one; the mathematical ones in special_math.cpp and special_bessel.cpp.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "ocltensor/dtype.h"
#include "ocltensor/error.h"

namespace ocltensor::cpu {

inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The finite range of a call's result type.
struct Limits {
  double lowest;
  double highest;
};

namespace special {

// ---- special_math.cpp: each has its source at the definition
double log1p_minus(double x);
double lgamma(double x);
double digamma(double x);
double polygamma(double n, double x);
double zeta(double s, double q);
double erfinv(double x);
double ndtri(double p);
double erfcx(double x);
double log_ndtr(double x);
double i0(double x);
double i0e(double x);
double i1(double x);
double i1e(double x);
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double igamma(double a, double x);
double igammac(double a, double x);
double nextafter(double a, double b, DType type);
double round_decimals(double a, double decimals);

// ---- special_draws.cpp
double standard_gamma_grad(double a, double x);
double dirichlet_grad(double x, double a, double total);

// ---- special_bessel.cpp
double bessel_k(int order, double x);
double scaled_bessel_k(int order, double x);  // times exp(x)
double airy_ai(double x);
double spherical_bessel_j0(double x);
double chebyshev(char kind, double x, double degree);  // kind: t, u, v or w
double hermite(double x, double n, DType type);
double hermite_he(double x, double n, DType type);
double laguerre(double x, double n);
double legendre(double x, double n);

// ---- signs and rounding
inline double sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }
inline int64_t sign(int64_t a) { return (a > 0) - (a < 0); }
inline bool signbit(double a) { return std::signbit(a); }
inline bool signbit(int64_t a) { return a < 0; }
inline bool is_infinite(double a) { return std::isinf(a); }
inline bool is_infinite(int64_t) { return false; }
inline double ceil(double a) { return std::ceil(a); }
inline int64_t ceil(int64_t a) { return a; }
inline double floor(double a) { return std::floor(a); }
inline int64_t floor(int64_t a) { return a; }
inline double trunc(double a) { return std::trunc(a); }
inline int64_t trunc(int64_t a) { return a; }
inline double round_even(double a) { return std::nearbyint(a); }
inline int64_t round_even(int64_t a) { return a; }
// An option that is NaN was not given.
inline double nan_to_num(double a, double nan, double positive, double negative, Limits limits) {
  if (a != a) return nan != nan ? 0 : nan;
  if (a == kInfinity) return positive != positive ? limits.highest : positive;
  if (a == -kInfinity) return negative != negative ? limits.lowest : negative;
  return a;
}
inline int64_t nan_to_num(int64_t a, int64_t, int64_t, int64_t, Limits) { return a; }

// ---- division with Python's rules; an integer divided by 0 is an error, as in ATen
inline void check_divisor(int64_t b) { check(b != 0, "ZeroDivisionError: integer division by 0"); }
inline double divide_trunc(double a, double b) { return std::trunc(a / b); }
inline int64_t divide_trunc(int64_t a, int64_t b) {
  check_divisor(b);
  return b == -1 ? -a : a / b;
}
inline double divide_floor(double a, double b) {
  if (b == 0) return a / b;
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}
inline int64_t divide_floor(int64_t a, int64_t b) {
  check_divisor(b);
  if (b == -1) return -a;
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
inline double remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
inline int64_t remainder(int64_t a, int64_t b) {
  check_divisor(b);
  const int64_t rest = b == -1 ? 0 : a % b;
  return rest != 0 && (b < 0) != (rest < 0) ? rest + b : rest;
}
inline double fmod(double a, double b) { return std::fmod(a, b); }
inline int64_t fmod(int64_t a, int64_t b) {
  check_divisor(b);
  return b == -1 ? 0 : a % b;
}
inline int64_t gcd(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = b == -1 ? 0 : a % b;
    a = b;
    b = rest;
  }
  return a < 0 ? -a : a;
}
inline int64_t lcm(int64_t a, int64_t b) {
  const int64_t g = gcd(a, b);
  const int64_t product = g == 0 ? 0 : a / g * b;
  return product < 0 ? -product : product;
}

// ---- powers and shifts
inline double pow(double a, double b) { return std::pow(a, b); }
inline int64_t pow(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 == 0 ? 1 : -1) : 0;
  int64_t result = 1;
  for (; b != 0; b >>= 1, a *= a)
    if (b & 1) result *= a;
  return result;
}
inline int64_t shift_left(int64_t a, int64_t b) {
  return b < 0 || b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
inline int64_t shift_right(int64_t a, int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

// ---- comparison: maximum and minimum propagate NaN, fmax and fmin ignore it
template <typename T>
T maximum(T a, T b) {
  return a != a ? a : b != b ? b : a > b ? a : b;
}
template <typename T>
T minimum(T a, T b) {
  return a != a ? a : b != b ? b : a < b ? a : b;
}
template <typename T>
T fmax(T a, T b) {
  return a != a ? b : b != b ? a : a > b ? a : b;
}
template <typename T>
T fmin(T a, T b) {
  return a != a ? b : b != b ? a : a < b ? a : b;
}
template <typename T>
T clamp(T a, T low, T high) {
  return minimum(maximum(a, low), high);
}

// ---- logarithms
inline double xlogy(double a, double b) { return b != b ? b : a == 0 ? 0 : a * std::log(b); }
inline double xlog1py(double a, double b) { return b != b ? b : a == 0 ? 0 : a * std::log1p(b); }
inline double logaddexp(double a, double b) {
  if (std::isinf(a) && a == b) return a;
  return maximum(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
}
inline double logaddexp2(double a, double b) {
  constexpr double kInverseLn2 = 1.4426950408889634074;
  if (std::isinf(a) && a == b) return a;
  return maximum(a, b) + std::log1p(std::exp2(-std::fabs(a - b))) * kInverseLn2;
}
inline double logit(double a, double eps) {
  const double z = eps != eps ? a : a < eps ? eps : a > 1 - eps ? 1 - eps : a;
  return std::log(z / (1 - z));
}
inline double logit_backward(double gradient, double a, double eps) {
  if (eps == eps) return a < eps || a > 1 - eps ? 0 : gradient / (a * (1 - a));
  if (a < 0 || a > 1) return kNan;
  return a == 0 || a == 1 ? gradient * kInfinity : gradient / (a * (1 - a));
}

// ---- interpolation and activations
inline double lerp(double a, double b, double weight) {
  return std::fabs(weight) < 0.5 ? a + weight * (b - a) : b - (b - a) * (1 - weight);
}
inline double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }
inline double softplus(double a) {
  return a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a));
}
inline double log_sigmoid(double a) {
  return (a < 0 ? a : 0) - std::log1p(std::exp(-std::fabs(a)));
}
inline double elu(double a, double alpha, double scale, double input_scale) {
  return a <= 0 ? std::expm1(a * input_scale) * alpha * scale : a * scale;
}
inline double elu_backward(double gradient, double a, double alpha, double scale,
                           double input_scale, double is_result) {
  if (!(a <= 0)) return gradient * scale;
  const double slope = alpha * scale;
  return gradient * input_scale * (is_result != 0 ? a + slope : slope * std::exp(a * input_scale));
}
inline double gelu(double a) {
  return a == -kInfinity ? kNan : 0.5 * a * std::erfc(-a * 0.70710678118654752440);
}
inline double gelu_derivative(double a) {
  return 0.5 * std::erfc(-a * 0.70710678118654752440) +
         a * std::exp(-0.5 * a * a) * 0.39894228040143267794;
}
constexpr double kGeluBeta = 0.79788456080286535588;  // sqrt(2 / pi)
constexpr double kGeluKappa = 0.044715;
inline double gelu_tanh(double a) {
  return 0.5 * a * (1 + std::tanh(kGeluBeta * (a + kGeluKappa * a * a * a)));
}
inline double gelu_tanh_derivative(double a) {
  const double t = std::tanh(kGeluBeta * (a + kGeluKappa * a * a * a));
  return 0.5 * (1 + t) + 0.5 * a * (1 - t * t) * kGeluBeta * (1 + 3 * kGeluKappa * a * a);
}
inline double silu_derivative(double a) {
  const double s = sigmoid(a);
  return s * (1 + a * (1 - s));
}
inline double mish_derivative(double a) {
  const double t = std::tanh(softplus(a));
  return t + a * sigmoid(a) * (1 - t * t);
}

}  // namespace special
}  // namespace ocltensor::cpu
