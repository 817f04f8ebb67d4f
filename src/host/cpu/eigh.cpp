// Eigenvalues of symmetric and Hermitian matrices by two-sided Jacobi rotations: elements off the
// diagonal are rotated to zero in turn (Jacobi, "Ueber ein leichtes Verfahren, die in der Theorie
// der Saecularstoerungen vorkommenden Gleichungen numerisch aufzuloesen", 1846). N is double or a
// complex number of two.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "matrices.h"

namespace ocltensor::cpu {
namespace {

constexpr int kSweeps = 60;
constexpr double kEps = std::numeric_limits<double>::epsilon();

// A Hermitian matrix, and the rotations so far: rows of v become the conjugates of eigenvectors.
template <typename N>
struct Rotated {
  std::vector<N> a, v;
  int64_t n;
  N& at(int64_t i, int64_t j) { return a[static_cast<size_t>(i * n + j)]; }

  // Rotates row p and row q times `phase`.
  void rotate_rows(std::vector<N>& m, int64_t p, int64_t q, N phase, double c, double s) const {
    for (int64_t k = 0; k < n; ++k) {
      N& x = m[static_cast<size_t>(p * n + k)];
      N& y = m[static_cast<size_t>(q * n + k)];
      const N held = x, turned = phase * y;
      x = c * held - s * turned;
      y = s * held + c * turned;
    }
  }
  void rotate(int64_t p, int64_t q) {
    const N phase = direction(at(p, q));  // which makes the element a real number
    const double z = std::real(at(q, q) - at(p, p)) / (2 * std::abs(at(p, q)));
    const double t = std::copysign(1 / (std::abs(z) + std::hypot(1.0, z)), z);
    const double c = 1 / std::hypot(1.0, t);
    const double s = c * t;
    rotate_rows(a, p, q, phase, c, s);
    for (int64_t k = 0; k < n; ++k) {
      const N held = at(k, p), turned = conjugate(phase) * at(k, q);
      at(k, p) = c * held - s * turned;
      at(k, q) = s * held + c * turned;
    }
    at(p, q) = at(q, p) = 0;
    rotate_rows(v, p, q, phase, c, s);
  }
  // The largest element is 1 before: rotations of smaller elements than this do not change the
  // diagonal.
  bool converge() {
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      bool rotated = false;
      for (int64_t p = 0; p < n; ++p)
        for (int64_t q = p + 1; q < n; ++q) {
          if (!(std::abs(at(p, q)) > kEps / 16)) continue;
          rotate(p, q);
          rotated = true;
        }
      if (!rotated) return true;
    }
    return false;
  }
};

// Fills `values` and, as columns, `vectors`; NaN where the matrix is not finite.
template <typename N>
void solve(const N* a, int64_t n, bool upper, double* values, N* vectors) {
  Rotated<N> r{std::vector<N>(static_cast<size_t>(n * n)),
               std::vector<N>(static_cast<size_t>(n * n)), n};
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      N x = upper ? conjugate(a[j * n + i]) : a[i * n + j];
      if (i == j) x = std::real(x);
      r.at(i, j) = x;
      r.at(j, i) = conjugate(x);
      largest = std::max(largest, std::abs(x));
      finite &= is_finite(x);
    }
  if (largest == 0 || !finite) largest = 1;
  for (N& x : r.a) x /= largest;
  for (int64_t i = 0; i < n; ++i) r.v[static_cast<size_t>(i * n + i)] = 1;
  const bool done = finite && r.converge();
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (done)
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
      return std::real(r.at(i, i)) < std::real(r.at(j, j));
    });
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = order[static_cast<size_t>(i)];
    values[i] =
        done ? std::real(r.at(from, from)) * largest : std::numeric_limits<double>::quiet_NaN();
    for (int64_t k = 0; k < n; ++k)
      vectors[k * n + i] = conjugate(r.v[static_cast<size_t>(from * n + k)]);
  }
}

template <typename N>
void eigh(const CpuCall& call) {
  const View self = call.args.tensor(Arg::A);
  const auto triangle = call.args.string(Arg::UPLO);
  Matrices<N> a(self);
  const int64_t count = numel(batch_of(self));
  Matrices<N> vectors(count, a.rows, a.rows);
  std::vector<double> values(static_cast<size_t>(count * a.rows));
  for (int64_t i = 0; i < count; ++i)
    solve(a[i], a.rows, triangle == "U" || triangle == "u", values.data() + i * a.rows, vectors[i]);
  write(call.out(0), values);
  if (call.args.boolean(Arg::compute_v)) write_as(call.out(1), vectors.values);
}

constexpr CpuOperator kOperators[] = {{"_linalg_eigh.eigenvalues", eigh<double>, eigh<Number>}};

}  // namespace

std::span<const CpuOperator> eigh_operators() { return kOperators; }

}  // namespace ocltensor::cpu
