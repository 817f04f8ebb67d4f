// The toy provider's one algorithm: products of float32 with a single term in each sum.
#include "toy.h"

#include "call/algorithm.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl {
namespace {

const Source kOuter{"toy/matmul/outer.cl", R"(
#include "types.h"
__kernel void outer(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                    __global const void *b_base, ulong b_offset, float alpha, long a_step, long b_step, long c_step) {
  const size_t column = get_global_id(0), row = get_global_id(1);
  AT(f32, c_base, c_offset)[row * c_step + column] =
      alpha * AT_CONST(f32, a_base, a_offset)[row * a_step] * AT_CONST(f32, b_base, b_offset)[column * b_step];
}
)"};

const char* plan(const OpCall&, const MatmulProblem& p) {
  if (p.dtype != DType::Float32) return "not float32";
  if (p.k != 1 || p.batch != 1) return "not an outer product";
  return p.self || p.c.col != 1 ? "not a plain row-major result" : nullptr;
}

void run(const OpCall& call, const MatmulProblem& p) {
  Launch launch = call.launch(kOuter, "outer", Defines());
  bind_matrix(launch, p, p.c, p.m, p.n);
  bind_matrix(launch, p, p.a, p.m, p.k);
  bind_matrix(launch, p, p.b, p.k, p.n);
  launch.value(static_cast<float>(p.alpha.as_double())).value(p.a.row).value(p.b.col);
  launch.value(p.c.row).run({static_cast<size_t>(p.n), static_cast<size_t>(p.m), 1}, {1, 1, 1});
}

constinit const AlgorithmFor<MatmulProblem> kOuterProduct({.id = "matmul.toy_outer",
                                                           .description = "outer products",
                                                           .provider = &kToy},
                                                          Steps<plan, run>());

constexpr const Algorithm* kAlgorithms[] = {&kOuterProduct};

}  // namespace

constinit const Provider kToy{.name = "toy",
                              .library = nullptr,
                              .what = "outer products, for the tests",
                              .suits = [](const Capabilities&) { return true; },
                              .algorithms = kAlgorithms};

}  // namespace ocltensor::opencl
