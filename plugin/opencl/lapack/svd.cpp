// svd.lapack: singular values by ?gesdd.
#include "ops/linalg/svd.h"

#include "matrices.h"
#include "provider.h"

namespace ocltensor::opencl::lapack {
namespace {

using linalg::SvdProblem;

constexpr double kOperations = 20;  // times m n min(m, n), with vectors

double operations(const SvdProblem& p) {
  const auto m = static_cast<double>(p.a.size(-2));
  const auto n = static_cast<double>(p.a.size(-1));
  return kOperations * m * n * std::min(m, n);
}

const char* plan(const OpCall&, const SvdProblem& p) {
  if (std::max(p.a.size(-1), p.a.size(-2)) > kMostRows) return kTooLarge;
  return with_type(p.a.dtype(), [](auto* type) {
    return Gesdd<std::remove_pointer_t<decltype(type)>>(*library()).exists() ? nullptr
                                                                             : kLacksRoutine;
  });
}

template <typename T>
void solve(const OpCall& call, const SvdProblem& p) {
  const int64_t m = p.a.size(-2);
  const int64_t n = p.a.size(-1);
  const int64_t k = std::min(m, n);
  const int64_t count = p.a.numel() / (m * n);
  const int64_t u_size = p.u ? m * p.u->size(-1) : 0;
  const int64_t vh_size = p.vh ? p.vh->size(-2) * n : 0;
  const DType type = p.a.dtype();
  Layout layout;
  const uint64_t a_at = layout.add(count * m * n, type);
  const uint64_t values_at = layout.add(count * k, real_type(type));
  const uint64_t u_at = layout.add(count * u_size, type);
  const uint64_t vh_at = layout.add(count * vh_size, type);
  const Scratch memory = call.scratch(layout.bytes());
  copy_tensor(call, matrices_at(memory, a_at, type, Dims(p.a.sizes())), p.a);
  {
    Mapped mapped(call, memory);
    const auto part = [&](uint64_t at) {
      return reinterpret_cast<T*>(mapped.data() + at);  // NOLINT: memory of this type
    };
    auto* values = reinterpret_cast<Part<T>*>(mapped.data() + values_at);  // NOLINT
    const Gesdd<T> gesdd(*library());
    using Job = typename Gesdd<T>::Job;
    const bool all = p.u && (p.u->size(-1) > k || p.vh->size(-2) > k);
    const Job job = !p.u ? Job::Values : all ? Job::All : Job::Some;
    for_matrices(call, *library(), count, operations(p), [&](int64_t i) {
      T* a = part(a_at) + i * m * n;
      if (all_finite(a, m * n) &&
          gesdd(job, static_cast<int>(m), static_cast<int>(n), a, values + i * k,
                part(u_at) + i * u_size, part(vh_at) + i * vh_size))
        return;
      std::fill_n(values + i * k, k, kNan<T>);
    });
    mapped.give_back();
  }
  copy_tensor(call, p.values,
              LocalTensor(memory.address() + values_at, real_type(type), Dims(p.values.sizes())));
  if (p.u) copy_tensor(call, *p.u, matrices_at(memory, u_at, type, Dims(p.u->sizes())));
  if (p.vh) copy_tensor(call, *p.vh, matrices_at(memory, vh_at, type, Dims(p.vh->sizes())));
}

void run(const OpCall& call, const SvdProblem& p) {
  with_type(p.a.dtype(),
            [&](auto* type) { solve<std::remove_pointer_t<decltype(type)>>(call, p); });
}

const char* is_small(const OpCall&, const SvdProblem& p) {
  const auto elements = static_cast<double>(p.a.size(-2)) * static_cast<double>(p.a.size(-1));
  const double count = static_cast<double>(p.a.numel()) / elements;
  return count * operations(p) < kSmall ? kIsSmall : nullptr;
}

}  // namespace

constinit const AlgorithmFor<SvdProblem> kSvd({.id = "svd.lapack",
                                               .description = "LAPACK's gesdd on the host",
                                               .style = DeviceStyle::Cpu,
                                               .provider = &kLapack},
                                              Steps<plan, run>(), is_small);

}  // namespace ocltensor::opencl::lapack
