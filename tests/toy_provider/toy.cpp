// The toy provider's algorithms: products with a single term in each sum, of float32, and of
// float32 with int8 and scales.
#include "toy.h"

#include "call/algorithm.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl {
namespace {

const Source kSource{"toy/matmul/outer.cl", R"(
#include "types.h"
__kernel void outer(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                    __global const void *b_base, ulong b_offset, float alpha, long a_step, long b_step, long c_step) {
  const size_t column = get_global_id(0), row = get_global_id(1);
  AT(f32, c_base, c_offset)[row * c_step + column] =
      alpha * AT_CONST(f32, a_base, a_offset)[row * a_step] * AT_CONST(f32, b_base, b_offset)[column * b_step];
}
)"};

// What generate_launches.py writes for the kernels of the plugin itself.
struct OuterArguments {
  MemoryRange c, a, b;
  Number<float> alpha;
  Number<int64_t> a_step, b_step, c_step;
  void bind(Launch& launch) const {
    for (const MemoryRange& range : {c, a, b}) launch.memory(range);
    launch.value(alpha.value).value(a_step.value).value(b_step.value).value(c_step.value);
  }
};
const KernelOf<OuterArguments> kOuter{kSource, "outer"};

const char* plan(const OpCall&, const matmul::Problem& p) {
  if (const char* reason = matmul::refuse_other_types(p)) return reason;
  if (const char* reason = matmul::refuse_more(p)) return reason;
  if (p.type() != DType::Float32) return "not float32";
  if (p.k != 1 || p.batch != 1) return "not an outer product";
  return p.end.self || p.c.col != 1 ? "not a plain row-major result" : nullptr;
}

void run(const OpCall& call, const matmul::Problem& p) {
  call.launch(kOuter, Defines(),
              {.c = matmul::memory_of_c(p),
               .a = matmul::memory_of_a(p),
               .b = matmul::memory_of_b(p),
               .alpha = static_cast<float>(p.end.alpha.as_double()),
               .a_step = p.a.row,
               .b_step = p.b.col,
               .c_step = p.c.row})
      .run({p.n, p.m, 1}, {1, 1, 1});
}

constinit const AlgorithmFor<matmul::Problem> kOuterProduct({.id = "matmul.toy_outer",
                                                             .description = "outer products",
                                                             .provider = &kToy},
                                                            Steps<plan, run>());

// Of weights in int8 with scales, in any combination with alpha, self and a formula: epilogue.h
// ends the sums of all kernels.
const Source kScaledSource{"toy/matmul/outer_scaled.cl", R"(
#include "epilogue.h"
__kernel void outer(__global void *c_base, ulong c_offset, __global const void *a_base, ulong a_offset,
                    __global const void *b_base, ulong b_offset, __global const void *s_base, ulong s_offset,
                    SCALE_PARAMETERS const MatmulParams p) {
  const long n = get_global_id(0), m = get_global_id(1);
  const Epilogue end = epilogue_of(ADD_SELF, s_base, s_offset, SCALE_ARGUMENTS 0, p);
  const float sum = LOAD(A_TYPE, AT_CONST(A_TYPE, a_base, a_offset), m * p.a_row) *
                    LOAD(B_TYPE, AT_CONST(B_TYPE, b_base, b_offset), n * p.b_col);
  STORE(RESULT, AT(RESULT, c_base, c_offset), m * p.c_row + n * p.c_col, ended(sum, m, n, end));
}
)"};

struct ScaledArguments {
  MemoryRange c, a, b, s, scales;
  MatmulParams p;
  void bind(Launch& launch) const {
    for (const MemoryRange& range : {c, a, b, s, scales}) launch.memory(range);
    launch.value(p);
  }
};
const KernelOf<ScaledArguments> kScaled{kScaledSource, "outer"};

const char* plan_scaled(const OpCall&, const matmul::Problem& p) {
  const matmul::Types& t = p.types;
  if (t.a != DType::Float32 || t.b != DType::Int8 || t.result != DType::Float32)
    return "not float32 times int8";
  if (!p.end.scales) return "no scales";
  return p.k != 1 || p.batch != 1 ? "not an outer product" : nullptr;
}

void run_scaled(const OpCall& call, const matmul::Problem& p) {
  Defines d = matmul::matmul_defines(p);
  call.launch(kScaled, d,
              {.c = matmul::memory_of_c(p),
               .a = matmul::memory_of_a(p),
               .b = matmul::memory_of_b(p),
               .s = matmul::memory_of_self(p),
               .scales = matmul::memory_of_scales(p),
               .p = matmul::matmul_params(p)})
      .run({p.n, p.m, 1}, {1, 1, 1});
}

constinit const AlgorithmFor<matmul::Problem> kScaledProduct(
    {.id = "matmul.toy_scaled",
     .description = "outer products with int8 and scales",
     .provider = &kToy},
    Steps<plan_scaled, run_scaled>());

constexpr const Algorithm* kAlgorithms[] = {&kOuterProduct, &kScaledProduct};

}  // namespace

constinit const Provider kToy{.name = "toy",
                              .library = nullptr,
                              .what = "outer products, for the tests",
                              .suits = [](const Capabilities&) { return true; },
                              .algorithms = kAlgorithms};

}  // namespace ocltensor::opencl
