// Eigenvalues of small matrices in Hessenberg form by QR steps with two shifts (Francis, "The QR
// transformation", 1961).
#include "eig_shifts.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ocltensor::opencl::linalg {
namespace {

using Complex = std::complex<double>;

// Shifts need not be exact: what is this much smaller than its neighbours counts as zero.
constexpr double kNegligible = 1e-10;
constexpr int64_t kSteps = 30;  // for each eigenvalue, on average
constexpr int64_t kPatience = 10;

double conjugate(double x) { return x; }
Complex conjugate(Complex x) { return std::conj(x); }
// Without the checks for NaN that the operator makes.
double product(double x, double y) { return x * y; }
Complex product(Complex x, Complex y) {
  return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
}
double square(double x) { return x * x; }
double square(Complex x) { return std::norm(x); }

template <typename T>
class SmallHessenberg {
 public:
  SmallHessenberg(std::vector<T> h, int64_t n) : h_(std::move(h)), n_(n) {}

  std::vector<Complex> eigenvalues() {
    std::vector<Complex> values(static_cast<size_t>(n_));
    int64_t tries = 0;
    int64_t left = kSteps * n_;
    for (int64_t hi = n_ - 1; hi >= 0;) {
      const int64_t lo = start_of_block(hi);
      if (lo == hi || left == 0) {
        values[static_cast<size_t>(hi)] = at(hi, hi);
        --hi;
        tries = 0;
      } else if (lo + 1 == hi) {
        const auto [first, second] = values_of_pair(lo);
        values[static_cast<size_t>(lo)] = first;
        values[static_cast<size_t>(hi)] = second;
        hi -= 2;
        tries = 0;
      } else {
        step(lo, hi, ++tries % kPatience == 0);
        --left;
      }
    }
    return values;
  }

 private:
  T& at(int64_t i, int64_t j) { return h_[static_cast<size_t>(i * n_ + j)]; }

  int64_t start_of_block(int64_t hi) {
    int64_t k = hi;
    for (; k > 0; --k) {
      const double sizes = std::abs(at(k, k)) + std::abs(at(k - 1, k - 1));
      if (std::abs(at(k, k - 1)) <= kNegligible * sizes) break;
    }
    return k;
  }

  std::array<Complex, 2> values_of_pair(int64_t k) {
    const T half_gap = (at(k, k) - at(k + 1, k + 1)) / 2.0;
    const T center = (at(k, k) + at(k + 1, k + 1)) / 2.0;
    const T under_root = product(half_gap, half_gap) + product(at(k, k + 1), at(k + 1, k));
    const Complex root = std::sqrt(Complex(under_root));
    return {center + root, center - root};
  }

  void step(int64_t lo, int64_t hi, bool exceptional) {
    T trace = at(hi, hi) + at(hi - 1, hi - 1);
    T determinant =
        product(at(hi, hi), at(hi - 1, hi - 1)) - product(at(hi, hi - 1), at(hi - 1, hi));
    if (exceptional) {
      const double size = std::abs(at(hi, hi - 1)) + std::abs(at(hi - 1, hi - 2));
      trace = 1.5 * size;
      determinant = size * size;
    }
    for (int64_t k = lo; k < hi; ++k) {
      const bool three = k + 2 <= hi;
      std::array<T, 3> x{};
      if (k == lo) {
        const T b00 = at(lo, lo);
        const T b10 = at(lo + 1, lo);
        x = {product(b00, b00 - trace) + product(at(lo, lo + 1), b10) + determinant,
             product(b10, b00 + at(lo + 1, lo + 1) - trace), product(b10, at(lo + 2, lo + 1))};
      } else {
        x = {at(k, k - 1), at(k + 1, k - 1), three ? at(k + 2, k - 1) : T(0)};
      }
      reflect(k, std::max(lo, k - 1), lo, hi, x);
    }
  }

  // Applies the reflector that leaves the first element of x from both sides, from row k on.
  void reflect(int64_t k, int64_t column, int64_t lo, int64_t hi, const std::array<T, 3>& x) {
    const double rest = square(x[1]) + square(x[2]);
    if (!(rest > 0)) return;
    const double size = std::abs(x[0]);
    const double norm = std::sqrt(size * size + rest);
    const T phase = size > 0 ? x[0] / size : T(1);
    const T pivot = phase * (size + norm);
    const double tau = (size + norm) / norm;
    const T v1 = x[1] / pivot;
    const T v2 = x[2] / pivot;
    const T w1 = conjugate(v1);
    const T w2 = conjugate(v2);
    const bool three = k + 2 <= hi;  // else v2 is zero
    T* const rows = h_.data() + k * n_;
    for (T *r0 = rows + column, *end = rows + hi; r0 <= end; ++r0) {
      T& r1 = r0[n_];
      T& r2 = r0[three ? 2 * n_ : 0];
      const T sum = tau * (*r0 + product(w1, r1) + product(w2, r2));
      if (three) r2 -= product(v2, sum);
      r1 -= product(v1, sum);
      *r0 -= sum;
    }
    T* const columns = h_.data() + k;
    for (int64_t i = lo; i <= std::min(k + 3, hi); ++i) {
      T* const c = columns + i * n_;
      T& c2 = c[three ? 2 : 0];
      const T sum = tau * (c[0] + product(c[1], v1) + product(c2, v2));
      if (three) c2 -= product(sum, w2);
      c[1] -= product(sum, w1);
      c[0] -= sum;
    }
  }

  std::vector<T> h_;
  int64_t n_;
};

// Pairs of conjugate numbers stay together, of the others those that are next to each other.
std::vector<ShiftPair> real_pairs(const std::vector<Complex>& values) {
  std::vector<ShiftPair> pairs;
  std::vector<double> alone;
  for (const Complex value : values) {
    if (value.imag() > 0) pairs.push_back({value.real(), value.real(), value.imag()});
    if (value.imag() == 0) alone.push_back(value.real());
  }
  std::ranges::sort(alone);
  for (size_t i = 0; i + 1 < alone.size(); i += 2) pairs.push_back({alone[i], alone[i + 1], 0});
  return pairs;
}

}  // namespace

std::vector<ShiftPair> find_shifts(const TrailingBlock& block) {
  double largest = 0;
  for (const Complex x : block.h)
    largest = std::max({largest, std::abs(x.real()), std::abs(x.imag())});
  if (!(largest > 0)) largest = 1;  // so that no square overflows or vanishes
  std::vector<ShiftPair> pairs;
  if (block.real) {
    std::vector<double> h;
    for (const Complex x : block.h) h.push_back(x.real() / largest);
    pairs = real_pairs(SmallHessenberg<double>(std::move(h), block.rows).eigenvalues());
  } else {
    std::vector<Complex> h;
    for (const Complex x : block.h) h.push_back(x / largest);
    const std::vector<Complex> values =
        SmallHessenberg<Complex>(std::move(h), block.rows).eigenvalues();
    for (size_t i = 0; i + 1 < values.size(); i += 2)
      pairs.push_back({values[i], values[i + 1], 0});
  }
  pairs.resize(static_cast<size_t>(block.rows / 2));
  for (ShiftPair& pair : pairs) {
    pair.s0 *= largest;
    pair.s1 *= largest;
    pair.im *= largest;
  }
  return pairs;
}

std::vector<ShiftPair> exceptional_shifts(const TrailingBlock& block) {
  const auto at = [&](int64_t i, int64_t j) {
    return block.h[static_cast<size_t>(i * block.rows + j)];
  };
  const auto size_of = [](Complex x) { return std::abs(x.real()) + std::abs(x.imag()); };
  std::vector<ShiftPair> pairs;
  for (int64_t i = block.rows - 1; i > 0; i -= 2) {
    const double size = size_of(at(i, i - 1)) + (i > 1 ? size_of(at(i - 1, i - 2)) : 0);
    const Complex shift = at(i, i) + 0.75 * size;
    pairs.push_back({shift, shift, block.real ? std::sqrt(0.4375) * size : 0});
  }
  return pairs;
}

}  // namespace ocltensor::opencl::linalg
