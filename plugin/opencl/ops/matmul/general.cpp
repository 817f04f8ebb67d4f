// Matrix products of any type, strides and size: the last of the list.
#include <array>

#include "kernels/matmul.h"
#include "matmul.h"

namespace ocltensor::opencl {
namespace {

void enqueue(const OpCall& call, const MatmulProblem& p, const Source& source,
             const std::array<size_t, 3>& global, const std::array<size_t, 3>& local) {
  Launch launch = call.launch(source, "matmul", matmul_defines(p));
  bind_matrix(launch, p, p.c, p.m, p.n);
  bind_matrix(launch, p, p.a, p.m, p.k);
  bind_matrix(launch, p, p.b, p.k, p.n);
  p.self ? bind_matrix(launch, p, *p.self, p.m, p.n) : (void)launch.memory(0, 0, 0);
  const MatmulParams params = matmul_params(p);
  launch.bytes(&params, sizeof params);
  launch.run(global, local);
}

size_t count(int64_t n, int64_t tile) { return static_cast<size_t>(divide_up(n, tile)); }

void run_cpu(const OpCall& call, const MatmulProblem& p) {
  enqueue(call, p, kernel_sources::matmul_general_cpu,
          {count(p.n, 16), count(p.m, 8), static_cast<size_t>(p.batch)}, {1, 1, 1});
}
void run_gpu(const OpCall& call, const MatmulProblem& p) {
  enqueue(call, p, kernel_sources::matmul_general_gpu,
          {count(p.n, 256) * 64, count(p.m, 4), static_cast<size_t>(p.batch)}, {64, 1, 1});
}

}  // namespace

constinit const MatmulAlgorithm kMatmulGeneralCpu({.id = "matmul.general_cpu",
                                                   .description = "any type, strides and size",
                                                   .style = DeviceStyle::Cpu,
                                                   .last_resort = true},
                                                  Steps<takes_all<MatmulProblem>, run_cpu>());
constinit const MatmulAlgorithm kMatmulGeneralGpu({.id = "matmul.general_gpu",
                                                   .description = "any type, strides and size",
                                                   .style = DeviceStyle::Gpu,
                                                   .last_resort = true},
                                                  Steps<takes_all<MatmulProblem>, run_gpu>());

}  // namespace ocltensor::opencl
