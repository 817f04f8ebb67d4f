// Singular values by one-sided Jacobi rotations: columns are rotated in pairs until all are
// orthogonal (Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958).
// In double.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "matrices.h"

namespace ocltensor::cpu {
namespace {

constexpr int kSweeps = 60;
constexpr double kShortest = 1e-140;  // a column shorter than this counts as 0

// Columns of numbers, each a vector of its own.
using Columns = std::vector<std::vector<double>>;

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

void rotate(std::vector<double>& x, std::vector<double>& y, double c, double s) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double held = x[i];
    x[i] = c * held - s * y[i];
    y[i] = s * held + c * y[i];
  }
}

// Makes columns p and q of a orthogonal and rotates v likewise. False if they were orthogonal
// already.
bool make_orthogonal(Columns& a, Columns& v, size_t p, size_t q) {
  const double between = dot(a[p], a[q]);
  const double first = std::sqrt(dot(a[p], a[p]));
  const double second = std::sqrt(dot(a[q], a[q]));
  constexpr double kEps = std::numeric_limits<double>::epsilon();
  const double limit = kEps * (4 + std::sqrt(static_cast<double>(a[p].size())));
  // The matrix was scaled so that its largest element is 1; squares of shorter columns underflow.
  if (std::min(first, second) < kShortest || !(std::abs(between) > limit * first * second))
    return false;
  const double z = (second - first) * (second + first) / (2 * between);
  const double t = std::copysign(1 / (std::abs(z) + std::hypot(1.0, z)), z);
  const double c = 1 / std::hypot(1.0, t);
  rotate(a[p], a[q], c, c * t);
  rotate(v[p], v[q], c, c * t);
  return true;
}

// a (columns) = U S V^T: a becomes U S, v (the identity before) V. False where that fails.
bool jacobi(Columns& a, Columns& v) {
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool rotated = false;
    for (size_t p = 0; p < a.size(); ++p)
      for (size_t q = p + 1; q < a.size(); ++q) rotated |= make_orthogonal(a, v, p, q);
    if (!rotated) return true;
  }
  return false;
}

// Subtracts the projections of x on the first `count` columns. Twice, because rounding errors of
// one pass are relative to the length of the original x.
void project(const Columns& columns, size_t count, std::vector<double>& x) {
  for (int pass = 0; pass < 2; ++pass)
    for (size_t j = 0; j < count; ++j) {
      const double part = dot(columns[j], x);
      for (size_t i = 0; i < x.size(); ++i) x[i] -= part * columns[j][i];
    }
}

// Fills columns [first, all) with vectors that are orthonormal to each other and to those before:
// unit vectors without their projections, one of which keeps a length of at least 1 / sqrt(m).
void complete(Columns& u, size_t first) {
  for (size_t j = first; j < u.size(); ++j) {
    const size_t m = u[j].size();
    for (size_t unit = 0; unit < m; ++unit) {
      std::vector<double> x(m);
      x[unit] = 1;
      project(u, j, x);
      const double norm = std::sqrt(dot(x, x));
      if (norm < 0.5 / std::sqrt(static_cast<double>(m))) continue;
      for (double& value : x) value /= norm;
      u[j] = std::move(x);
      break;
    }
  }
}

struct Decomposed {
  Columns u, v;
  std::vector<double> s;
};

// Decomposes a matrix with at least as many rows as columns. Singular values are NaN if the matrix
// is not finite or the rotations do not converge.
Decomposed decompose(const double* a, int64_t m, int64_t n, int64_t u_columns) {
  Columns columns(static_cast<size_t>(n), std::vector<double>(static_cast<size_t>(m)));
  Columns v(static_cast<size_t>(n), std::vector<double>(static_cast<size_t>(n)));
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < m * n; ++i) {
    largest = std::max(largest, std::abs(a[i]));
    finite &= std::isfinite(a[i]);
  }
  if (largest == 0 || !finite) largest = 1;
  for (size_t j = 0; j < columns.size(); ++j) {
    v[j][j] = 1;
    for (size_t i = 0; i < columns[j].size(); ++i)
      columns[j][i] = a[i * static_cast<size_t>(n) + j] / largest;
  }
  const bool done = finite && jacobi(columns, v);
  std::vector<size_t> order(columns.size());
  std::vector<double> norms;
  for (const auto& column : columns) norms.push_back(done ? std::sqrt(dot(column, column)) : 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return norms[i] > norms[j]; });
  Decomposed d;
  size_t known = 0;
  for (const size_t j : order) {
    d.s.push_back(done ? norms[j] * largest : std::numeric_limits<double>::quiet_NaN());
    d.v.push_back(v[j]);
    d.u.push_back(columns[j]);
    if (norms[j] < kShortest) continue;
    for (double& value : d.u.back()) value /= norms[j];
    ++known;
  }
  d.u.resize(static_cast<size_t>(u_columns), std::vector<double>(static_cast<size_t>(m)));
  complete(d.u, known);
  return d;
}

void put(double* matrix, const Columns& columns) {
  for (size_t j = 0; j < columns.size(); ++j)
    for (size_t i = 0; i < columns[j].size(); ++i) matrix[i * columns.size() + j] = columns[j][i];
}

void svd(const CpuCall& call) {
  const View self = call.args.tensor(Arg::A);
  const size_t dims = self.sizes.size();
  const bool wide = self.sizes[dims - 2] < self.sizes[dims - 1];
  Matrices a(wide ? turned(self) : self);
  const bool wants_vectors = call.args.boolean(Arg::compute_uv);
  const int64_t count = numel(batch_of(self));
  const int64_t n = a.columns;
  const int64_t u_columns = call.args.boolean(Arg::full_matrices) ? a.rows : n;
  Matrices u(count, a.rows, u_columns);
  Matrices v(count, n, n);
  std::vector<double> s;
  for (int64_t i = 0; i < count; ++i) {
    const Decomposed d = decompose(a[i], a.rows, n, wants_vectors ? u_columns : n);
    s.insert(s.end(), d.s.begin(), d.s.end());
    if (!wants_vectors) continue;
    put(u[i], d.u);
    put(v[i], d.v);
  }
  write(call.out(1), s);
  if (!wants_vectors) return;
  write(wide ? turned(call.out(2)) : call.out(0), u.values);
  write(wide ? call.out(0) : turned(call.out(2)), v.values);
}

constexpr CpuOperator kOperators[] = {{"_linalg_svd.U", svd}};

}  // namespace

std::span<const CpuOperator> svd_operators() { return kOperators; }

}  // namespace ocltensor::cpu
