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

const char* plan(const OpCall&, const EigProblem& p) {
  if (p.a.size(-1) > kMostRows) return kTooLarge;
  return with_type(p.a.dtype(), [](auto* type) {
    return Geev<std::remove_pointer_t<decltype(type)>>(*library()).exists() ? nullptr
                                                                            : kLacksRoutine;
  });
}

template <typename T>
void solve(const OpCall& call, const EigProblem& p) {
  const int64_t n = p.a.size(-1);
  const int64_t count = p.a.numel() / (n * n);
  const DType type = p.a.dtype();
  const DType complex = complex_type(type);
  Layout layout;
  const uint64_t a_at = layout.add(count * n * n, type);
  const uint64_t values_at = layout.add(count * n, complex);
  const uint64_t vectors_at = layout.add(p.vectors ? count * n * n : 0, complex);
  const Scratch memory = call.scratch(layout.bytes());
  copy_tensor(call, matrices_at(memory, a_at, type, Dims(p.a.sizes())), p.a);
  {
    Mapped mapped(call, memory);
    auto* a = reinterpret_cast<T*>(mapped.data() + a_at);  // NOLINT: memory of this type
    using Complex = std::complex<Part<T>>;
    auto* values = reinterpret_cast<Complex*>(mapped.data() + values_at);    // NOLINT
    auto* vectors = reinterpret_cast<Complex*>(mapped.data() + vectors_at);  // NOLINT
    const Geev<T> geev(*library());
    for_matrices(call, *library(), count, operations(p), [&](int64_t i) {
      Complex* own = p.vectors ? vectors + i * n * n : nullptr;
      if (all_finite(a + i * n * n, n * n) &&
          geev(static_cast<int>(n), a + i * n * n, values + i * n, own))
        return;
      std::fill_n(values + i * n, n, Complex(kNan<T>, kNan<T>));
    });
    mapped.give_back();
  }
  copy_tensor(call, p.values,
              LocalTensor(memory.address() + values_at, complex, Dims(p.values.sizes())));
  if (p.vectors)
    copy_tensor(call, *p.vectors,
                matrices_at(memory, vectors_at, complex, Dims(p.vectors->sizes())));
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
