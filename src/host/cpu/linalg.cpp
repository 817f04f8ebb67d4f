// Dense linear algebra by textbook algorithms: in double, one matrix after the other.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "matrices.h"

namespace ocltensor::cpu {
namespace {

// Lower triangle of a becomes L of a = L L^T. Returns the first column whose pivot is not positive,
// from 1, or 0.
int64_t cholesky_one(double* a, int64_t n) {
  int64_t info = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      double sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      if (i == j && !(sum > 0) && info == 0) info = j + 1;
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
    for (int64_t k = j + 1; k < n; ++k) a[j * n + k] = 0;
  }
  return info;
}

void cholesky(const CpuCall& call) {
  const bool upper = call.args.boolean(Arg::upper);
  const View self = call.args.tensor(Arg::self);
  const Dims batch = batch_of(self);
  Matrices a(upper ? turned(self) : self);
  std::vector<int64_t> info(static_cast<size_t>(numel(batch)));
  for (size_t i = 0; i < info.size(); ++i)
    info[i] = cholesky_one(a[static_cast<int64_t>(i)], a.rows);
  const View out = call.out(0);
  write(upper ? turned(out) : out, a.values);
  write(call.out(1), info);
}

// A triangle of an n x n matrix, or of its transpose.
struct Triangle {
  const double* a;
  int64_t n;
  bool upper, unit, transposed;
  double at(int64_t i, int64_t j) const { return transposed ? a[j * n + i] : a[i * n + j]; }
};

// x (n x k) = t^-1 x
void solve_one(const Triangle& t, double* x, int64_t k) {
  const bool upper = t.upper != t.transposed;
  for (int64_t step = 0; step < t.n; ++step) {
    const int64_t i = upper ? t.n - 1 - step : step;
    for (int64_t c = 0; c < k; ++c) {
      double sum = x[i * k + c];
      for (int64_t j = upper ? i + 1 : 0; j < (upper ? t.n : i); ++j)
        sum -= t.at(i, j) * x[j * k + c];
      x[i * k + c] = t.unit ? sum : sum / t.at(i, i);
    }
  }
}

// Solves for each matrix of the batch. With `left` false the right-hand sides are transposed.
template <typename Solve>
void solve_all(const CpuCall& call, const View& b, bool left, Solve&& solve) {
  const View out = call.out(0);
  Matrices x(left ? b : turned(b), batch_of(out));
  const int64_t count = numel(batch_of(out));
  for (int64_t i = 0; i < count; ++i) solve(i, x[i], x.columns);
  write(left ? out : turned(out), x.values);
}

void solve_triangular(const CpuCall& call) {
  const bool left = call.args.boolean(Arg::left);
  Matrices a(View(call.args.tensor(Arg::self)), batch_of(call.out(0)));
  solve_all(call, call.args.tensor(Arg::B), left, [&](int64_t i, double* x, int64_t k) {
    solve_one(
        {a[i], a.rows, call.args.boolean(Arg::upper), call.args.boolean(Arg::unitriangular), !left},
        x, k);
  });
}

void swap_rows(double* a, int64_t columns, int64_t i, int64_t j) {
  std::swap_ranges(a + i * columns, a + (i + 1) * columns, a + j * columns);
}

// a = P L U in place, by rows; pivots count from 1. Returns the first zero pivot, from 1, or 0.
int64_t lu_one(double* a, int64_t m, int64_t n, int64_t* pivots, bool pivot) {
  int64_t info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; pivot && i < m; ++i)
      if (std::abs(a[i * n + j]) > std::abs(a[best * n + j])) best = i;
    pivots[j] = best + 1;
    if (best != j) swap_rows(a, n, j, best);
    if (a[j * n + j] == 0) {
      if (info == 0) info = j + 1;
      continue;
    }
    for (int64_t i = j + 1; i < m; ++i) {
      const double factor = a[i * n + j] /= a[j * n + j];
      for (int64_t c = j + 1; c < n; ++c) a[i * n + c] -= factor * a[j * n + c];
    }
  }
  return info;
}

// x = A^-1 x or A^-T x
void lu_solve_one(const double* lu, const int64_t* pivots, int64_t n, double* x, int64_t k,
                  bool transposed) {
  if (!transposed) {
    for (int64_t i = 0; i < n; ++i)
      if (pivots[i] - 1 != i) swap_rows(x, k, i, pivots[i] - 1);
    solve_one({lu, n, false, true, false}, x, k);
    return solve_one({lu, n, true, false, false}, x, k);
  }
  solve_one({lu, n, true, false, true}, x, k);
  solve_one({lu, n, false, true, true}, x, k);
  for (int64_t i = n; i-- > 0;)
    if (pivots[i] - 1 != i) swap_rows(x, k, i, pivots[i] - 1);
}

struct Factored {
  Matrices a;
  std::vector<int64_t> pivots, info;
};
Factored lu_all(const View& self, bool pivot) {
  Factored f{Matrices(self), {}, {}};
  const int64_t count = numel(batch_of(self));
  const int64_t k = std::min(f.a.rows, f.a.columns);
  f.pivots.resize(static_cast<size_t>(count * k));
  for (int64_t i = 0; i < count; ++i)
    f.info.push_back(lu_one(f.a[i], f.a.rows, f.a.columns, f.pivots.data() + i * k, pivot));
  return f;
}

void lu_factor(const CpuCall& call) {
  const Factored f = lu_all(call.args.tensor(Arg::A), call.args.boolean(Arg::pivot));
  write(call.out(0), f.a.values);
  write(call.out(1), f.pivots);
  write(call.out(2), f.info);
}

void lu_solve(const CpuCall& call) {
  const bool left = call.args.boolean(Arg::left);
  const Dims batch = batch_of(call.out(0));
  Matrices lu(View(call.args.tensor(Arg::LU)), batch);
  Dims sizes = batch;
  sizes.push_back(lu.rows);
  const auto pivots = read<int64_t>(View(call.args.tensor(Arg::pivots)).broadcast_to(sizes));
  solve_all(call, call.args.tensor(Arg::B), left, [&](int64_t i, double* x, int64_t k) {
    lu_solve_one(lu[i], pivots.data() + i * lu.rows, lu.rows, x, k,
                 call.args.boolean(Arg::adjoint) == left);
  });
}

void inverse(const CpuCall& call) {
  const View self = call.args.tensor(Arg::A);
  Factored f = lu_all(self, true);
  const int64_t n = f.a.rows;
  const int64_t count = numel(batch_of(self));
  Matrices x(count, n, n);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = 0; d < n; ++d) x[i][d * n + d] = 1;
    lu_solve_one(f.a[i], f.pivots.data() + i * n, n, x[i], n, false);
  }
  write(call.out(0), x.values);
  write(call.out(1), f.info);
}

void lu_unpack(const CpuCall& call) {
  const View lu = call.args.tensor(Arg::LU_data);
  Matrices a{lu};
  const int64_t count = numel(batch_of(lu));
  const int64_t m = a.rows;
  const int64_t n = a.columns;
  const int64_t k = std::min(m, n);
  const auto pivots = read<int64_t>(View(call.args.tensor(Arg::LU_pivots)));
  Matrices p(count, m, m);
  Matrices l(count, m, k);
  Matrices u(count, k, n);
  for (int64_t b = 0; b < count; ++b) {
    std::vector<int64_t> order(static_cast<size_t>(m));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i < k; ++i)
      std::swap(order[static_cast<size_t>(i)],
                order[static_cast<size_t>(pivots[static_cast<size_t>(b * k + i)] - 1)]);
    for (int64_t i = 0; i < m; ++i) {
      p[b][order[static_cast<size_t>(i)] * m + i] = 1;
      for (int64_t j = 0; j < n; ++j) {
        const double v = a[b][i * n + j];
        if (j < i && j < k) l[b][i * k + j] = v;
        if (j >= i) u[b][i * n + j] = v;
      }
      if (i < k) l[b][i * k + i] = 1;
    }
  }
  if (call.wants(0)) write(call.out(0), p.values);
  if (call.wants(1)) write(call.out(1), l.values);
  if (call.wants(2)) write(call.out(2), u.values);
}

// Householder QR in place with LAPACK's signs: R, and the reflectors below the diagonal.
void qr_one(double* a, int64_t m, int64_t n, double* tau) {
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    double norm = 0;
    for (int64_t i = j + 1; i < m; ++i) norm = std::hypot(norm, a[i * n + j]);
    tau[j] = 0;
    if (norm == 0) continue;
    const double alpha = a[j * n + j];
    const double beta = -std::copysign(std::hypot(alpha, norm), alpha);
    tau[j] = (beta - alpha) / beta;
    for (int64_t i = j + 1; i < m; ++i) a[i * n + j] /= alpha - beta;
    for (int64_t c = j + 1; c < n; ++c) {
      double sum = a[j * n + c];
      for (int64_t i = j + 1; i < m; ++i) sum += a[i * n + j] * a[i * n + c];
      a[j * n + c] -= tau[j] * sum;
      for (int64_t i = j + 1; i < m; ++i) a[i * n + c] -= tau[j] * sum * a[i * n + j];
    }
    a[j * n + j] = beta;
  }
}

// q (m x columns, the identity before) = H0 H1 ... of k reflectors below the diagonal of a (m x n).
void make_q(const double* a, int64_t m, int64_t n, const double* tau, int64_t k, double* q,
            int64_t columns) {
  for (int64_t d = 0; d < std::min(m, columns); ++d) q[d * columns + d] = 1;
  for (int64_t j = k; j-- > 0;)
    for (int64_t c = 0; c < columns; ++c) {
      double sum = q[j * columns + c];
      for (int64_t i = j + 1; i < m; ++i) sum += a[i * n + j] * q[i * columns + c];
      q[j * columns + c] -= tau[j] * sum;
      for (int64_t i = j + 1; i < m; ++i) q[i * columns + c] -= tau[j] * sum * a[i * n + j];
    }
}

struct Reflected {
  Matrices a;
  int64_t count, k;
  std::vector<double> tau;
};
Reflected qr_all(const View& self) {
  Reflected f{Matrices(self), numel(batch_of(self)), 0, {}};
  f.k = std::min(f.a.rows, f.a.columns);
  f.tau.resize(static_cast<size_t>(f.count * f.k));
  for (int64_t i = 0; i < f.count; ++i)
    qr_one(f.a[i], f.a.rows, f.a.columns, f.tau.data() + i * f.k);
  return f;
}

void geqrf(const CpuCall& call) {
  const Reflected f = qr_all(call.args.tensor(Arg::self));
  write(call.out(0), f.a.values);
  write(call.out(1), f.tau);
}

void householder_product(const CpuCall& call) {
  Matrices a{View(call.args.tensor(Arg::input))};
  const auto tau = read<double>(View(call.args.tensor(Arg::tau)));
  const int64_t k = call.args.tensor(Arg::tau).size(-1);
  const int64_t count = numel(batch_of(call.out(0)));
  Matrices q(count, a.rows, a.columns);
  for (int64_t i = 0; i < count; ++i)
    make_q(a[i], a.rows, a.columns, tau.data() + i * k, k, q[i], a.columns);
  write(call.out(0), q.values);
}

void qr(const CpuCall& call) {
  Reflected f = qr_all(call.args.tensor(Arg::A));
  const int64_t m = f.a.rows;
  const int64_t n = f.a.columns;
  if (call.wants(0)) {
    const int64_t columns = call.specs[0].sizes.back();
    Matrices q(f.count, m, columns);
    for (int64_t i = 0; i < f.count; ++i)
      make_q(f.a[i], m, n, f.tau.data() + i * f.k, f.k, q[i], columns);
    write(call.out(0), q.values);
  }
  if (!call.wants(1)) return;
  const Dims& sizes = call.specs[1].sizes;
  Matrices r(f.count, sizes[sizes.size() - 2], n);
  for (int64_t b = 0; b < f.count; ++b)
    for (int64_t i = 0; i < f.k; ++i)
      for (int64_t j = i; j < n; ++j) r[b][i * n + j] = f.a[b][i * n + j];
  write(call.out(1), r.values);
}

constexpr CpuOperator kOperators[] = {
    {"linalg_cholesky_ex.L", cholesky},
    {"linalg_solve_triangular.out", solve_triangular},
    {"linalg_lu_factor_ex.out", lu_factor},
    {"linalg_lu_solve.out", lu_solve},
    {"linalg_inv_ex.inverse", inverse},
    {"lu_unpack.out", lu_unpack},
    {"geqrf.a", geqrf},
    {"linalg_householder_product.out", householder_product},
    {"linalg_qr.out", qr},
};

}  // namespace

std::span<const CpuOperator> linalg_operators() { return kOperators; }

}  // namespace ocltensor::cpu
