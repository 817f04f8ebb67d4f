// Modified Bessel functions, Airy's function and orthogonal polynomials in double precision, out of
// the C++ library's special functions (<cmath>) and closed forms. "A&S" is Abramowitz and Stegun.
#include <cmath>

#include "special.h"

namespace ocltensor::cpu::special {
namespace {

constexpr double kThird = 1.0 / 3;
constexpr double kLogTwo = 0.69314718055994530942;
constexpr double kEuler = 0.57721566490153286061;

// The degree as an integer that a loop can count to; -1 for NaN and for -1 and less.
int64_t degree_of(double n) {
  return !(n > -1) ? -1 : n > 9e15 ? int64_t{9000000000000000} : static_cast<int64_t>(n);
}
bool is_odd(int64_t n) { return n % 2 != 0; }

// f(n x), f = cos or sin of the angle whose cosine is x, and beyond 1 their hyperbolic forms.
struct Angle {
  double t;
  bool real;
  explicit Angle(double x) : t(x < 1 ? std::acos(x) : std::acosh(x)), real(x < 1) {}
  double cos(double n) const { return real ? std::cos(n * t) : std::cosh(n * t); }
  double sin(double n) const { return real ? std::sin(n * t) : std::sinh(n * t); }
};

// x >= 0 (DLMF 18.5.1 to 18.5.4).
double chebyshev_positive(char kind, double x, double n) {
  if (x == 1) return kind == 'u' ? n + 1 : kind == 'w' ? 2 * n + 1 : 1;
  if (std::isinf(x)) return n == 0 ? 1 : x;
  const Angle angle(x);
  switch (kind) {
    case 't': return angle.cos(n);
    case 'u': return angle.sin(n + 1) / angle.sin(1);
    case 'v': return angle.cos(n + 0.5) / angle.cos(0.5);
    default: return angle.sin(n + 0.5) / angle.sin(0.5);
  }
}

// Three-term recurrences of A&S 22.7; what overflows stays.
template <typename Next>
double recur(double first, double x, double degree, Next next) {
  const int64_t n = degree_of(degree);
  if (n < 0) return 0;
  if (n == 0) return 1;
  double before = 1;
  double here = first;
  for (int64_t k = 1; k < n && std::isfinite(here); ++k) {
    const double after = next(static_cast<double>(k), x, here, before);
    before = here;
    here = after;
  }
  return here;
}

bool too_high(double n, DType type) { return n >= (type == DType::Float64 ? 513 : 129); }

}  // namespace

double bessel_k(int order, double x) {
  if (x == 0) return kInfinity;
  if (!(x > 0)) return kNan;
  if (x < 1e-8) return order == 0 ? kLogTwo - kEuler - std::log(x) : 1 / x;  // A&S 9.6.8, 9.6.9
  return x > 700 ? 0 : std::cyl_bessel_k(order, x);
}

double scaled_bessel_k(int order, double x) {
  if (x <= 30 || x != x) return bessel_k(order, x) * std::exp(x);
  if (std::isinf(x)) return 0;
  double sum = 1;  // A&S 9.7.2
  double term = 1;
  for (int k = 1; k < 40 && std::fabs(term) > 1e-18; ++k) {
    const double odd = 2 * k - 1;
    term *= (4.0 * order * order - odd * odd) / (8 * k * x);
    sum += term;
  }
  return sum * std::sqrt(kPi / (2 * x));
}

// A&S 10.4.14 and 10.4.15; J of order -1/3 by A&S 9.1.2.
double airy_ai(double x) {
  if (x != x) return x;
  if (std::fabs(x) < 1e-8) return 0.35502805388781723926 - 0.25881940379280679841 * x;
  const double root = std::sqrt(std::fabs(x));
  const double z = 2 * kThird * std::fabs(x) * root;
  if (x > 0) return z > 700 ? 0 : root / (kPi * std::sqrt(3.0)) * std::cyl_bessel_k(kThird, z);
  if (std::isinf(z)) return 0;
  const double j = std::cyl_bessel_j(kThird, z);
  return root / 3 * (1.5 * j - std::sqrt(0.75) * std::cyl_neumann(kThird, z));
}

double spherical_bessel_j0(double x) {
  if (std::isinf(x)) return 0;
  return x == 0 ? 1 : std::sin(x) / x;
}

// Kind T, U, V or W; V and W are each other's mirror image.
double chebyshev(char kind, double x, double degree) {
  const int64_t n = degree_of(degree);
  if (n < 0) return 0;
  if (n == 0) return 1;
  if (x >= 0 || x != x) return chebyshev_positive(kind, x, static_cast<double>(n));
  const char mirrored = kind == 'v' ? 'w' : kind == 'w' ? 'v' : kind;
  const double value = chebyshev_positive(mirrored, -x, static_cast<double>(n));
  return is_odd(n) ? -value : value;
}

double hermite_he(double x, double n, DType type) {
  if (too_high(n, type)) return kNan;
  return recur(x, x, n, [](double k, double at, double here, double before) {
    return at * here - k * before;
  });
}
double hermite(double x, double n, DType type) {
  if (too_high(n, type)) return kNan;
  return recur(2 * x, x, n, [](double k, double at, double here, double before) {
    return 2 * (at * here - k * before);
  });
}
double laguerre(double x, double n) {
  if (x == 0) return n > -1 ? 1 : 0;
  return recur(1 - x, x, n, [](double k, double at, double here, double before) {
    return here + (k * (here - before) - at * here) / (k + 1);
  });
}
double legendre(double x, double n) {
  if (std::fabs(x) == 1) return !(n > -1) ? 0 : x < 0 && is_odd(degree_of(n)) ? -1 : 1;
  return recur(x, x, n, [](double k, double at, double here, double before) {
    return at * here + k / (k + 1) * (at * here - before);
  });
}

}  // namespace ocltensor::cpu::special
