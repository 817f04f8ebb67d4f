// Matrix products of any type, strides and size: the last of the list.
#include <array>

#include "kernels/matmul.h"
#include "matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

int64_t count(int64_t n, int64_t tile) { return divide_up(n, tile); }

void run_cpu(const OpCall& call, const Problem& p) {
  call.launch(kernels::matmul::general_cpu::matmul, matmul_defines(p),
              {.c = memory_of_c(p),
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .scales = memory_of_scales(p),
               .p = matmul_params(p)})
      .run({count(p.n, 16), count(p.m, 8), p.batch}, {1, 1, 1});
}
void run_gpu(const OpCall& call, const Problem& p) {
  call.launch(kernels::matmul::general_gpu::matmul, matmul_defines(p),
              {.c = memory_of_c(p),
               .a = memory_of_a(p),
               .b = memory_of_b(p),
               .s = memory_of_self(p),
               .scales = given_scales(p),
               .p = matmul_params(p)})
      .run({count(p.n, 256) * 64, count(p.m, 4), p.batch}, {64, 1, 1});
}

}  // namespace

constinit const AlgorithmFor<Problem> kGeneralCpu({.id = "matmul.general_cpu",
                                                   .description = "any type, strides and size",
                                                   .style = DeviceStyle::Cpu,
                                                   .last_resort = true},
                                                  Steps<takes_all<Problem>, run_cpu>());
constinit const AlgorithmFor<Problem> kGeneralGpu({.id = "matmul.general_gpu",
                                                   .description = "any type, strides and size",
                                                   .style = DeviceStyle::Gpu,
                                                   .last_resort = true},
                                                  Steps<takes_all<Problem>, run_gpu>());

}  // namespace ocltensor::opencl::matmul
