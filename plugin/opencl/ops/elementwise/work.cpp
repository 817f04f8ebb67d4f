// Work division, and the parameters that it sets.
#include "work.h"

#include <algorithm>

#include "call/divide_up.h"
#include "call/quotient.h"
#include "kernels/elementwise.h"

namespace ocltensor::opencl::elementwise {
namespace {

constexpr int64_t kShortestLine = 256;  // shorter ones are not worth a division of their own

// Sets INDEX. Kernels divide a position by the sizes of dimensions to find the line or the element.
void count_elements(PointwiseParams& p, Defines& d) {
  const bool narrow = p.sizes[0] * p.rows < int64_t{1} << 31;
  const IndexWidth width = narrow ? IndexWidth::Bits32 : IndexWidth::Bits64;
  d.set(define::INDEX, narrow ? "uint" : "ulong");
  set_quotients(std::span(p.sizes).first(static_cast<size_t>(p.rank)), width, p.multipliers,
                p.shifts);
  if (p.parts != 0) set_quotients(std::span(&p.parts, 1), width, p.multipliers, p.shifts);
}

// Whether all tensors that are contiguous along the inner dimension pass: `test` takes one's place
// in the plan. The others are repeated along it.
template <typename Test>
bool all_runs(const PointwisePlan& plan, Test test) {
  for (size_t k = 0; k < plan.operands.size(); ++k)
    if (plan.operands[k].kind == OperandKind::Contiguous && !test(k)) return false;
  return true;
}

// Whether kernels have vectors of `type`, computing in `compute`. Bools can only be loaded so.
bool has_vectors(DType type, DType compute) {
  switch (type) {
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::Bool: return compute == DType::Float32;
    case DType::Int16:
    case DType::Int32:
    case DType::Int64: return compute == type;
    default: return false;
  }
}

// The elements that a work-item loads and stores at once; 1: each by itself. 16 bytes of 16-bit
// types, because four such elements by a load each take more instructions than most formulas; in
// lines that are too short for a work-group, of wider types, too, as finding a line takes some
// divisions.
int64_t vector_width(const PointwisePlan& plan, const Addresses& addresses) {
  constexpr int64_t kBytes = 16;
  constexpr int64_t kHalves = kBytes / 2;
  const PointwiseParams& p = plan.params;
  int64_t item = 1;
  const bool has = all_runs(plan, [&](size_t k) {
    item = std::max(item, size_of(plan.operands[k].type));
    return has_vectors(plan.operands[k].type, plan.compute);
  });
  const bool one_line = p.rank == 1;
  const bool short_lines = !one_line && p.sizes[0] < kShortestLine;
  int64_t width = has && plan.operands[0].type != DType::Bool ? kBytes / item : 1;
  if (width < kHalves && !short_lines) return 1;
  const auto starts_at_multiples = [&](size_t k) {
    const auto first = static_cast<int64_t>(addresses[k]) / plan.operands[k].itemsize;
    bool all = first % width == 0;
    for (int32_t i = 1; i < p.rank; ++i) all = all && p.strides[k][i] % width == 0;
    for (size_t i = POINTWISE_RANK; plan.nest != nullptr && i < plan.nest->rank(); ++i)
      all = all && plan.nest->strides[k][i] % width == 0;
    return all;
  };
  const auto fits = [&] {
    return (one_line || p.sizes[0] % width == 0) && all_runs(plan, starts_at_multiples);
  };
  while (width > 1 && !fits()) width = short_lines ? width / 2 : 1;
  return width;
}

}  // namespace

// Divides rows into about 64 pieces of work, none of which costs less than its launch.
void divide_rows(PointwisePlan& plan) {
  constexpr int64_t kPieces = 64;
  constexpr int64_t kSmallest = 4096;
  PointwiseParams& p = plan.params;
  const int64_t total = p.sizes[0] * p.rows;
  const int64_t piece = std::max(kSmallest, divide_up(total, kPieces));
  if (p.sizes[0] >= piece || p.rows == 1) {
    p.chunk = divide_up(std::min(piece, p.sizes[0]), 16) * 16;
    p.rows_per_item = 1;
  } else {
    p.chunk = p.sizes[0];
    p.rows_per_item = std::max<int64_t>(1, piece / p.sizes[0]);
  }
  plan.global[0] = divide_up(p.sizes[0], p.chunk);
  plan.global[1] = divide_up(p.rows, p.rows_per_item);
  if (p.rank > 1)
    set_quotients(std::span(p.sizes).subspan(1, static_cast<size_t>(p.rank) - 1),
                  IndexWidth::Bits64, p.multipliers + 1, p.shifts + 1);
}

// Where the whole nest or its lines are contiguous, a work-item takes several elements, and short
// lines get smaller work-groups. Otherwise a work-item takes one element.
void divide_elements(const Capabilities& caps, const Addresses& addresses, PointwisePlan& plan,
                     Defines& d) {
  PointwiseParams& p = plan.params;
  Grid& local = plan.local;
  const bool runs = plan.operands[0].kind == OperandKind::Contiguous &&
                    std::ranges::none_of(plan.operands, [](const PlannedOperand& o) {
                      return o.kind == OperandKind::Strided;
                    });
  const int64_t vector = runs ? vector_width(plan, addresses) : 1;
  const bool one_line = runs && p.rank == 1;
  const bool lines = runs && p.rank > 1 && vector == 1 && p.sizes[0] >= kShortestLine;
  if (one_line) d.set(define::FLAT, 1);
  if (vector > 1) d.set(define::VEC, vector);
  if (lines) d.set(define::LINES, 1);
  local[0] = std::min<int64_t>(256, caps.max_work_group_size);
  while (lines && local[0] > 64 && local[0] * 4 > p.sizes[0]) local[0] /= 2;
  plan.per_group = local[0] * (vector > 1 ? vector : one_line || lines ? 4 : 1);
  if (lines) p.parts = divide_up(p.sizes[0], plan.per_group) * local[0];
  if (vector > 1 && !one_line) p.parts = p.sizes[0] / vector;
  count_elements(p, d);
  divide_into_groups(plan);
  if (lines) plan.global[0] = p.parts * p.rows;
}

void divide_single_elements(const Capabilities& caps, PointwisePlan& plan, Defines& d) {
  plan.local[0] = plan.per_group = std::min<int64_t>(256, caps.max_work_group_size);
  d.set(define::FLAT, plan.params.rank == 1);
  count_elements(plan.params, d);
  divide_into_groups(plan);
}

void divide_into_groups(PointwisePlan& plan) {
  const int64_t total = plan.params.sizes[0] * plan.params.rows;
  plan.global[0] = divide_up(total, plan.per_group) * plan.local[0];
}

}  // namespace ocltensor::opencl::elementwise
