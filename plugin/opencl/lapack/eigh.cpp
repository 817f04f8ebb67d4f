// eigh.lapack: eigenvalues of symmetric and Hermitian matrices by ?syevd and ?heevd.
#include "ops/linalg/eigh.h"

#include "matrices.h"
#include "provider.h"

namespace ocltensor::opencl::lapack {
namespace {

using linalg::EighProblem;

constexpr double kOperations = 9;  // times n^3, with vectors

double operations(const EighProblem& p) {
  return kOperations * std::pow(static_cast<double>(p.a.size(-1)), 3);
}

const char* plan(const OpCall& call, const EighProblem& p) {
  if (const char* reason = host_refusal(call, p.a.size(-1))) return reason;
  return with_type(p.a.dtype(), [](auto* type) {
    return Heevd<std::remove_pointer_t<decltype(type)>>(*library()).exists() ? nullptr
                                                                             : kLacksRoutine;
  });
}

template <typename T>
bool triangle_finite(const T* a, int64_t n, bool upper) {
  for (int64_t column = 0; column < n; ++column) {
    const int64_t first = upper ? 0 : column;
    const int64_t end = upper ? column + 1 : n;
    if (!all_finite(a + column * n + first, end - first)) return false;
  }
  return true;
}

template <typename T>
void solve(const OpCall& call, const EighProblem& p) {
  const int64_t n = p.a.size(-1);
  const int64_t count = p.a.numel() / (n * n);
  const auto a = read_matrices<T>(call, p.a);
  const auto values = host_memory<Part<T>>(count * n);
  const Heevd<T> heevd(*library());
  for_matrices(call, *library(), count, operations(p), [&](int64_t i) {
    T* own = a.get() + i * n * n;
    if (triangle_finite(own, n, p.upper) &&
        heevd(static_cast<int>(n), p.upper, p.wants_vectors, own, values.get() + i * n))
      return;
    std::fill_n(values.get() + i * n, n, kNan<T>);
  });
  write_values(call, p.values, values.get());
  if (p.wants_vectors) write_matrices(call, p.vectors, a.get());
}

void run(const OpCall& call, const EighProblem& p) {
  with_type(p.a.dtype(),
            [&](auto* type) { solve<std::remove_pointer_t<decltype(type)>>(call, p); });
}

const char* is_small(const OpCall& call, const EighProblem& p) {
  const auto count = static_cast<double>(p.values.numel()) / static_cast<double>(p.a.size(-1));
  return small(call, count * operations(p));
}

}  // namespace

constinit const AlgorithmFor<EighProblem> kEigh({.id = "eigh.lapack",
                                                 .description = "LAPACK's syevd on the host",
                                                 .style = DeviceStyle::Cpu,
                                                 .provider = &kLapack},
                                                Steps<plan, run>(), is_small);

}  // namespace ocltensor::opencl::lapack
