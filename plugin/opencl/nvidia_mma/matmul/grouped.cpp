// Products of groups on matrix units by mma.sync: 16-bit types, TF32 where it is allowed, and
// float32 as two TF32 numbers.
#include <algorithm>
#include <limits>

#include "kernels/nvidia_mma/matmul.h"
#include "nvidia_mma/provider.h"
#include "product.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using matmul::GroupedProblem;
using matmul::Operand;
using matmul::Parts;
using matmul::Problem;

// Lines begin at multiples of 16 bytes in every part, which its lines or whole steps along k do.
bool suits(const Problem& p, const Operand& operand, Parts parts, Parts own) {
  return matmul::has_vector_lines(p, operand, false) &&
         parts != (operand.along_k() ? Parts::OfK : own);
}

const char* refuse(const OpCall& call, const GroupedProblem& p) {
  const Problem& q = p.product;
  if (const char* reason = refuse_product(call, p.even_share())) return reason;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  constexpr int64_t kLeastRows = 16, kLeastColumns = 64;  // of a tile
  if (std::max({q.m, q.n, q.k}) > kMost - 256 ||
      p.tiles_of_m(kLeastRows) * p.tiles_of_n(kLeastColumns) > kMost / p.matrices())
    return "the sizes need 64 bits";
  if (!suits(q, operand_a(q), p.parts, Parts::OfM) || !suits(q, operand_b(q), p.parts, Parts::OfN))
    return "lines of an operand do not begin at multiples of 16 bytes";
  return nullptr;
}

Planned<MmaProduct> plan(const OpCall& call, const GroupedProblem& p) {
  if (const char* reason = refuse(call, p)) return reason;
  Planned<MmaKind> kind = kind_of(call, p.product.type());
  if (kind.reason() != nullptr) return kind.reason();
  return proven_product(call, p.even_share(), kind.plan(), p.parts);
}

Planned<MmaProduct> plan_tf32x3(const OpCall& call, const GroupedProblem& p) {
  if (const char* reason = refuse_tf32_parts(call, p.product.type())) return reason;
  if (const char* reason = refuse(call, p)) return reason;
  return proven_product(call, p.even_share(), MmaKind::Tf32x3, p.parts);
}
const char* pass_over_tf32x3(const OpCall& call, const GroupedProblem& p) {
  return pass_over_tf32_parts(call, p.even_share());
}

void enqueue(const OpCall& call, const GroupedProblem& p, const MmaProduct& v,
             const matmul::Guard& guard) {
  const MmaTile& t = v.form();
  const int64_t tiles = p.tiles_of_m(t.rows) * p.tiles_of_n(t.columns) * p.matrices();
  call.launch(kernels::nvidia_mma::matmul::product::matmul_mma, v.defines(call.caps()),
              {.c = matmul::memory_of_c(p.product),
               .a = matmul::memory_of_a(p.product),
               .b = matmul::memory_of_b(p.product),
               .s = nullptr,
               .word = guard.memory(),
               .stop = guard.value,
               .matrices = static_cast<int32_t>(p.product.batch),
               .piece_buffers = 0,
               .ends = std::optional(p.memory_of_ends()),
               .faults = std::optional(p.faults(call)),
               .p = matmul::matmul_params(p.product)})
      .run({tiles * t.items(), 1, 1}, {t.items(), 1, 1});
}

}  // namespace

// As run_tf32x3_product: plain float32 for numbers that cannot be split.
void run_grouped_product(const OpCall& call, const GroupedProblem& p, const MmaProduct& v) {
  if (!v.guarded()) return enqueue(call, p, v, {});
  const Problem& q = p.product;
  const Scratch word = call.scratch(sizeof(uint32_t));
  const matmul::Guard guard{word.address(), matmul::next_guard_value()};
  find_numbers_beyond(call, q, operand_a(q), operand_b(q), guard);
  enqueue(call, p, v, guard);
  matmul::run_portable_groups(call, p, guard);
}

constinit const AlgorithmFor<GroupedProblem> kGroupedProduct(
    {.id = "matmul_grouped.mma",
     .description = "matrix units by mma.sync",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaMma},
    Steps<plan, run_grouped_product>());
constinit const AlgorithmFor<GroupedProblem> kGroupedTf32x3(
    {.id = "matmul_grouped.mma_tf32x3",
     .description = "float32 as two TF32 numbers, by mma.sync",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaMma},
    Steps<plan_tf32x3, run_grouped_product>(), pass_over_tf32x3);

}  // namespace ocltensor::opencl::nvidia_mma
