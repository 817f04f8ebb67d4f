// Special functions in double precision. "A&S" is Abramowitz and Stegun, Handbook of Mathematical
// Functions; "DLMF" is the NIST Digital Library of Mathematical Functions.
#include <cmath>

#include "special.h"

namespace ocltensor::cpu::special {
namespace {

// B(2k) / (2k)! for k = 1..12 (A&S table 23.2), for Euler-Maclaurin sums.
constexpr double kBernoulliOverFactorial[] = {
    8.3333333333333333e-02,  -1.3888888888888889e-03, 3.3068783068783069e-05,
    -8.2671957671957672e-07, 2.0876756987868099e-08,  -5.2841901386874932e-10,
    1.3382536530684679e-11,  -3.3896802963225829e-13, 8.5860620562778446e-15,
    -2.1748686985580619e-16, 5.5090028283602295e-18,  -1.3954464685812523e-19};

// exp(-|x|) I_n(x), n = 0 or 1: power series (A&S 9.6.10), all of whose terms are positive, or for
// large |x| the asymptotic expansion (A&S 9.7.1), whose smallest term is near exp(-2 |x|).
double scaled_bessel_i(int n, double x) {
  const double z = std::fabs(x);
  double sum = 1;
  double term = 1;
  if (z < 25) {
    for (int k = 1; term > sum * 1e-18; ++k) {
      term *= z * z / (4.0 * k * (k + n));
      sum += term;
    }
    sum *= std::exp(-z) * (n == 1 ? z / 2 : 1);
  } else if (std::isinf(z)) {
    sum = 0;
  } else {
    for (int k = 1; k < 40 && std::fabs(term) > 1e-18; ++k) {
      const double odd = 2 * k - 1;
      term *= -(4.0 * n * n - odd * odd) / (8 * k * z);
      sum += term;
    }
    sum /= std::sqrt(2 * kPi * z);
  }
  return n == 1 && x < 0 ? -sum : sum;
}

// y with erf(y) = x, given x in [0, 1) and q = 1 - x to full precision: Winitzki's approximation
// ("A handy approximation for the error function and its inverse", 2008), then Halley's method on
// whichever of erf and erfc is not saturated; near the smallest numbers, Newton's on log(erfc).
double inverse_erf(double x, double q) {
  constexpr double a = 0.147;
  const double l = std::log(q * (2 - q));
  const double h = 2 / (kPi * a) + l / 2;
  double y = std::sqrt(std::sqrt(h * h - l / a) - h);
  for (int i = 0; q < 1e-250 && i < 4; ++i) {
    const double tail = erfcx(y);
    y += (std::log(tail) - y * y - std::log(q)) * std::sqrt(kPi) / 2 * tail;
  }
  for (int i = 0; q >= 1e-250 && i < 4; ++i) {
    const double error = x < 0.5 ? std::erf(y) - x : q - std::erfc(y);
    const double step = error / (2 / std::sqrt(kPi) * std::exp(-y * y));
    y -= step / (1 + y * step);
  }
  return y;
}

// x^a exp(-x) / Gamma(a + 1); for large a by Stirling's series (A&S 6.1.41) around x = a.
double gamma_prefactor(double a, double x) {
  if (a < 20) return std::exp(a * std::log(x) - x - lgamma(a + 1));
  const double i = 1 / (a * a);
  const double correction =
      (1.0 / 12 - i * (1.0 / 360 - i * (1.0 / 1260 - i * (1.0 / 1680 - i / 1188)))) / a;
  return std::exp(a * log1p_minus((x - a) / a) - correction) / std::sqrt(2 * kPi * a);
}

// P(a, x) by its power series (DLMF 8.11.4).
double lower_series(double a, double x) {
  double sum = 1;
  double term = 1;
  for (double n = a + 1; term > sum * 1e-17; ++n) {
    term *= x / n;
    sum += term;
  }
  return sum * gamma_prefactor(a, x);
}

// Q(a, x) by its continued fraction (DLMF 8.9.2), evaluated with Lentz's method.
double upper_fraction(double a, double x) {
  constexpr double tiny = 1e-300;
  double b = x + 1 - a;
  double c = 1 / tiny;
  double d = 1 / b;
  double f = d;
  for (int i = 1; i < 100000; ++i) {
    const double numerator = -i * (i - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    d = 1 / (d == 0 ? tiny : d);
    if (c == 0) c = tiny;
    f *= d * c;
    if (std::fabs(d * c - 1) < 1e-16) break;
  }
  return f * gamma_prefactor(a, x) * a;
}

// Q(a, x) for very large a: Temme's uniform expansion, two terms (DLMF 8.12.3 and 8.12.9); its
// relative error near x = a is below 1 / a.
double upper_uniform(double a, double x) {
  const double mu = (x - a) / a;
  const double half_square = -log1p_minus(mu);  // eta^2 / 2
  const double eta = std::copysign(std::sqrt(2 * half_square), mu);
  const double c0 = std::fabs(mu) < 1e-3 ? -1.0 / 3 + eta / 12 : 1 / mu - 1 / eta;
  return 0.5 * std::erfc(eta * std::sqrt(a / 2)) +
         std::exp(-a * half_square) / std::sqrt(2 * kPi * a) * c0;
}
constexpr double kUniformFrom = 1e8;  // the series would need millions of terms

// The edge cases as ATen defines them, for the lower function P.
bool gamma_edge(double a, double x, double& lower) {
  if (std::isnan(a) || std::isnan(x) || a < 0 || x < 0)
    lower = kNan;
  else if (a == 0)
    lower = x > 0 ? 1 : kNan;
  else if (x == 0)
    lower = 0;
  else if (std::isinf(a))
    lower = std::isinf(x) ? kNan : 0;
  else if (std::isinf(x))
    lower = 1;
  else
    return false;
  return true;
}

// The next 16-bit pattern of sign-magnitude floats from a towards b.
uint16_t next_pattern(uint16_t bits, bool towards_larger) {
  if ((bits & 0x7fff) == 0) return towards_larger ? 0x0001 : 0x8001;
  const bool negative = (bits & 0x8000) != 0;
  return static_cast<uint16_t>(negative != towards_larger ? bits + 1 : bits - 1);
}

}  // namespace

// log1p(x) - x without cancellation for small x: Taylor series (A&S 4.1.24).
double log1p_minus(double x) {
  if (std::fabs(x) > 0.3) return std::log1p(x) - x;
  double power = -x * x;
  double sum = 0;
  for (int k = 2; k < 60; ++k, power *= -x) sum += power / k;
  return sum;
}

double lgamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// Recurrence to x >= 12, then the asymptotic series; reflection below 0 (A&S 6.3.5, 6.3.7, 6.3.18).
double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    // To the nearer side of 0: 1 - 1e-20 is 1.
    return digamma(1 - x) - kPi / std::tan(kPi * (x - std::trunc(x)));
  }
  if (std::isinf(x)) return x;
  double result = 0;
  for (; x < 12; ++x) result -= 1 / x;
  const double i = 1 / (x * x);
  const double series =
      i * (1.0 / 12 - i * (1.0 / 120 -
                           i * (1.0 / 252 -
                                i * (1.0 / 240 - i * (1.0 / 132 - i * (691.0 / 32760 - i / 12))))));
  return result + std::log(x) - 0.5 / x - series;
}

// A&S 6.4.10 by way of the zeta function; n = 1 reflects below 1/2 (A&S 6.4.7).
double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1 && x < 0.5) {
    const double s = std::sin(kPi * (x - std::trunc(x)));
    return kPi * kPi / (s * s) - zeta(2, 1 - x);
  }
  const double value = std::exp(lgamma(n + 1)) * zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -value : value;
}

// Hurwitz zeta by Euler-Maclaurin summation (DLMF 25.11.5).
double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return kNan;
  if (s == 1) return kInfinity;
  if (s < 1) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (s != std::floor(s)) return kNan;
    // The sum of the terms below 0 as a difference of two zetas: its cost does not depend on q.
    const double f = q - std::floor(q);
    const double below = zeta(s, 1 - f) - zeta(s, 1 - q);
    return zeta(s, f) + (std::fmod(s, 2) == 0 ? below : -below);
  }
  if (std::isinf(q)) return 0;
  double sum = 0;
  for (; q < 12 + s; ++q) {
    const double term = std::pow(q, -s);
    sum += term;
    if (term <= sum * 1e-18) return sum;  // also where all are 0
  }
  const double power = std::pow(q, -s);
  sum += power * q / (s - 1) + power / 2;
  double factor = s * power / q;
  for (int k = 0; k < 12; ++k) {
    const double term = factor * kBernoulliOverFactorial[k];
    sum += term;
    if (std::fabs(term) < std::fabs(sum) * 1e-18) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
  }
  return sum;
}

double erfinv(double x) {
  if (!(std::fabs(x) <= 1)) return kNan;
  if (std::fabs(x) == 1) return x * kInfinity;
  if (std::fabs(x) < 1e-8) return x * (std::sqrt(kPi) / 2);
  return std::copysign(inverse_erf(std::fabs(x), 1 - std::fabs(x)), x);
}

// Quantile of the normal distribution: -sqrt(2) erfcinv(2 p).
double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0 || p == 1) return p == 0 ? -kInfinity : kInfinity;
  const double q = p <= 0.5 ? 2 * p : 2 * (1 - p);  // exact: 1 - p is, above 1/2
  const double y = p == 0.5 ? 0 : inverse_erf(1 - q, q);
  return p < 0.5 ? -std::sqrt(2.0) * y : std::sqrt(2.0) * y;
}

// exp(x^2) erfc(x): directly below 2, above by the continued fraction A&S 7.1.14, backwards.
double erfcx(double x) {
  if (x < 2) return std::exp(x * x) * std::erfc(x);
  double f = x;
  for (int k = 200; k > 0; --k) f = x + 0.5 * k / f;
  return 1 / (std::sqrt(kPi) * f);
}

double log_ndtr(double x) {
  const double t = x * 0.70710678118654752440;
  if (x < -1) return std::log(erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

double i0e(double x) { return scaled_bessel_i(0, x); }
double i1e(double x) { return scaled_bessel_i(1, x); }
double i0(double x) {
  const double half = std::exp(std::fabs(x) / 2);  // in two steps: exp(x) overflows first
  return std::isinf(half) ? kInfinity : scaled_bessel_i(0, x) * half * half;
}
double i1(double x) {
  const double half = std::exp(std::fabs(x) / 2);
  return std::isinf(half) ? std::copysign(kInfinity, x) : scaled_bessel_i(1, x) * half * half;
}

// POSIX functions of the C library.
double bessel_j0(double x) { return ::j0(x); }
double bessel_j1(double x) { return ::j1(x); }
double bessel_y0(double x) { return x < 0 ? kNan : ::y0(x); }
double bessel_y1(double x) { return x < 0 ? kNan : ::y1(x); }

double igamma(double a, double x) {
  double lower;
  if (gamma_edge(a, x, lower)) return lower;
  if (a > kUniformFrom) return 1 - upper_uniform(a, x);
  return x < a + 1 ? lower_series(a, x) : 1 - upper_fraction(a, x);
}
double igammac(double a, double x) {
  double lower;
  if (gamma_edge(a, x, lower)) return 1 - lower;
  if (a > kUniformFrom) return upper_uniform(a, x);
  return x < a + 1 ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

double nextafter(double a, double b, DType type) {
  if (type == DType::Float64) return std::nextafter(a, b);
  if (type == DType::Float32) return std::nextafterf(static_cast<float>(a), static_cast<float>(b));
  if (a != a || b != b) return kNan;
  if (a == b) return b;
  const auto f = static_cast<float>(a);
  return type == DType::Float16 ? half_to_float(next_pattern(float_to_half(f), b > a))
                                : bfloat16_to_float(next_pattern(float_to_bfloat16(f), b > a));
}

double round_decimals(double a, double decimals) {
  const double power = std::pow(10.0, std::fabs(decimals));
  return decimals < 0 ? std::nearbyint(a / power) * power : std::nearbyint(a * power) / power;
}

}  // namespace ocltensor::cpu::special
