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

const char* plan(const OpCall&, const EighProblem& p) {
  if (p.a.size(-1) > kMostRows) return kTooLarge;
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
  const DType type = p.a.dtype();
  Layout layout;
  const uint64_t a_at = layout.add(count * n * n, type);
  const uint64_t values_at = layout.add(count * n, real_type(type));
  const Scratch memory = call.scratch(layout.bytes());
  copy_tensor(call, matrices_at(memory, a_at, type, Dims(p.a.sizes())), p.a);
  {
    Mapped mapped(call, memory);
    auto* a = reinterpret_cast<T*>(mapped.data() + a_at);                  // NOLINT: of this type
    auto* values = reinterpret_cast<Part<T>*>(mapped.data() + values_at);  // NOLINT
    const Heevd<T> heevd(*library());
    for_matrices(call, *library(), count, operations(p), [&](int64_t i) {
      if (triangle_finite(a + i * n * n, n, p.upper) &&
          heevd(static_cast<int>(n), p.upper, p.wants_vectors, a + i * n * n, values + i * n))
        return;
      std::fill_n(values + i * n, n, kNan<T>);
    });
    mapped.give_back();
  }
  copy_tensor(call, p.values,
              LocalTensor(memory.address() + values_at, real_type(type), Dims(p.values.sizes())));
  if (p.wants_vectors)
    copy_tensor(call, p.vectors, matrices_at(memory, a_at, type, Dims(p.vectors.sizes())));
}

void run(const OpCall& call, const EighProblem& p) {
  with_type(p.a.dtype(),
            [&](auto* type) { solve<std::remove_pointer_t<decltype(type)>>(call, p); });
}

const char* is_small(const OpCall&, const EighProblem& p) {
  const auto count = static_cast<double>(p.values.numel()) / static_cast<double>(p.a.size(-1));
  return count * operations(p) < kSmall ? kIsSmall : nullptr;
}

}  // namespace

constinit const AlgorithmFor<EighProblem> kEigh({.id = "eigh.lapack",
                                                 .description = "LAPACK's syevd on the host",
                                                 .style = DeviceStyle::Cpu,
                                                 .provider = &kLapack},
                                                Steps<plan, run>(), is_small);

}  // namespace ocltensor::opencl::lapack
