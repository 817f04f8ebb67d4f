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

const char* plan(const OpCall& call, const SvdProblem& p) {
  if (const char* reason = host_refusal(call, std::max(p.a.size(-1), p.a.size(-2)))) return reason;
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
  const auto a = read_matrices<T>(call, p.a);
  const auto values = host_memory<Part<T>>(count * k);
  const auto u = host_memory<T>(count * u_size);
  const auto vh = host_memory<T>(count * vh_size);
  const Gesdd<T> gesdd(*library());
  using Job = typename Gesdd<T>::Job;
  const bool all = p.u && (p.u->size(-1) > k || p.vh->size(-2) > k);
  const Job job = !p.u ? Job::Values : all ? Job::All : Job::Some;
  for_matrices(call, *library(), count, operations(p), [&](int64_t i) {
    T* own = a.get() + i * m * n;
    if (all_finite(own, m * n) &&
        gesdd(job, static_cast<int>(m), static_cast<int>(n), own, values.get() + i * k,
              u.get() + i * u_size, vh.get() + i * vh_size))
      return;
    std::fill_n(values.get() + i * k, k, kNan<T>);
  });
  write_values(call, p.values, values.get());
  if (p.u) write_matrices(call, *p.u, u.get());
  if (p.vh) write_matrices(call, *p.vh, vh.get());
}

void run(const OpCall& call, const SvdProblem& p) {
  with_type(p.a.dtype(),
            [&](auto* type) { solve<std::remove_pointer_t<decltype(type)>>(call, p); });
}

const char* is_small(const OpCall& call, const SvdProblem& p) {
  const auto elements = static_cast<double>(p.a.size(-2)) * static_cast<double>(p.a.size(-1));
  const double count = static_cast<double>(p.a.numel()) / elements;
  return small(call, count * operations(p));
}

}  // namespace

constinit const AlgorithmFor<SvdProblem> kSvd({.id = "svd.lapack",
                                               .description = "LAPACK's gesdd on the host",
                                               .style = DeviceStyle::Cpu,
                                               .provider = &kLapack},
                                              Steps<plan, run>(), is_small);

}  // namespace ocltensor::opencl::lapack
