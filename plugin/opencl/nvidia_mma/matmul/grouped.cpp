// Products of groups on matrix units by mma.sync: 16-bit types, and TF32 where it is allowed.
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

Planned<MmaProduct> plan(const OpCall& call, const GroupedProblem& p) {
  const Problem& q = p.product;
  if (const char* reason = refuse_product(call, p.even_share())) return reason;
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  constexpr int64_t kLeastRows = 16, kLeastColumns = 64;  // of a tile
  if (std::max({q.m, q.n, q.k}) > kMost - 256 ||
      p.tiles_of_m(kLeastRows) * p.tiles_of_n(kLeastColumns) > kMost / p.matrices())
    return "the sizes need 64 bits";
  if (!suits(q, operand_a(q), p.parts, Parts::OfM) || !suits(q, operand_b(q), p.parts, Parts::OfN))
    return "lines of an operand do not begin at multiples of 16 bytes";
  Planned<MmaKind> kind = kind_of(call, q.dtype);
  if (kind.reason() != nullptr) return kind.reason();
  return proven_product(call, p.even_share(), kind.plan(), p.parts);
}

}  // namespace

void run_grouped_product(const OpCall& call, const GroupedProblem& p, const MmaProduct& v) {
  const MmaTile& t = v.form();
  const int64_t tiles = p.tiles_of_m(t.rows) * p.tiles_of_n(t.columns) * p.matrices();
  call.launch(kernels::nvidia_mma::matmul::product::matmul_mma, v.defines(call.caps()),
              {.c = matmul::memory_of_c(p.product),
               .a = matmul::memory_of_a(p.product),
               .b = matmul::memory_of_b(p.product),
               .s = nullptr,
               .word = matmul::Guard().memory(),
               .stop = 0u,
               .matrices = static_cast<int32_t>(p.product.batch),
               .piece_buffers = 0,
               .ends = std::optional(p.memory_of_ends()),
               .faults = std::optional(p.faults(call)),
               .p = matmul::matmul_params(p.product)})
      .run({tiles * t.items(), 1, 1}, {t.items(), 1, 1});
}

constinit const AlgorithmFor<GroupedProblem> kGroupedProduct(
    {.id = "matmul_grouped.mma",
     .description = "matrix units by mma.sync",
     .style = DeviceStyle::Gpu,
     .provider = &kNvidiaMma},
    Steps<plan, run_grouped_product>());

}  // namespace ocltensor::opencl::nvidia_mma
