// Singular values by one-sided Jacobi rotations: columns are rotated in pairs until all are
// orthogonal (Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958).
// N is double or a complex number of two.
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
template <typename N>
using Columns = std::vector<std::vector<N>>;

// x^H y
template <typename N>
N dot(const std::vector<N>& x, const std::vector<N>& y) {
  N sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += conjugate(x[i]) * y[i];
  return sum;
}
template <typename N>
double length(const std::vector<N>& x) {
  return std::sqrt(std::real(dot(x, x)));
}

// Rotates x and y times `phase`.
template <typename N>
void rotate(std::vector<N>& x, std::vector<N>& y, N phase, double c, double s) {
  for (size_t i = 0; i < x.size(); ++i) {
    const N held = x[i], turned = phase * y[i];
    x[i] = c * held - s * turned;
    y[i] = s * held + c * turned;
  }
}

// Makes columns p and q of a orthogonal and rotates v likewise. False if they were orthogonal
// already.
template <typename N>
bool make_orthogonal(Columns<N>& a, Columns<N>& v, size_t p, size_t q) {
  const N product = dot(a[p], a[q]);
  const double between = std::abs(product);
  const double first = length(a[p]);
  const double second = length(a[q]);
  constexpr double kEps = std::numeric_limits<double>::epsilon();
  const double limit = kEps * (4 + std::sqrt(static_cast<double>(a[p].size())));
  // The matrix was scaled so that its largest element is 1; squares of shorter columns underflow.
  if (std::min(first, second) < kShortest || !(between > limit * first * second)) return false;
  const double z = (second - first) * (second + first) / (2 * between);
  const double t = std::copysign(1 / (std::abs(z) + std::hypot(1.0, z)), z);
  const double c = 1 / std::hypot(1.0, t);
  const N phase = conjugate(product) / between;  // which makes the product a real number
  rotate(a[p], a[q], phase, c, c * t);
  rotate(v[p], v[q], phase, c, c * t);
  return true;
}

// a (columns) = U S V^H: a becomes U S, v (the identity before) V. False where that fails.
template <typename N>
bool jacobi(Columns<N>& a, Columns<N>& v) {
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
template <typename N>
void project(const Columns<N>& columns, size_t count, std::vector<N>& x) {
  for (int pass = 0; pass < 2; ++pass)
    for (size_t j = 0; j < count; ++j) {
      const N part = dot(columns[j], x);
      for (size_t i = 0; i < x.size(); ++i) x[i] -= part * columns[j][i];
    }
}

// Fills columns [first, all) with vectors that are orthonormal to each other and to those before:
// unit vectors without their projections, one of which keeps a length of at least 1 / sqrt(m).
template <typename N>
void complete(Columns<N>& u, size_t first) {
  for (size_t j = first; j < u.size(); ++j) {
    const size_t m = u[j].size();
    for (size_t unit = 0; unit < m; ++unit) {
      std::vector<N> x(m);
      x[unit] = 1;
      project(u, j, x);
      const double norm = length(x);
      if (norm < 0.5 / std::sqrt(static_cast<double>(m))) continue;
      for (N& value : x) value /= norm;
      u[j] = std::move(x);
      break;
    }
  }
}

template <typename N>
struct Decomposed {
  Columns<N> u, v;
  std::vector<double> s;
};

// Decomposes a matrix with at least as many rows as columns. Singular values are NaN if the matrix
// is not finite or the rotations do not converge.
template <typename N>
Decomposed<N> decompose(const N* a, int64_t m, int64_t n, int64_t u_columns) {
  Columns<N> columns(static_cast<size_t>(n), std::vector<N>(static_cast<size_t>(m)));
  Columns<N> v(static_cast<size_t>(n), std::vector<N>(static_cast<size_t>(n)));
  double largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < m * n; ++i) {
    largest = std::max(largest, std::abs(a[i]));
    finite &= is_finite(a[i]);
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
  for (const auto& column : columns) norms.push_back(done ? length(column) : 0);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return norms[i] > norms[j]; });
  Decomposed<N> d;
  size_t known = 0;
  for (const size_t j : order) {
    d.s.push_back(done ? norms[j] * largest : std::numeric_limits<double>::quiet_NaN());
    d.v.push_back(v[j]);
    d.u.push_back(columns[j]);
    if (norms[j] < kShortest) continue;
    for (N& value : d.u.back()) value /= norms[j];
    ++known;
  }
  d.u.resize(static_cast<size_t>(u_columns), std::vector<N>(static_cast<size_t>(m)));
  complete(d.u, known);
  return d;
}

// Writes columns, or their conjugates.
template <typename N>
void put(N* matrix, const Columns<N>& columns, bool conjugated) {
  for (size_t j = 0; j < columns.size(); ++j)
    for (size_t i = 0; i < columns[j].size(); ++i) {
      const N x = columns[j][i];
      matrix[i * columns.size() + j] = conjugated ? conjugate(x) : x;
    }
}

template <typename N>
void svd(const CpuCall& call) {
  const View self = call.args.tensor(Arg::A);
  const size_t dims = self.sizes.size();
  const bool wide = self.sizes[dims - 2] < self.sizes[dims - 1];
  // A^T = U S V^H is A = conj(V) S U^T: either way the conjugate of V is a result.
  Matrices<N> a(wide ? turned(self) : self);
  const bool wants_vectors = call.args.boolean(Arg::compute_uv);
  const int64_t count = numel(batch_of(self));
  const int64_t n = a.columns;
  const int64_t u_columns = call.args.boolean(Arg::full_matrices) ? a.rows : n;
  Matrices<N> u(count, a.rows, u_columns);
  Matrices<N> v(count, n, n);
  std::vector<double> s;
  for (int64_t i = 0; i < count; ++i) {
    const Decomposed<N> d = decompose(a[i], a.rows, n, wants_vectors ? u_columns : n);
    s.insert(s.end(), d.s.begin(), d.s.end());
    if (!wants_vectors) continue;
    put(u[i], d.u, false);
    put(v[i], d.v, true);
  }
  write(call.out(1), s);
  if (!wants_vectors) return;
  write_as(wide ? turned(call.out(2)) : call.out(0), u.values);
  write_as(wide ? call.out(0) : turned(call.out(2)), v.values);
}

constexpr CpuOperator kOperators[] = {{"_linalg_svd.U", svd<double>, svd<Number>}};

}  // namespace

std::span<const CpuOperator> svd_operators() { return kOperators; }

}  // namespace ocltensor::cpu
