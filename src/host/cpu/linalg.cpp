// Dense linear algebra by textbook algorithms, one matrix after the other: N is double or a complex
// number of two.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "matrices.h"

namespace ocltensor::cpu {
namespace {

// Lower triangle of a becomes L of a = L L^H. Returns the first column whose pivot is not positive,
// from 1, or 0. Imaginary parts of the diagonal are not read.
template <typename N>
int64_t cholesky_one(N* a, int64_t n) {
  int64_t info = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = j; i < n; ++i) {
      N sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * conjugate(a[j * n + k]);
      if (i == j && !(std::real(sum) > 0) && info == 0) info = j + 1;
      a[i * n + j] = i == j ? N(std::sqrt(std::real(sum))) : sum / a[j * n + j];
    }
    for (int64_t k = j + 1; k < n; ++k) a[j * n + k] = 0;
  }
  return info;
}

template <typename N>
void cholesky(const CpuCall& call) {
  const bool upper = call.args.boolean(Arg::upper);
  const View self = call.args.tensor(Arg::self);
  const Dims batch = batch_of(self);
  // A's other triangle is the conjugate of this one's transpose, so that U is L's transpose for it.
  Matrices<N> a(upper ? turned(self) : self);
  std::vector<int64_t> info(static_cast<size_t>(numel(batch)));
  for (size_t i = 0; i < info.size(); ++i)
    info[i] = cholesky_one(a[static_cast<int64_t>(i)], a.rows);
  const View out = call.out(0);
  write_as(upper ? turned(out) : out, a.values);
  write(call.out(1), info);
}

// A triangle of an n x n matrix, or of its transpose, or the conjugate of either.
template <typename N>
struct Triangle {
  const N* a;
  int64_t n;
  bool upper, unit, transposed, conjugated = false;
  N at(int64_t i, int64_t j) const {
    const N x = transposed ? a[j * n + i] : a[i * n + j];
    return conjugated ? conjugate(x) : x;
  }
};

// x (n x k) = t^-1 x
template <typename N>
void solve_one(const Triangle<N>& t, N* x, int64_t k) {
  const bool upper = t.upper != t.transposed;
  for (int64_t step = 0; step < t.n; ++step) {
    const int64_t i = upper ? t.n - 1 - step : step;
    for (int64_t c = 0; c < k; ++c) {
      N sum = x[i * k + c];
      for (int64_t j = upper ? i + 1 : 0; j < (upper ? t.n : i); ++j)
        sum -= t.at(i, j) * x[j * k + c];
      x[i * k + c] = t.unit ? sum : sum / t.at(i, i);
    }
  }
}

// Solves for each matrix of the batch. With `left` false the right-hand sides are transposed.
template <typename N, typename Solve>
void solve_all(const CpuCall& call, const View& b, bool left, Solve&& solve) {
  const View out = call.out(0);
  Matrices<N> x(left ? b : turned(b), batch_of(out));
  const int64_t count = numel(batch_of(out));
  for (int64_t i = 0; i < count; ++i) solve(i, x[i], x.columns);
  write_as(left ? out : turned(out), x.values);
}

template <typename N>
void solve_triangular(const CpuCall& call) {
  const bool left = call.args.boolean(Arg::left);
  Matrices<N> a(View(call.args.tensor(Arg::self)), batch_of(call.out(0)));
  solve_all<N>(call, call.args.tensor(Arg::B), left, [&](int64_t i, N* x, int64_t k) {
    solve_one<N>(
        {a[i], a.rows, call.args.boolean(Arg::upper), call.args.boolean(Arg::unitriangular), !left},
        x, k);
  });
}

template <typename N>
void swap_rows(N* a, int64_t columns, int64_t i, int64_t j) {
  std::swap_ranges(a + i * columns, a + (i + 1) * columns, a + j * columns);
}

// a = P L U in place, by rows; pivots count from 1. Returns the first zero pivot, from 1, or 0.
template <typename N>
int64_t lu_one(N* a, int64_t m, int64_t n, int64_t* pivots, bool pivot) {
  int64_t info = 0;
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; pivot && i < m; ++i)
      if (part_sum(a[i * n + j]) > part_sum(a[best * n + j])) best = i;
    pivots[j] = best + 1;
    if (best != j) swap_rows(a, n, j, best);
    if (a[j * n + j] == 0.0) {
      if (info == 0) info = j + 1;
      continue;
    }
    for (int64_t i = j + 1; i < m; ++i) {
      const N factor = a[i * n + j] /= a[j * n + j];
      for (int64_t c = j + 1; c < n; ++c) a[i * n + c] -= factor * a[j * n + c];
    }
  }
  return info;
}

// Which matrix an LU factorisation stands for: A, or its transpose, or the conjugate of either.
struct Form {
  bool transposed, conjugated;
};
// x = B^-1 x for the form B of A
template <typename N>
void lu_solve_one(const N* lu, const int64_t* pivots, int64_t n, N* x, int64_t k, Form form) {
  const bool conjugated = form.conjugated;
  if (!form.transposed) {
    for (int64_t i = 0; i < n; ++i)
      if (pivots[i] - 1 != i) swap_rows(x, k, i, pivots[i] - 1);
    solve_one<N>({lu, n, false, true, false, conjugated}, x, k);
    return solve_one<N>({lu, n, true, false, false, conjugated}, x, k);
  }
  solve_one<N>({lu, n, true, false, true, conjugated}, x, k);
  solve_one<N>({lu, n, false, true, true, conjugated}, x, k);
  for (int64_t i = n; i-- > 0;)
    if (pivots[i] - 1 != i) swap_rows(x, k, i, pivots[i] - 1);
}

template <typename N>
struct Factored {
  Matrices<N> a;
  std::vector<int64_t> pivots, info;
};
template <typename N>
Factored<N> lu_all(const View& self, bool pivot) {
  Factored<N> f{Matrices<N>(self), {}, {}};
  const int64_t count = numel(batch_of(self));
  const int64_t k = std::min(f.a.rows, f.a.columns);
  f.pivots.resize(static_cast<size_t>(count * k));
  for (int64_t i = 0; i < count; ++i)
    f.info.push_back(lu_one(f.a[i], f.a.rows, f.a.columns, f.pivots.data() + i * k, pivot));
  return f;
}

template <typename N>
void lu_factor(const CpuCall& call) {
  const Factored<N> f = lu_all<N>(call.args.tensor(Arg::A), call.args.boolean(Arg::pivot));
  write_as(call.out(0), f.a.values);
  write(call.out(1), f.pivots);
  write(call.out(2), f.info);
}

template <typename N>
void lu_solve(const CpuCall& call) {
  const bool left = call.args.boolean(Arg::left);
  const Dims batch = batch_of(call.out(0));
  Matrices<N> lu(View(call.args.tensor(Arg::LU)), batch);
  Dims sizes = batch;
  sizes.push_back(lu.rows);
  const auto pivots = read<int64_t>(View(call.args.tensor(Arg::pivots)).broadcast_to(sizes));
  solve_all<N>(call, call.args.tensor(Arg::B), left, [&](int64_t i, N* x, int64_t k) {
    const bool adjoint = call.args.boolean(Arg::adjoint);
    lu_solve_one(lu[i], pivots.data() + i * lu.rows, lu.rows, x, k, {adjoint == left, adjoint});
  });
}

template <typename N>
void solve(const CpuCall& call) {
  const View a = call.args.tensor(Arg::A);
  const bool left = call.args.boolean(Arg::left);
  Factored<N> own = lu_all<N>(a, true);
  const int64_t n = own.a.rows;
  write_as(call.out(1), own.a.values);
  write(call.out(2), own.pivots);
  write(call.out(3), own.info);
  Dims sizes = batch_of(call.out(0));
  for (const int64_t s : {n, n}) sizes.push_back(s);
  Factored<N> each = sizes == a.sizes ? std::move(own) : lu_all<N>(a.broadcast_to(sizes), true);
  solve_all<N>(call, call.args.tensor(Arg::B), left, [&](int64_t i, N* x, int64_t k) {
    lu_solve_one(each.a[i], each.pivots.data() + i * n, n, x, k, {!left, false});
  });
}

template <typename N>
void inverse(const CpuCall& call) {
  const View self = call.args.tensor(Arg::A);
  Factored<N> f = lu_all<N>(self, true);
  const int64_t n = f.a.rows;
  const int64_t count = numel(batch_of(self));
  Matrices<N> x(count, n, n);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t d = 0; d < n; ++d) x[i][d * n + d] = 1;
    lu_solve_one(f.a[i], f.pivots.data() + i * n, n, x[i], n, {false, false});
  }
  write_as(call.out(0), x.values);
  write(call.out(1), f.info);
}

template <typename N>
void lu_unpack(const CpuCall& call) {
  const View lu = call.args.tensor(Arg::LU_data);
  Matrices<N> a{lu};
  const int64_t count = numel(batch_of(lu));
  const int64_t m = a.rows;
  const int64_t n = a.columns;
  const int64_t k = std::min(m, n);
  const auto pivots = read<int64_t>(View(call.args.tensor(Arg::LU_pivots)));
  Matrices<N> p(count, m, m);
  Matrices<N> l(count, m, k);
  Matrices<N> u(count, k, n);
  for (int64_t b = 0; b < count; ++b) {
    std::vector<int64_t> order(static_cast<size_t>(m));
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = 0; i < k; ++i)
      std::swap(order[static_cast<size_t>(i)],
                order[static_cast<size_t>(pivots[static_cast<size_t>(b * k + i)] - 1)]);
    for (int64_t i = 0; i < m; ++i) {
      p[b][order[static_cast<size_t>(i)] * m + i] = 1;
      for (int64_t j = 0; j < n; ++j) {
        const N v = a[b][i * n + j];
        if (j < i && j < k) l[b][i * k + j] = v;
        if (j >= i) u[b][i * n + j] = v;
      }
      if (i < k) l[b][i * k + i] = 1;
    }
  }
  if (call.wants(0)) write_as(call.out(0), p.values);
  if (call.wants(1)) write_as(call.out(1), l.values);
  if (call.wants(2)) write_as(call.out(2), u.values);
}

// Householder QR in place with LAPACK's signs: R with a real diagonal, and below it the reflectors
// v of H = I - tau v v^H, whose adjoints are applied one after the other.
template <typename N>
void qr_one(N* a, int64_t m, int64_t n, N* tau) {
  for (int64_t j = 0; j < std::min(m, n); ++j) {
    double norm = 0;
    for (int64_t i = j + 1; i < m; ++i) norm = std::hypot(norm, std::abs(a[i * n + j]));
    tau[j] = 0;
    const N alpha = a[j * n + j];
    if (norm == 0 && std::imag(alpha) == 0) continue;
    const double beta = -std::copysign(std::hypot(std::abs(alpha), norm), std::real(alpha));
    tau[j] = (beta - alpha) / beta;
    for (int64_t i = j + 1; i < m; ++i) a[i * n + j] /= alpha - beta;
    for (int64_t c = j + 1; c < n; ++c) {
      N sum = a[j * n + c];
      for (int64_t i = j + 1; i < m; ++i) sum += conjugate(a[i * n + j]) * a[i * n + c];
      sum *= conjugate(tau[j]);
      a[j * n + c] -= sum;
      for (int64_t i = j + 1; i < m; ++i) a[i * n + c] -= sum * a[i * n + j];
    }
    a[j * n + j] = beta;
  }
}

// q (m x columns, the identity before) = H0 H1 ... of k reflectors below the diagonal of a (m x n).
template <typename N>
void make_q(const N* a, int64_t m, int64_t n, const N* tau, int64_t k, N* q, int64_t columns) {
  for (int64_t d = 0; d < std::min(m, columns); ++d) q[d * columns + d] = 1;
  for (int64_t j = k; j-- > 0;)
    for (int64_t c = 0; c < columns; ++c) {
      N sum = q[j * columns + c];
      for (int64_t i = j + 1; i < m; ++i) sum += conjugate(a[i * n + j]) * q[i * columns + c];
      sum *= tau[j];
      q[j * columns + c] -= sum;
      for (int64_t i = j + 1; i < m; ++i) q[i * columns + c] -= sum * a[i * n + j];
    }
}

template <typename N>
struct Reflected {
  Matrices<N> a;
  int64_t count, k;
  std::vector<N> tau;
};
template <typename N>
Reflected<N> qr_all(const View& self) {
  Reflected<N> f{Matrices<N>(self), numel(batch_of(self)), 0, {}};
  f.k = std::min(f.a.rows, f.a.columns);
  f.tau.resize(static_cast<size_t>(f.count * f.k));
  for (int64_t i = 0; i < f.count; ++i)
    qr_one(f.a[i], f.a.rows, f.a.columns, f.tau.data() + i * f.k);
  return f;
}

template <typename N>
void geqrf(const CpuCall& call) {
  const Reflected<N> f = qr_all<N>(call.args.tensor(Arg::self));
  write_as(call.out(0), f.a.values);
  write_as(call.out(1), f.tau);
}

template <typename N>
void householder_product(const CpuCall& call) {
  Matrices<N> a{View(call.args.tensor(Arg::input))};
  const auto tau = read_as<N>(View(call.args.tensor(Arg::tau)));
  const int64_t k = call.args.tensor(Arg::tau).size(-1);
  const int64_t count = numel(batch_of(call.out(0)));
  Matrices<N> q(count, a.rows, a.columns);
  for (int64_t i = 0; i < count; ++i)
    make_q(a[i], a.rows, a.columns, tau.data() + i * k, k, q[i], a.columns);
  write_as(call.out(0), q.values);
}

template <typename N>
void qr(const CpuCall& call) {
  Reflected<N> f = qr_all<N>(call.args.tensor(Arg::A));
  const int64_t m = f.a.rows;
  const int64_t n = f.a.columns;
  if (call.wants(0)) {
    const int64_t columns = call.specs[0].sizes.back();
    Matrices<N> q(f.count, m, columns);
    for (int64_t i = 0; i < f.count; ++i)
      make_q(f.a[i], m, n, f.tau.data() + i * f.k, f.k, q[i], columns);
    write_as(call.out(0), q.values);
  }
  if (!call.wants(1)) return;
  const Dims& sizes = call.specs[1].sizes;
  Matrices<N> r(f.count, sizes[sizes.size() - 2], n);
  for (int64_t b = 0; b < f.count; ++b)
    for (int64_t i = 0; i < f.k; ++i)
      for (int64_t j = i; j < n; ++j) r[b][i * n + j] = f.a[b][i * n + j];
  write_as(call.out(1), r.values);
}

template <typename N>
constexpr std::array<CpuOperator, 10> kRows = {{
    {"linalg_cholesky_ex.L", cholesky<N>},
    {"linalg_solve_triangular.out", solve_triangular<N>},
    {"linalg_lu_factor_ex.out", lu_factor<N>},
    {"linalg_lu_solve.out", lu_solve<N>},
    {"_linalg_solve_ex.result", solve<N>},
    {"linalg_inv_ex.inverse", inverse<N>},
    {"lu_unpack.out", lu_unpack<N>},
    {"geqrf.a", geqrf<N>},
    {"linalg_householder_product.out", householder_product<N>},
    {"linalg_qr.out", qr<N>},
}};
constexpr auto kOperators = for_both(kRows<double>, kRows<Number>);

}  // namespace

std::span<const CpuOperator> linalg_operators() {
  static const auto all =
      joined({kOperators, eig_operators(), eigh_operators(), ldl_operators(), svd_operators()});
  return all;
}

}  // namespace ocltensor::cpu
