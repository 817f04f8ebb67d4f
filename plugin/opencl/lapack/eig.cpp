// eig.lapack: eigenvalues of general matrices by ?geev.
#include "ops/linalg/eig.h"

#include "matrices.h"
#include "provider.h"

namespace ocltensor::opencl::lapack {
namespace {

using linalg::EigProblem;

constexpr double kOperations = 25;  // times n^3, with vectors

double operations(const EigProblem& p) {
  return kOperations * std::pow(static_cast<double>(p.a.size(-1)), 3);
}

const char* plan(const OpCall& call, const EigProblem& p) {
  if (const char* reason = host_refusal(call, p.a.size(-1))) return reason;
  return with_type(p.a.dtype(), [](auto* type) {
    return Geev<std::remove_pointer_t<decltype(type)>>(*library()).exists() ? nullptr
                                                                            : kLacksRoutine;
  });
}

template <typename T>
void solve(const OpCall& call, const EigProblem& p) {
  using Complex = std::complex<Part<T>>;
  const int64_t n = p.a.size(-1);
  const int64_t count = p.a.numel() / (n * n);
  const auto a = read_matrices<T>(call, p.a);
  const auto values = host_memory<Complex>(count * n);
  const auto vectors = host_memory<Complex>(p.vectors ? count * n * n : 0);
  const Geev<T> geev(*library());
  for_matrices(call, *library(), count, operations(p), [&](int64_t i) {
    T* own = a.get() + i * n * n;
    if (all_finite(own, n * n) && geev(static_cast<int>(n), own, values.get() + i * n,
                                       p.vectors ? vectors.get() + i * n * n : nullptr))
      return;
    std::fill_n(values.get() + i * n, n, Complex(kNan<T>, kNan<T>));
  });
  write_values(call, p.values, values.get());
  if (p.vectors) write_matrices(call, *p.vectors, vectors.get());
}

void run(const OpCall& call, const EigProblem& p) {
  with_type(p.a.dtype(),
            [&](auto* type) { solve<std::remove_pointer_t<decltype(type)>>(call, p); });
}

// Measured beside MKL on PoCL: the portable kernels are 4 to 8 times as fast at 128 to 512 rows.
constexpr int64_t kFewestRows = 1000;

const char* has_few_rows(const OpCall&, const EigProblem& p) {
  return p.a.size(-1) < kFewestRows ? "the portable kernels are faster for so few rows" : nullptr;
}

}  // namespace

constinit const AlgorithmFor<EigProblem> kEig({.id = "eig.lapack",
                                               .description = "LAPACK's geev on the host",
                                               .style = DeviceStyle::Cpu,
                                               .provider = &kLapack},
                                              Steps<plan, run>(), has_few_rows);

}  // namespace ocltensor::opencl::lapack
