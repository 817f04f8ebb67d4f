// The matrix product that takes any type, strides and size: the last of the list.
#include "kernel_sources.h"
#include "matmul.h"

namespace ocltensor::opencl {
namespace {

const char* refuse(const OpCall&, const MatmulProblem&) { return nullptr; }

void run(const OpCall& call, const MatmulProblem& p) {
  const bool cpu_style = call.caps().style == KernelStyle::Cpu;
  Launch launch = call.launch(
      cpu_style ? kernel_sources::matmul_general_cpu : kernel_sources::matmul_general_gpu, "matmul",
      matmul_defines(p));
  bind_matrix(launch, p, p.c, p.m, p.n);
  bind_matrix(launch, p, p.a, p.m, p.k);
  bind_matrix(launch, p, p.b, p.k, p.n);
  p.self ? bind_matrix(launch, p, *p.self, p.m, p.n) : (void)launch.memory(0, 0, 0);
  const MatmulParams params = matmul_params(p);
  launch.bytes(&params, sizeof params);
  const auto count = [](int64_t n, int64_t tile) {
    return static_cast<size_t>(divide_up(n, tile));
  };
  if (cpu_style)
    launch.run({count(p.n, 16), count(p.m, 8), static_cast<size_t>(p.batch)}, {1, 1, 1});
  else
    launch.run({count(p.n, 256) * 64, count(p.m, 4), static_cast<size_t>(p.batch)}, {64, 1, 1});
}

}  // namespace

const MatmulImplementation kMatmulGeneral{{"matmul.general", "general", true}, refuse, run};

}  // namespace ocltensor::opencl
