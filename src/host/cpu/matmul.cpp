// Matrix and vector products with Eigen: floating types accumulate in double, integers in int64.
#include "matmul.h"

#include <eigen3/Eigen/Core>

#include "base/infer/common.h"
#include "call.h"

namespace ocltensor::cpu {
namespace {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
void multiply_as(const T* a, bool a_transposed, const T* b, bool b_transposed, T* c, int64_t m,
                 int64_t n, int64_t k, bool accumulate) {
  const Eigen::Map<const Matrix<T>> left(a, a_transposed ? k : m, a_transposed ? m : k);
  const Eigen::Map<const Matrix<T>> right(b, b_transposed ? n : k, b_transposed ? k : n);
  Eigen::Map<Matrix<T>> result(c, m, n);
  if (!accumulate) result.setZero();
  if (m == 0 || n == 0 || k == 0) return;
  if (a_transposed && b_transposed)
    result.noalias() += left.transpose() * right.transpose();
  else if (a_transposed)
    result.noalias() += left.transpose() * right;
  else if (b_transposed)
    result.noalias() += left * right.transpose();
  else
    result.noalias() += left * right;
}

// beta * self + alpha * a b over a batch of matrices; self absent: a b alone. A vector is a matrix
// of one row (a) or one column (b).
struct Product {
  View a, b;
  int64_t batch, m, n, k;
};

template <typename T>
std::vector<T> product(const Product& p) {
  const auto a = read<T>(p.a);
  const auto b = read<T>(p.b);
  std::vector<T> c(static_cast<size_t>(p.batch * p.m * p.n));
  for (int64_t i = 0; i < p.batch; ++i)
    multiply(a.data() + i * p.m * p.k, b.data() + i * p.k * p.n, c.data() + i * p.m * p.n, p.m, p.n,
             p.k);
  return c;
}

Product operands(const CpuCall& call) {
  const infer::Factors factors = infer::factors_of(call.args);
  const View a = call.args.tensor(factors.a);
  const View b = call.args.tensor(factors.b);
  const bool batched = a.ndim() == 3;
  return {a,
          b,
          batched ? a.sizes[0] : 1,
          a.ndim() == 1 ? 1 : a.sizes[a.sizes.size() - 2],
          b.ndim() == 1 ? 1 : b.sizes.back(),
          a.sizes.back()};
}

void plain(const CpuCall& call) {
  with_compute(call.specs[0].dtype,
               [&]<typename T>(T) { write(call.out(0), product<T>(operands(call))); });
}

void added(const CpuCall& call) {
  const View out = call.out(0);
  with_compute(call.specs[0].dtype, [&]<typename T>(T) {
    auto result = product<T>(operands(call));
    const T beta = number<T>(call.args.scalar(Arg::beta));
    const T alpha = number<T>(call.args.scalar(Arg::alpha));
    for (T& v : result) v *= alpha;
    if (beta != 0) {  // with beta 0, NaN in self has no effect: self is not read
      const auto self = read<T>(View(call.args.tensor(Arg::self)).broadcast_to(out.sizes));
      for (size_t i = 0; i < result.size(); ++i) result[i] += beta * self[i];
    }
    write(out, result);
  });
}

void activated(const CpuCall& call) {
  added(call);
  with_compute(call.specs[0].dtype, [&]<typename T>(T) {
    auto result = read<T>(call.out(0));
    const bool gelu = call.args.boolean(Arg::use_gelu);
    for (T& v : result) {
      const auto x = static_cast<double>(v);
      v = static_cast<T>(gelu ? x * 0.5 * std::erfc(-x * M_SQRT1_2) : x < 0 ? 0 : x);
    }
    write(call.out(0), result);
  });
}

void scaled(const CpuCall& call) {
  const View out = call.out(0);
  with_compute(out.type, [&]<typename T>(T) {
    auto result = product<T>(operands(call));
    const auto scales = read<T>(View(call.args.tensor(Arg::scales)).broadcast_to(out.sizes));
    for (size_t i = 0; i < result.size(); ++i) result[i] *= scales[i];
    write(out, result);
  });
}

// Each group's part of the rows, of the columns, or of the terms. What no group has is 0.
struct GroupedProduct {
  View a, b;
  std::vector<int64_t> ends;
  int64_t m, n, k;
};

template <typename T>
std::vector<T> grouped_product(const GroupedProduct& p) {
  const auto a = read<T>(p.a);
  const auto b = read<T>(p.b);
  const auto groups = static_cast<int64_t>(p.ends.size());
  const bool share_a = p.a.ndim() == 2, share_b = p.b.ndim() == 2, terms = share_a && share_b;
  std::vector<T> c(static_cast<size_t>((terms ? groups : 1) * p.m * p.n));
  int64_t begin = 0;
  for (int64_t g = 0; g < groups; begin = p.ends[static_cast<size_t>(g)], ++g) {
    const int64_t end = p.ends[static_cast<size_t>(g)];
    const auto inside = [&](bool in_parts, int64_t size) {
      return in_parts ? std::pair(begin, end) : std::pair(int64_t{0}, size);
    };
    const auto [m0, m1] = inside(!terms && share_a, p.m);
    const auto [n0, n1] = inside(!terms && share_b, p.n);
    const auto [k0, k1] = inside(terms, p.k);
    const T* const left = a.data() + (share_a ? 0 : g * p.m * p.k);
    const T* const right = b.data() + (share_b ? 0 : g * p.k * p.n);
    for (int64_t i = m0; i < m1; ++i)
      for (int64_t j = n0; j < n1; ++j) {
        T sum = 0;
        for (int64_t t = k0; t < k1; ++t) sum += left[i * p.k + t] * right[t * p.n + j];
        c[static_cast<size_t>(((terms ? g : 0) * p.m + i) * p.n + j)] = sum;
      }
  }
  return c;
}

void grouped(const CpuCall& call) {
  const View a = call.args.tensor(Arg::self), b = call.args.tensor(Arg::mat2);
  const GroupedProduct p{a,
                         b,
                         read<int64_t>(View(call.args.tensor(Arg::offs))),
                         a.sizes[a.sizes.size() - 2],
                         b.sizes.back(),
                         a.sizes.back()};
  const int64_t size = a.ndim() == 3 ? p.n : b.ndim() == 3 ? p.m : p.k;
  int64_t before = 0;
  for (const int64_t end : p.ends) {
    check(end >= before && end <= size,
          "{}: a part's end {} is less than the one before it, or more than the size {}",
          call.args.schema().full_name(), end, size);
    before = end;
  }
  with_compute(call.specs[0].dtype,
               [&]<typename T>(T) { write(call.out(0), grouped_product<T>(p)); });
}

constexpr CpuOperator kOperators[] = {
    {"mm.out", plain},
    {"bmm.out", plain},
    {"mv.out", plain},
    {"dot.out", plain},
    {"addmm.out", added},
    {"baddbmm.out", added},
    {"addmv.out", added},
    {"_int_mm.out", plain},
    {"_ocl_grouped_mm.out", grouped},
    {"mm.dtype_out", plain},
    {"bmm.dtype_out", plain},
    {"addmm.dtype_out", added},
    {"baddbmm.dtype_out", added},
    {"_addmm_activation.out", activated},
    {"_ocl_scaled_mm.out", scaled},
};

}  // namespace

void multiply(const double* a, const double* b, double* c, int64_t m, int64_t n, int64_t k,
              Layout layout) {
  multiply_as(a, layout.a_transposed, b, layout.b_transposed, c, m, n, k, layout.accumulate);
}
void multiply(const int64_t* a, const int64_t* b, int64_t* c, int64_t m, int64_t n, int64_t k,
              Layout layout) {
  multiply_as(a, layout.a_transposed, b, layout.b_transposed, c, m, n, k, layout.accumulate);
}

std::span<const CpuOperator> matmul_operators() { return kOperators; }

}  // namespace ocltensor::cpu
