// Launches the kernel that adds the pieces of a product over k.
#include "split_k_sum.h"

#include "kernels/matmul.h"

namespace ocltensor::opencl::matmul {

void sum_pieces(const OpCall& call, const Results& results, int64_t pieces, tb_address sums,
                const Guard& guard) {
  const Problem p{results.types, results.batch, results.m, results.n, 0, {}, {},
                  results.c,     results.end};
  // Many pieces of few results: work-items share a result, because one alone would wait for each
  // load in turn.
  constexpr int64_t kMany = 64, kGroup = 128;
  const bool shared = pieces > kMany;
  const int64_t group = shared ? kMany : kGroup;
  Defines d = sum_defines(p);
  d.set(define::GUARDED, guard.word != 0).set(define::LANES, shared ? kMany : 1);
  const int64_t items = shared ? p.n * kMany : divide_up(p.n, kGroup) * kGroup;
  call.launch(kernels::matmul::split_k_sum::matmul_sum_pieces, d,
              {.c = memory_of_c(p),
               .sums = MemoryRange(sums, 0, pieces * p.batch * p.m * p.n * sum_bytes(p.type())),
               .s = memory_of_self(p),
               .scales = given_scales(p),
               .word = guard.memory(),
               .stop = guard.value,
               .pieces = static_cast<int32_t>(pieces),
               .p = matmul_params(p)})
      .run({items, p.m, p.batch}, {group, 1, 1});
}

}  // namespace ocltensor::opencl::matmul
