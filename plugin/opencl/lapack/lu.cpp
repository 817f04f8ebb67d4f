// lu.lapack: LU factorisation with partial pivoting by ?getrf, solves with it by ?getrs.
#include "ops/linalg/lu.h"

#include "matrices.h"
#include "provider.h"

namespace ocltensor::opencl::lapack {
namespace {

using linalg::LuProblem;

// Columns of the right-hand side as LAPACK sees it, with A on its left.
int64_t right_columns(const LuProblem& p) { return p.x ? p.x->size(p.left ? -1 : -2) : 0; }

double operations(const LuProblem& p) {
  const auto m = static_cast<double>(p.a.size(-2));
  const auto n = static_cast<double>(p.a.size(-1));
  const double k = std::min(m, n);
  return 2 * k * (m * n - (m + n) * k / 2 + k * k / 3) +
         2 * n * n * static_cast<double>(right_columns(p));
}

const char* plan(const OpCall& call, const LuProblem& p) {
  if (!p.pivot) return "LAPACK interchanges rows always";
  if (p.b && linalg::batch_of(p.a) != linalg::batch_of(*p.x))
    return "matrices that broadcast are factored once";
  if (const char* reason = host_refusal(call, std::max(p.a.size(-2), p.a.size(-1)))) return reason;
  return with_type(p.a.dtype(), [](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool exist = Getrf<T>(*library()).exists() && Getrs<T>(*library()).exists();
    return exist ? nullptr : kLacksRoutine;
  });
}

// |re| + |im|, by which LAPACK compares pivots.
template <typename T>
Part<T> size_of_pivot(T x) {
  return std::abs(std::real(x)) + std::abs(std::imag(x));
}

// ?getf2, for matrices with elements that are not finite, which the library may compare in any way:
// a pivot stays unless another one is larger.
template <typename T>
int factor_plainly(int m, int n, T* a, int* pivots) {
  int info = 0;
  const auto at = [&](int i, int j) -> T& { return a[static_cast<ptrdiff_t>(j) * m + i]; };
  for (int j = 0; j < std::min(m, n); ++j) {
    int best = j;
    for (int i = j + 1; i < m; ++i)
      if (size_of_pivot(at(i, j)) > size_of_pivot(at(best, j))) best = i;
    pivots[j] = best + 1;
    for (int c = 0; best != j && c < n; ++c) std::swap(at(j, c), at(best, c));
    if (at(j, j) == T(0)) {
      if (info == 0) info = j + 1;
      continue;
    }
    for (int i = j + 1; i < m; ++i) at(i, j) /= at(j, j);
    for (int c = j + 1; c < n; ++c)
      for (int i = j + 1; i < m; ++i) at(i, c) -= at(i, j) * at(j, c);
  }
  return info;
}

// The right-hand side with A on its left, column by column.
template <typename T>
std::unique_ptr<T[]> right_side(const OpCall& call, const LuProblem& p) {
  if (p.b) {
    const Dims sizes(p.x->sizes());
    const LocalTensor b(p.b->address(), p.b->dtype(), sizes,
                        broadcast_strides(p.b->sizes(), p.b->strides(), sizes));
    return read_matrices<T>(call, linalg::on_left(b, p.left));
  }
  const int64_t n = p.a.size(-1);
  auto identity = std::make_unique<T[]>(static_cast<size_t>(p.x->numel()));  // zeros
  for (int64_t i = 0; i < p.x->numel() / n; ++i) identity[i * n + i % n] = T(1);
  return identity;
}

template <typename T>
void solve(const OpCall& call, const LuProblem& p) {
  const int64_t m = p.a.size(-2), n = p.a.size(-1), k = std::min(m, n);
  const int64_t columns = right_columns(p);
  const int64_t count = p.a.numel() / (m * n);
  const auto a = read_matrices<T>(call, p.a);
  const auto x = p.x ? right_side<T>(call, p) : nullptr;
  std::vector<int> pivots(static_cast<size_t>(count * k)), info(static_cast<size_t>(count));
  const Getrf<T> getrf(*library());
  const Getrs<T> getrs(*library());
  for_matrices(call, *library(), count, operations(p), [&](int64_t i) {
    T* own = a.get() + i * m * n;
    const auto rows = static_cast<int>(m);
    const auto width = static_cast<int>(n);
    info[i] = all_finite(own, m * n) ? getrf(rows, width, own, &pivots[i * k])
                                     : factor_plainly(rows, width, own, &pivots[i * k]);
    if (x)
      getrs(!p.left, rows, static_cast<int>(columns), own, &pivots[i * k],
            x.get() + i * n * columns);
  });
  if (p.lu) write_matrices(call, *p.lu, a.get());
  if (p.x) write_matrices(call, linalg::on_left(*p.x, p.left), x.get());
  write_values(call, p.pivots, pivots.data());
  write_values(call, p.info, info.data());
}

void run(const OpCall& call, const LuProblem& p) {
  with_type(p.a.dtype(),
            [&](auto* type) { solve<std::remove_pointer_t<decltype(type)>>(call, p); });
}

// Below so many rows, kernels that give each matrix a work-item take half the library's time.
constexpr int64_t kRowsOfLapack = 96;

const char* rather_kernels(const OpCall& call, const LuProblem& p) {
  const int64_t elements = p.a.size(-2) * p.a.size(-1);
  const int64_t count = p.a.numel() / elements;
  if (const char* reason = small(call, static_cast<double>(count) * operations(p))) return reason;
  const bool is_low = elements < kRowsOfLapack * kRowsOfLapack;
  return is_low && count >= int64_t{call.caps().compute_units}
             ? "many small matrices: kernels are faster"
             : nullptr;
}

}  // namespace

constinit const AlgorithmFor<LuProblem> kLu({.id = "lu.lapack",
                                             .description = "LAPACK's getrf and getrs on the host",
                                             .style = DeviceStyle::Cpu,
                                             .provider = &kLapack},
                                            Steps<plan, run>(), rather_kernels);

}  // namespace ocltensor::opencl::lapack
