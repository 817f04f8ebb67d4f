// Cases of eigenvalues of general matrices and of LDL^T: well-conditioned matrices, of whose
// results only what is unique is compared.
#include "linalg_general.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace ocltensor::testing {
namespace {

using Number = std::complex<double>;
using Matrix = std::vector<Number>;  // n x n, by rows

Dims joined(Dims batch, std::initializer_list<int64_t> last) {
  for (const int64_t s : last) batch.push_back(s);
  return batch;
}

int64_t choose_size(Draw& draw) {
  const SizeMode mode = draw.size_mode();
  return draw.extent(mode == SizeMode::Large ? 70 : mode == SizeMode::Medium ? 40 : 9, true);
}
Dims choose_batch(Draw& draw) {
  Dims batch;
  for (int64_t d = draw.rng.range(0, draw.size_mode() == SizeMode::Large ? 1 : 3); d > 0; --d)
    batch.push_back(draw.rng.range(draw.size_mode() == SizeMode::Edge ? 0 : 1, 3));
  return batch;
}

Number get(const HostTensor& t, int64_t i) {
  return is_complex(t.dtype) ? t.complex(i) : Number(t.real(i));
}
void put(HostTensor& t, int64_t i, Number value) {
  if (is_complex(t.dtype))
    t.set_complex(i, value);
  else
    t.set(i, value.real());
}
// Real and imaginary parts in the last dimension.
HostTensor parts_of(const Dims& sizes, const std::vector<Number>& numbers) {
  HostTensor t(DType::Float64, joined(sizes, {2}));
  for (size_t i = 0; i < numbers.size(); ++i) {
    t.set(static_cast<int64_t>(2 * i), numbers[i].real());
    t.set(static_cast<int64_t>(2 * i + 1), numbers[i].imag());
  }
  return t;
}

// ---- eigenvalues

// Diagonal blocks with eigenvalues 2 apart and small elements elsewhere, in another order: the
// matrix of eigenvectors has a condition number of a few units. Or a diagonal, ones, zeros.
void fill_for_eig(HostTensor& t, int64_t first, int64_t n, Draw& draw) {
  const int64_t kind = draw.rng.range(0, 7);
  const bool complex = is_complex(t.dtype);
  Matrix a(static_cast<size_t>(n * n));
  const auto at = [&](int64_t i, int64_t j) -> Number& {
    return a[static_cast<size_t>(i * n + j)];
  };
  const auto random = [&] {
    return Number(draw.rng.uniform(-1, 1), complex ? draw.rng.uniform(-1, 1) : 0);
  };
  for (int64_t i = 0; i < n; ++i) {
    if (kind > 2)
      for (int64_t j = 0; j < n; ++j) at(i, j) = 0.5 * random() / static_cast<double>(n);
    at(i, i) = kind == 0 ? 0.0 : kind == 1 ? 1.0 : static_cast<double>(2 * i - n);
  }
  for (int64_t i = 0; kind > 2 && i + 1 < n; i += 2)
    if (draw.rng.chance(0.5)) {  // a pair of conjugate eigenvalues
      const double turn = draw.rng.uniform(0.5, 1.5);
      at(i + 1, i + 1) = at(i, i);
      at(i, i + 1) = turn;
      at(i + 1, i) = -turn;
    }
  std::vector<int64_t> order(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) order[static_cast<size_t>(i)] = i;
  draw.rng.shuffle(order);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j)
      put(t, first + i * n + j, at(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]));
}

// The eigenvalues of each matrix in an order that rounding errors do not change.
HostTensor sorted(const HostTensor& values) {
  std::vector<Number> all;
  const int64_t n = values.sizes.back();
  const auto key = [](Number z) { return z.real() + 0.7318 * z.imag(); };
  for (int64_t i = 0; i < values.numel(); ++i) all.push_back(values.complex(i));
  for (int64_t first = 0; n > 0 && first < values.numel(); first += n)
    std::sort(all.begin() + first, all.begin() + first + n,
              [&](Number x, Number y) { return key(x) < key(y); });
  return parts_of(values.sizes, all);
}

// x = x a^-1 by elimination with pivoting among columns.
void divide(Matrix& x, Matrix a, int64_t n) {
  const auto at = [n](Matrix& m, int64_t i, int64_t j) -> Number& {
    return m[static_cast<size_t>(i * n + j)];
  };
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t j = k; j < n; ++j)
      if (std::abs(at(a, k, j)) > std::abs(at(a, k, best))) best = j;
    const Number pivot = at(a, k, best);
    for (Matrix* m : {&a, &x})
      for (int64_t i = 0; i < n; ++i) {
        std::swap(at(*m, i, k), at(*m, i, best));
        at(*m, i, k) /= pivot;
      }
    for (int64_t j = 0; j < n; ++j) {
      const Number factor = at(a, k, j);
      if (j == k || factor == 0.0) continue;
      for (Matrix* m : {&a, &x})
        for (int64_t i = 0; i < n; ++i) at(*m, i, j) -= factor * at(*m, i, k);
    }
  }
}

// Of L and V: V L V^-1, L in order, and the lengths of the vectors.
std::vector<HostTensor> unique_of_eig(const std::vector<HostTensor>& outs) {
  const HostTensor &l = outs[0], &v = outs[1];
  const int64_t n = l.sizes.back();
  std::vector<Number> products;
  HostTensor lengths(DType::Float64, l.sizes);
  for (int64_t m = 0; n > 0 && m < l.numel() / n; ++m) {
    Matrix vectors, scaled;
    std::vector<double> squares(static_cast<size_t>(n));
    for (int64_t i = 0; i < n * n; ++i) {
      vectors.push_back(v.complex(m * n * n + i));
      scaled.push_back(vectors.back() * l.complex(m * n + i % n));
      squares[static_cast<size_t>(i % n)] += std::norm(vectors.back());
    }
    for (int64_t i = 0; i < n; ++i)
      lengths.set(m * n + i, std::sqrt(squares[static_cast<size_t>(i)]));
    divide(scaled, vectors, n);
    products.insert(products.end(), scaled.begin(), scaled.end());
  }
  return {parts_of(v.sizes, products), sorted(l), lengths};
}
std::vector<HostTensor> unique_of_eigvals(const std::vector<HostTensor>& outs) {
  return {sorted(outs[0])};
}

void make_eig(Case& c, DType dtype, Draw& draw, bool vectors) {
  const int64_t n = choose_size(draw);
  HostTensor a(dtype, joined(choose_batch(draw), {n, n}));
  for (int64_t first = 0; n > 0 && first < a.numel(); first += n * n)
    fill_for_eig(a, first, n, draw);
  c.set("self", draw.place(std::move(a)));
  c.unique = vectors ? unique_of_eig : unique_of_eigvals;
  c.tolerance = {{Scale::Largest, 32, static_cast<double>(n) + 1, 1, nullptr,
                  "backward stable, eigenvectors of condition numbers below 10"}};
}

// ---- LDL^T

// The matrix that factors represent: D, then from the last block to the first one L X L^T with its
// interchange. A complex diagonal without imaginary parts is that of a Hermitian matrix.
Matrix multiply_out(const HostTensor& ld, const HostTensor& pivots, int64_t m, int64_t n) {
  const auto factor = [&](int64_t i, int64_t j) { return get(ld, (m * n + i) * n + j); };
  bool hermitian = is_complex(ld.dtype);
  for (int64_t i = 0; i < n; ++i) hermitian &= factor(i, i).imag() == 0;
  const auto turned = [&](Number z) { return hermitian ? std::conj(z) : z; };
  Matrix x(static_cast<size_t>(n * n));
  const auto at = [&](int64_t i, int64_t j) -> Number& {
    return x[static_cast<size_t>(i * n + j)];
  };
  std::vector<int64_t> starts;
  for (int64_t k = 0; k < n; k += pivots.integer(m * n + k) < 0 ? 2 : 1) starts.push_back(k);
  for (int64_t i = 0; i < n; ++i) at(i, i) = factor(i, i);
  for (; !starts.empty(); starts.pop_back()) {
    const int64_t k = starts.back(), pivot = pivots.integer(m * n + k);
    const int64_t width = pivot < 0 ? 2 : 1, row = k + width - 1, other = std::abs(pivot) - 1;
    if (width == 2) {
      at(k + 1, k) = factor(k + 1, k);
      at(k, k + 1) = turned(factor(k + 1, k));
    }
    for (int64_t i = k + width; i < n; ++i)
      for (int64_t c = k; c < n; ++c)
        for (int64_t j = k; j < k + width; ++j) at(i, c) += factor(i, j) * at(j, c);
    for (int64_t i = k + width; i < n; ++i)
      for (int64_t r = k; r < n; ++r)
        for (int64_t j = k; j < k + width; ++j) at(r, i) += turned(factor(i, j)) * at(r, j);
    for (int64_t c = 0; c < n; ++c) std::swap(at(row, c), at(other, c));
    for (int64_t r = 0; r < n; ++r) std::swap(at(r, row), at(r, other));
  }
  return x;
}

std::vector<HostTensor> unique_of_ldl(const std::vector<HostTensor>& outs) {
  const int64_t n = outs[1].sizes.back();
  std::vector<Number> all;
  for (int64_t m = 0; n > 0 && m < outs[1].numel() / n; ++m) {
    const Matrix a = multiply_out(outs[0], outs[1], m, n);
    all.insert(all.end(), a.begin(), a.end());
  }
  return {parts_of(outs[0].sizes, all), outs[2].to(DType::Float64)};
}

void make_factor(Case& c, DType dtype, Draw& draw) {
  const int64_t n = choose_size(draw);
  HostTensor a = draw.values(dtype, joined(choose_batch(draw), {n, n}), {-3, 3, 0, false, false});
  const bool no_diagonal = draw.rng.chance(0.3);  // pivots are blocks of two
  for (int64_t i = 0; i < a.numel(); ++i)
    if (i / n % n == i % n) {
      const double own = no_diagonal ? 0 : get(a, i).real();
      put(a, i, n == 1 ? Number(2) : Number(own, 0.25));
    }
  c.set("self", draw.place(std::move(a)));
  c.set("hermitian", Scalar(draw.rng.chance(0.5)));
  c.unique = unique_of_ldl;
  c.tolerance = {{Scale::Largest, 32, static_cast<double>(n) + 1, 1, nullptr,
                  "backward stable with diagonal pivoting, which lets elements grow a little"}};
}

// Factors whose condition numbers are small, with interchanges and blocks of two.
void fill_factors(HostTensor& ld, HostTensor& pivots, int64_t m, int64_t n, bool hermitian,
                  Draw& draw) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t at = (m * n + i) * n + j;
      put(ld, at, get(ld, at) / static_cast<double>(n));
    }
  for (int64_t k = 0; k < n;) {
    const bool two = k + 1 < n && draw.rng.chance(0.4);
    const int64_t width = two ? 2 : 1, row = draw.rng.range(k + width - 1, n - 1) + 1;
    for (int64_t i = k; i < k + width; ++i) {
      const double sign = draw.rng.chance(0.5) ? 1 : -1;
      put(ld, (m * n + i) * n + i, Number(sign * (two ? 0.3 : 2), hermitian ? 0 : 0.1));
      pivots.set_integer(m * n + i, two ? -row : row);
    }
    if (two) put(ld, (m * n + k + 1) * n + k, Number(draw.rng.uniform(1, 2), 0.3));
    k += width;
  }
}

void make_solve(Case& c, DType dtype, Draw& draw) {
  const int64_t n = choose_size(draw);
  const Dims batch = choose_batch(draw);
  const bool hermitian = draw.rng.chance(0.5);
  const Dims own = draw.rng.chance(0.6) ? batch : draw.broadcastable(batch);
  HostTensor ld = draw.values(dtype, joined(own, {n, n}), {-1, 1, 0, false, false});
  HostTensor pivots(DType::Int32, joined(own, {n}));
  for (int64_t m = 0; m < numel(own); ++m) fill_factors(ld, pivots, m, n, hermitian, draw);
  c.set("LD", draw.place(std::move(ld)));
  c.set("pivots", draw.place(std::move(pivots)));
  const Dims others = draw.rng.chance(0.6) ? batch : draw.broadcastable(batch);
  c.set("B",
        draw.tensor(dtype, joined(others, {n, draw.extent(9, true)}), {-3, 3, 0, false, false}));
  c.set("hermitian", Scalar(hermitian));
  c.tolerance = {{Scale::Largest, 16, static_cast<double>(n) + 1, 1, nullptr,
                  "backward stable, condition number of a few units"}};
}

}  // namespace

bool is_general(const Operator& op) {
  const std::string& name = op.schema.name;
  return name.starts_with("linalg_eig") || name.starts_with("linalg_ldl");
}

Case make_general(const Operator& op, DType dtype, Draw& draw) {
  Case c = make_case(op, dtype);
  const std::string& name = op.schema.name;
  if (name == "linalg_ldl_factor_ex")
    make_factor(c, dtype, draw);
  else if (name == "linalg_ldl_solve")
    make_solve(c, dtype, draw);
  else
    make_eig(c, dtype, draw, name == "linalg_eig");
  return c;
}

}  // namespace ocltensor::testing
