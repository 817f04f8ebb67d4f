// Cases of the linalg family: matrices whose factorisations are well determined.
#include <cmath>
#include <complex>

#include "linalg_general.h"
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

bool accepts(const Operator&, DType dtype) {
  const DType part = is_complex(dtype) ? real_type(dtype) : dtype;
  return part == DType::Float32 || part == DType::Float64;
}

using Number = std::complex<double>;
Number number(const HostTensor& t, int64_t i) {
  return is_complex(t.dtype) ? t.complex(i) : Number(t.real(i));
}
void put(HostTensor& t, int64_t i, Number value) {
  is_complex(t.dtype) ? t.set_complex(i, value) : t.set(i, value.real());
}
// A number of size 1: a sign, or for complex numbers a power of i.
Number direction(Draw& draw, DType dtype) {
  const double sign = draw.rng.chance(0.5) ? 1 : -1;
  return is_complex(dtype) && draw.rng.chance(0.5) ? Number(0, sign) : Number(sign);
}

// How far a result of n steps may be off, of its largest element: backward stable algorithms lose
// n eps times the condition number, and diagonals of 2 n make that one at most 3. Roundings add up
// like a random walk.
constexpr const char* kWhy = "backward stable, condition number below 4";
Tolerance factor_of(int64_t n) {
  return {Scale::Largest, 16, static_cast<double>(n) + 1, 1, nullptr, kWhy};
}

struct Sizes {
  Dims batch;
  int64_t m, n, k;
};

Dims joined(Dims batch, std::initializer_list<int64_t> last) {
  for (const int64_t s : last) batch.push_back(s);
  return batch;
}

Sizes choose(Draw& draw) {
  Sizes s;
  const bool large = draw.size_mode() == SizeMode::Large;
  const int64_t limit = large ? 130 : draw.size_mode() == SizeMode::Medium ? 50 : 9;
  for (int64_t d = draw.rng.range(0, large ? 1 : 3); d > 0; --d)
    s.batch.push_back(draw.size_mode() == SizeMode::Edge ? draw.rng.range(0, 2)
                                                         : draw.rng.range(1, 3));
  s.m = draw.extent(limit, true);
  s.n = draw.extent(limit, true);
  s.k = draw.extent(limit, true);
  return s;
}

// Off-diagonal elements whose parts are in (-1, 1), a diagonal of 2 n in any direction; rows in
// random order.
HostTensor dominant(Draw& draw, DType dtype, const Dims& batch, int64_t m, int64_t n,
                    bool shuffled) {
  HostTensor t = draw.values(dtype, joined(batch, {m, n}), {-1, 1, 0, false, false});
  if (m * n == 0) return t;
  std::vector<int64_t> rows(static_cast<size_t>(m));
  for (int64_t first = 0; first < t.numel(); first += m * n) {
    for (int64_t i = 0; i < m; ++i) rows[static_cast<size_t>(i)] = i;
    if (shuffled) draw.rng.shuffle(rows);
    for (int64_t i = 0; i < std::min(m, n); ++i)
      put(t, first + rows[static_cast<size_t>(i)] * n + i,
          static_cast<double>(2 * std::max(m, n)) * direction(draw, dtype));
  }
  return t;
}

// Hermitian as far as it is read: the other triangle, and the imaginary parts of the diagonal, hold
// other numbers.
HostTensor positive(Draw& draw, DType dtype, const Sizes& s) {
  HostTensor t = dominant(draw, dtype, s.batch, s.n, s.n, false);
  for (int64_t i = 0; i < t.numel(); ++i)
    if (i / s.n % s.n == i % s.n) put(t, i, Number(std::abs(number(t, i)), 1));
  return t;
}

HostTensor interchanges(Draw& draw, const Dims& batch, int64_t m, int64_t k) {
  HostTensor t(DType::Int32, joined(batch, {k}));
  for (int64_t i = 0; i < t.numel(); ++i) t.set_integer(i, draw.rng.range(i % k, m - 1) + 1);
  return t;
}

Dims some_of(Draw& draw, const Dims& batch) {
  return draw.rng.chance(0.6) ? batch : draw.broadcastable(batch);
}

void make_solve(Case& c, DType dtype, Draw& draw, const Sizes& s, bool lu) {
  const bool left = draw.rng.chance(0.5);
  c.set("left", Scalar(left));
  const Dims batch = some_of(draw, s.batch);
  c.set(lu ? "LU" : "self", draw.place(dominant(draw, dtype, batch, s.n, s.n, false)));
  c.set("B",
        draw.tensor(dtype, joined(some_of(draw, s.batch), {left ? s.n : s.k, left ? s.k : s.n}),
                    {-3, 3, 0, false, false}));
  if (lu) {
    c.set("pivots", draw.place(interchanges(draw, batch, s.n, s.n)));
    c.set("adjoint", Scalar(draw.rng.chance(0.5)));
  } else {
    c.set("upper", Scalar(draw.rng.chance(0.5)));
    c.set("unitriangular", Scalar(draw.rng.chance(0.3)));
  }
}

// A triangle with a diagonal of ones is well conditioned only where the rest is small.
void shrink(Case& c, Draw& draw, const Sizes& s, const char* argument) {
  const auto& matrix = *std::get<TensorPtr>(c.get(argument));
  HostTensor small = matrix.value;
  for (int64_t i = 0; i < small.numel(); ++i)
    if (i / s.n % s.n != i % s.n) put(small, i, number(small, i) / static_cast<double>(s.n));
  c.set(argument, draw.place(std::move(small)));
}

void make_reflectors(Case& c, DType dtype, Draw& draw, const Sizes& s) {
  const int64_t m = std::max(s.m, s.n);
  const int64_t n = std::min(s.m, s.n);
  const int64_t k = draw.rng.range(0, n);
  const double bound = m == 0 ? 1 : 1 / std::sqrt(static_cast<double>(m));
  c.set("input", draw.tensor(dtype, joined(s.batch, {m, n}), {-bound, bound, 0, false, false}));
  HostTensor tau = draw.values(dtype, joined(s.batch, {k}), {1, 1.5, 0, false, false});
  // Larger imaginary parts would make products of many reflectors grow without a limit.
  for (int64_t i = 0; i < tau.numel(); ++i)
    put(tau, i, Number(number(tau, i).real(), number(tau, i).imag() / 8));
  c.set("tau", draw.place(std::move(tau)));
}

// ---- singular values: vectors are unique up to signs, and up to rotations where values repeat

// Columns that repeat, a matrix of zeros, values that are all 1, columns of very different sizes,
// or as it was.
void make_special(HostTensor& t, Draw& draw, const Sizes& s) {
  if (s.m * s.n == 0) return;
  const int64_t kind = draw.rng.range(0, 7);
  const int64_t different = draw.rng.range(1, s.n);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t row = i / s.n % s.m, column = i % s.n;
    if (kind == 0 && column >= different) put(t, i, number(t, i - column + column % different));
    if (kind == 1) put(t, i, 0);
    if (kind == 2) put(t, i, (row + different) % std::max(s.m, s.n) == column ? -1 : 0);
    if (kind == 3) put(t, i, number(t, i) * std::pow(10.0, -static_cast<double>(column * 5 % 12)));
  }
}

// A matrix of a batch, or its adjoint.
struct Factor {
  const HostTensor& values;
  int64_t first, row, column;
  bool adjoint = false;
  Number at(int64_t i, int64_t j) const {
    const Number x = number(values, first + i * row + j * column);
    return adjoint ? std::conj(x) : x;
  }
};
// What products of such numbers are kept in.
DType exact_type(DType type) { return is_complex(type) ? DType::Complex128 : DType::Float64; }
// out (m x n) = a diag(scaled) b
template <typename Scaled>
void multiply(HostTensor& out, int64_t first, int64_t m, int64_t n, int64_t k, const Factor& a,
              const Factor& b, Scaled scaled) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      Number sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a.at(i, l) * scaled(l) * b.at(l, j);
      put(out, first + i * n + j, sum);
    }
}

// Of U, S and V^H: U S V^H, S, U^H U and V^H V.
std::vector<HostTensor> unique_of_svd(const std::vector<HostTensor>& outs) {
  const HostTensor &u = outs[0], &s = outs[1], &vh = outs[2];
  const HostTensor none(DType::Float64, {0});
  if (u.sizes.size() < 2) return {none, s.to(DType::Float64), none, none};
  Dims batch = s.sizes;
  const int64_t k = batch.back();
  batch.pop_back();
  const int64_t m = u.sizes[batch.size()], left = u.sizes.back();
  const int64_t right = vh.sizes[batch.size()], n = vh.sizes.back();
  const DType type = exact_type(u.dtype);
  HostTensor product(type, joined(batch, {m, n}));
  HostTensor u_product(type, joined(batch, {left, left}));
  HostTensor v_product(type, joined(batch, {right, right}));
  const auto one = [](int64_t) { return 1.0; };
  for (int64_t i = 0; i < numel(batch); ++i) {
    const Factor us{u, i * m * left, left, 1}, turned_u{u, i * m * left, 1, left, true};
    const Factor vs{vh, i * right * n, n, 1}, turned_v{vh, i * right * n, 1, n, true};
    multiply(product, i * m * n, m, n, k, us, vs, [&](int64_t l) { return s.real(i * k + l); });
    multiply(u_product, i * left * left, left, left, m, turned_u, us, one);
    multiply(v_product, i * right * right, right, right, n, vs, turned_v, one);
  }
  return {product, s.to(DType::Float64), u_product, v_product};
}

void make_svd(Case& c, DType dtype, Draw& draw, const Sizes& s) {
  HostTensor a = draw.values(dtype, joined(s.batch, {s.m, s.n}), {-3, 3, 0, false, false});
  make_special(a, draw, s);
  c.set("A", draw.place(std::move(a)));
  c.set("full_matrices", Scalar(draw.rng.chance(0.4)));
  c.set("compute_uv", Scalar(draw.rng.chance(0.8)));
  c.unique = unique_of_svd;
  // The product is off by some eps of the Frobenius norm, which is up to sqrt(m n) times the
  // largest element; the others by as much of the largest singular value, and of 1.
  Tolerance others = factor_of(std::max(s.m, s.n));
  others.why = "backward stable";
  const auto elements = static_cast<double>(s.m * s.n + 1);
  c.tolerance = {{Scale::Largest, 8, elements, 1, nullptr, others.why}, others, others, others};
}

// ---- eigenvalues: as for singular values

// A diagonal, a matrix of zeros, one value in pairs, a matrix of rank 1, very different sizes, or
// as it was. The triangles differ: only one is read.
void make_special_symmetric(HostTensor& t, Draw& draw, int64_t n) {
  if (n == 0) return;
  const int64_t kind = draw.rng.range(0, 9);
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t row = i / n % n, column = i % n;
    if (kind == 0 && row != column) put(t, i, 0);
    if (kind == 1) put(t, i, 0);
    if (kind == 2) put(t, i, row + column == n - 1 ? 1 : 0);
    if (kind == 3) put(t, i, 1);
    if (kind == 4)
      put(t, i, number(t, i) * std::pow(10.0, -static_cast<double>((row + column) % 9)));
  }
}

// Of L and V: V L V^H, L and V^H V.
std::vector<HostTensor> unique_of_eigh(const std::vector<HostTensor>& outs) {
  const HostTensor &l = outs[0], &v = outs[1];
  if (v.sizes.size() < 2)
    return {HostTensor(DType::Float64, {0}), l.to(DType::Float64), HostTensor(DType::Float64, {0})};
  const int64_t n = v.sizes.back();
  HostTensor product(exact_type(v.dtype), v.sizes);
  HostTensor v_product(exact_type(v.dtype), v.sizes);
  for (int64_t i = 0; n > 0 && i < l.numel() / n; ++i) {
    const Factor vs{v, i * n * n, n, 1}, turned{v, i * n * n, 1, n, true};
    multiply(product, i * n * n, n, n, n, vs, turned, [&](int64_t k) { return l.real(i * n + k); });
    multiply(v_product, i * n * n, n, n, n, turned, vs, [](int64_t) { return 1.0; });
  }
  return {product, l.to(DType::Float64), v_product};
}

void make_eigh(Case& c, DType dtype, Draw& draw, const Sizes& s) {
  HostTensor a = draw.values(dtype, joined(s.batch, {s.n, s.n}), {-3, 3, 0, false, false});
  make_special_symmetric(a, draw, s.n);
  c.set("A", draw.place(std::move(a)));
  c.set("UPLO", std::string(draw.rng.chance(0.5) ? "L" : "U"));
  c.set("compute_v", Scalar(draw.rng.chance(0.8)));
  c.unique = unique_of_eigh;
  // As for singular values.
  Tolerance others = factor_of(s.n);
  others.why = "backward stable";
  const auto elements = static_cast<double>(s.n * s.n + 1);
  c.tolerance = {{Scale::Largest, 8, elements, 1, nullptr, others.why}, others, others};
}

Case make(const Operator& op, DType dtype, Draw& draw) {
  if (is_general(op)) return make_general(op, dtype, draw);
  Case c = make_case(op, dtype);
  const Sizes s = choose(draw);
  const std::string& name = op.schema.name;
  c.tolerance = {factor_of(std::max(s.m, s.n))};
  if (name == "linalg_cholesky_ex") {
    c.set("self", draw.place(positive(draw, dtype, s)));
    c.set("upper", Scalar(draw.rng.chance(0.5)));
  } else if (name == "linalg_solve_triangular") {
    make_solve(c, dtype, draw, s, false);
    if (s.n > 0) shrink(c, draw, s, "self");
  } else if (name == "linalg_lu_solve") {
    make_solve(c, dtype, draw, s, true);
    if (s.n > 0) shrink(c, draw, s, "LU");
  } else if (name == "_linalg_solve_ex") {
    const bool left = draw.rng.chance(0.5);
    c.set("left", Scalar(left));
    c.set("A", draw.place(dominant(draw, dtype, some_of(draw, s.batch), s.n, s.n, true)));
    c.set("B",
          draw.tensor(dtype, joined(some_of(draw, s.batch), {left ? s.n : s.k, left ? s.k : s.n}),
                      {-3, 3, 0, false, false}));
  } else if (name == "linalg_lu_factor_ex") {
    const bool pivot = draw.rng.chance(0.7);
    c.set("A", draw.place(dominant(draw, dtype, s.batch, s.m, s.n, pivot)));
    c.set("pivot", Scalar(pivot));
  } else if (name == "linalg_inv_ex") {
    c.set("A", draw.place(dominant(draw, dtype, s.batch, s.n, s.n, true)));
  } else if (name == "lu_unpack") {
    const int64_t k = std::min(s.m, s.n);
    c.set("LU_data", draw.tensor(dtype, joined(s.batch, {s.m, s.n}), {-3, 3, 0, false, false}));
    c.set("LU_pivots", draw.place(interchanges(draw, s.batch, s.m, k)));
    c.set("unpack_data", Scalar(draw.rng.chance(0.8)));
    c.set("unpack_pivots", Scalar(draw.rng.chance(0.8)));
    c.tolerance = {exact()};
  } else if (name == "_linalg_svd") {
    make_svd(c, dtype, draw, s);
  } else if (name == "_linalg_eigh") {
    make_eigh(c, dtype, draw, s);
  } else if (name == "linalg_householder_product") {
    make_reflectors(c, dtype, draw, s);
  } else {
    c.set(name == "geqrf" ? "self" : "A",
          draw.place(dominant(draw, dtype, s.batch, s.m, s.n, false)));
    if (name == "linalg_qr")
      c.set("mode", std::string(draw.rng.chance(0.4)   ? "reduced"
                                : draw.rng.chance(0.5) ? "complete"
                                                       : "r"));
  }
  return c;
}

}  // namespace

const FamilyCases& linalg_cases() {
  static constexpr FamilyCases kCases = {"linalg", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
