// Eigenvalues of symmetric matrices by two-sided Jacobi rotations: elements off the diagonal are
// rotated to zero in turn (Jacobi, "Ueber ein leichtes Verfahren, die in der Theorie der
// Saecularstoerungen vorkommenden Gleichungen numerisch aufzuloesen", 1846). In double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "matrices.h"

namespace ocltensor::cpu {
namespace {

constexpr int kSweeps = 60;
constexpr double kEps = std::numeric_limits<double>::epsilon();

// A symmetric matrix, and the rotations so far: rows of v become eigenvectors.
struct Rotated {
  std::vector<double> a, v;
  int64_t n;
  double& at(int64_t i, int64_t j) { return a[static_cast<size_t>(i * n + j)]; }

  void rotate_rows(std::vector<double>& m, int64_t p, int64_t q, double c, double s) const {
    for (int64_t k = 0; k < n; ++k) {
      double& x = m[static_cast<size_t>(p * n + k)];
      double& y = m[static_cast<size_t>(q * n + k)];
      const double held = x;
      x = c * held - s * y;
      y = s * held + c * y;
    }
  }
  void rotate(int64_t p, int64_t q) {
    const double z = (at(q, q) - at(p, p)) / (2 * at(p, q));
    const double t = std::copysign(1 / (std::abs(z) + std::hypot(1.0, z)), z);
    const double c = 1 / std::hypot(1.0, t);
    const double s = c * t;
    rotate_rows(a, p, q, c, s);
    for (int64_t k = 0; k < n; ++k) {
      const double held = at(k, p);
      at(k, p) = c * held - s * at(k, q);
      at(k, q) = s * held + c * at(k, q);
    }
    at(p, q) = at(q, p) = 0;
    rotate_rows(v, p, q, c, s);
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
void solve(const double* a, int64_t n, bool upper, double* values, double* vectors) {
  Rotated r{std::vector<double>(static_cast<size_t>(n * n)),
            std::vector<double>(static_cast<size_t>(n * n)), n};
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      const double x = upper ? a[j * n + i] : a[i * n + j];
      r.at(i, j) = r.at(j, i) = x;
      largest = std::max(largest, std::abs(x));
      finite &= std::isfinite(x);
    }
  if (largest == 0 || !finite) largest = 1;
  for (double& x : r.a) x /= largest;
  for (int64_t i = 0; i < n; ++i) r.v[static_cast<size_t>(i * n + i)] = 1;
  const bool done = finite && r.converge();
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  if (done)
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return r.at(i, i) < r.at(j, j); });
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = order[static_cast<size_t>(i)];
    values[i] = done ? r.at(from, from) * largest : std::numeric_limits<double>::quiet_NaN();
    for (int64_t k = 0; k < n; ++k) vectors[k * n + i] = r.v[static_cast<size_t>(from * n + k)];
  }
}

void eigh(const CpuCall& call) {
  const View self = call.args.tensor(Arg::A);
  const auto triangle = call.args.string(Arg::UPLO);
  Matrices a(self);
  const int64_t count = numel(batch_of(self));
  Matrices vectors(count, a.rows, a.rows);
  std::vector<double> values(static_cast<size_t>(count * a.rows));
  for (int64_t i = 0; i < count; ++i)
    solve(a[i], a.rows, triangle == "U" || triangle == "u", values.data() + i * a.rows, vectors[i]);
  write(call.out(0), values);
  if (call.args.boolean(Arg::compute_v)) write(call.out(1), vectors.values);
}

constexpr CpuOperator kOperators[] = {{"_linalg_eigh.eigenvalues", eigh}};

}  // namespace

std::span<const CpuOperator> eigh_operators() { return kOperators; }

}  // namespace ocltensor::cpu
