// Factorisations A = P L D L^T P^T (or L^H) of symmetric (or Hermitian) matrices by the diagonal
// pivoting of Bunch and Kaufman ("Some stable methods for calculating inertia and solving symmetric
// linear systems", 1977), in LAPACK's format, and solves with them. In complex double.
#include <algorithm>
#include <cmath>

#include "complex.h"
#include "matrices.h"

namespace ocltensor::cpu {
namespace {

double size(Number x) { return std::abs(x.real()) + std::abs(x.imag()); }

// A matrix of which the lower triangle is used, and its factors.
struct Ldl {
  Number* a;
  int64_t n;
  bool hermitian;
  int64_t info = 0;

  Number& at(int64_t i, int64_t j) const { return a[i * n + j]; }
  Number turned(Number x) const { return hermitian ? std::conj(x) : x; }
  double diagonal(int64_t i) const {
    return hermitian ? std::abs(at(i, i).real()) : size(at(i, i));
  }

  // Which row becomes the pivot, and whether with row k it becomes a block of two.
  std::pair<int64_t, bool> choose(int64_t k) {
    const double alpha = (1 + std::sqrt(17.0)) / 8;
    int64_t most = k;
    double column = 0, row = 0;
    for (int64_t i = k + 1; i < n; ++i)
      if (size(at(i, k)) > column) column = size(at(i, k)), most = i;
    const double here = diagonal(k);
    if (std::max(here, column) == 0 || std::isnan(here)) {
      if (info == 0) info = k + 1;
      return {k, false};
    }
    if (here >= alpha * column) return {k, false};
    for (int64_t j = k; j < n; ++j)
      if (j != most) row = std::max(row, size(j < most ? at(most, j) : at(j, most)));
    if (here >= alpha * column * (column / row)) return {k, false};
    if (diagonal(most) >= alpha * row) return {most, false};
    return {most, true};
  }

  void interchange(int64_t k, int64_t first, int64_t other) const {
    if (first == other) return;
    for (int64_t i = other + 1; i < n; ++i) std::swap(at(i, first), at(i, other));
    for (int64_t j = first + 1; j < other; ++j) {
      const Number held = turned(at(j, first));
      at(j, first) = turned(at(other, j));
      at(other, j) = held;
    }
    at(other, first) = turned(at(other, first));
    std::swap(at(first, first), at(other, other));
    if (first == k + 1) std::swap(at(first, k), at(other, k));
  }

  // Divides what is below a pivot of one or two rows by it, and subtracts from the rest.
  void eliminate(int64_t k, int64_t width) const {
    const int64_t first = k + width;
    std::vector<Number> x(static_cast<size_t>(2 * n));
    Number *x0 = x.data(), *x1 = x0 + n;
    if (width == 1 && at(k, k) == 0.0) return;
    for (int64_t j = first; j < n; ++j) {
      if (width == 1) {
        x0[j] = at(j, k) / at(k, k);
        continue;
      }
      const Number d00 = at(k, k), d11 = at(k + 1, k + 1), d10 = at(k + 1, k), d01 = turned(d10);
      const Number det = d00 / d10 * (d11 / d01) - 1.0;
      x0[j] = (at(j, k) * (d11 / d10) - at(j, k + 1)) / d01 / det;
      x1[j] = (at(j, k + 1) * (d00 / d01) - at(j, k)) / d10 / det;
    }
    for (int64_t i = first; i < n; ++i)
      for (int64_t j = first; j <= i; ++j) {
        at(i, j) -= at(i, k) * turned(x0[j]);
        if (width == 2) at(i, j) -= at(i, k + 1) * turned(x1[j]);
        if (hermitian && i == j) at(i, i) = at(i, i).real();
      }
    for (int64_t i = first; i < n; ++i) {
      at(i, k) = x0[i];
      if (width == 2) at(i, k + 1) = x1[i];
    }
  }

  void factor(int64_t* pivots) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = i + 1; j < n; ++j) at(i, j) = 0;
      if (hermitian) at(i, i) = at(i, i).real();
    }
    for (int64_t k = 0; k < n;) {
      const auto [row, two] = choose(k);
      const int64_t width = two ? 2 : 1;
      interchange(k, k + width - 1, row);
      eliminate(k, width);
      for (int64_t i = 0; i < width; ++i) pivots[k + i] = two ? -(row + 1) : row + 1;
      k += width;
    }
  }

  // b (n x columns) = A^-1 b
  void solve(const int64_t* pivots, Number* b, int64_t columns) const {
    const auto swap = [&](int64_t i, int64_t pivot) {
      const int64_t j = std::clamp<int64_t>(std::abs(pivot) - 1, 0, n - 1);
      if (i != j) std::swap_ranges(b + i * columns, b + (i + 1) * columns, b + j * columns);
    };
    const auto subtract = [&](int64_t to, Number factor, int64_t from) {
      for (int64_t c = 0; c < columns; ++c) b[to * columns + c] -= factor * b[from * columns + c];
    };
    std::vector<int64_t> starts;
    for (int64_t k = 0; k < n;) {
      starts.push_back(k);
      const int64_t width = pivots[k] < 0 && k + 1 < n ? 2 : 1;
      swap(k + width - 1, pivots[k]);
      for (int64_t i = k + width; i < n; ++i)
        for (int64_t j = k; j < k + width; ++j) subtract(i, at(i, j), j);
      for (int64_t c = 0; c < columns; ++c) divide(k, width, b + k * columns + c, columns);
      k += width;
    }
    for (; !starts.empty(); starts.pop_back()) {
      const int64_t k = starts.back();
      const int64_t width = pivots[k] < 0 && k + 1 < n ? 2 : 1;
      for (int64_t i = k + width; i < n; ++i)
        for (int64_t j = k; j < k + width; ++j) subtract(j, turned(at(i, j)), i);
      swap(k + width - 1, pivots[k]);
    }
  }
  void divide(int64_t k, int64_t width, Number* b, int64_t next) const {
    if (width == 1) {
      b[0] /= at(k, k);
      return;
    }
    const Number below = at(k + 1, k), above = turned(below);
    const Number d0 = at(k, k) / above, d1 = at(k + 1, k + 1) / below;
    const Number b0 = b[0] / above, b1 = b[next] / below;
    b[0] = (d1 * b0 - b1) / (d0 * d1 - 1.0);
    b[next] = (d0 * b1 - b0) / (d0 * d1 - 1.0);
  }
};

bool is_hermitian(const CpuCall& call, const View& a) {
  return call.args.boolean(Arg::hermitian) && is_complex(a.type);
}

void factor(const CpuCall& call) {
  const View self = call.args.tensor(Arg::self);
  const int64_t n = self.sizes.back();
  auto a = read_numbers(self);
  const int64_t count = numel(batch_of(self));
  std::vector<int64_t> pivots(static_cast<size_t>(count * n)), info;
  for (int64_t i = 0; i < count; ++i) {
    Ldl ldl{a.data() + i * n * n, n, is_hermitian(call, self)};
    ldl.factor(pivots.data() + i * n);
    info.push_back(ldl.info);
  }
  write_numbers(call.out(0), a);
  write(call.out(1), pivots);
  write(call.out(2), info);
}

void solve(const CpuCall& call) {
  const View ld = call.args.tensor(Arg::LD);
  const View out = call.out(0);
  const Dims batch = batch_of(out);
  const int64_t n = ld.sizes.back();
  Dims square = batch, vector = batch;
  square.push_back(n);
  square.push_back(n);
  vector.push_back(n);
  auto a = read_numbers(ld.broadcast_to(square));
  auto b = read_numbers(View(call.args.tensor(Arg::B)).broadcast_to(out.sizes));
  const auto pivots = read<int64_t>(View(call.args.tensor(Arg::pivots)).broadcast_to(vector));
  const int64_t columns = out.sizes.back();
  for (int64_t i = 0; i < numel(batch); ++i)
    Ldl{a.data() + i * n * n, n, is_hermitian(call, ld)}.solve(pivots.data() + i * n,
                                                               b.data() + i * n * columns, columns);
  write_numbers(out, b);
}

constexpr CpuOperator kOperators[] = {{"linalg_ldl_factor_ex.out", factor, factor},
                                      {"linalg_ldl_solve.out", solve, solve}};

}  // namespace

std::span<const CpuOperator> ldl_operators() { return kOperators; }

}  // namespace ocltensor::cpu
