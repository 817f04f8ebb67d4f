// Eigenvalues of small symmetric and Hermitian matrices: a work-group of a GPU holds one in local
// memory.
#include "eigh_parts.h"
#include "kernels/linalg.h"

namespace ocltensor::opencl::linalg {
namespace {

// The kernel's sizes, and the work-items that share a matrix of each.
struct Small {
  int64_t rows, group;
};
constexpr Small kSmall[] = {{8, 32}, {16, 64}, {32, 256}, {64, 512}};

// What the matrix, its vectors and the rotations of a round take.
uint64_t local_memory(const Small& s, DType type) {
  const int64_t elements = 2 * s.rows * (s.rows + 1) + 2 * s.rows + s.group;
  return static_cast<uint64_t>(elements * size_of(type) + 16 * s.rows);
}

const Small* small_for(const OpCall& call, DType type, int64_t n) {
  for (const Small& s : kSmall)
    if (n <= s.rows && local_memory(s, type) <= call.caps().local_memory &&
        s.group <= int64_t{call.caps().max_work_group_size})
      return &s;
  return nullptr;
}

const char* refuse(const OpCall& call, const EighProblem& p) {
  return is_small_problem(call, p.a.dtype(), p.a.size(-1)) ? nullptr
                                                           : "matrices do not fit in local memory";
}

void run(const OpCall& call, const EighProblem& p) {
  const Dims batch = batch_of(p.a);
  const Operand a(call, p.a, batch);
  const std::optional<Stack> vectors = p.wants_vectors ? view_of(p.vectors, batch) : a.stack();
  if (vectors) return solve_small(call, a.stack(), p.upper, p.values, *vectors, p.wants_vectors);
  const Packed packed(call, p.a.dtype(), batch, p.a.size(-1), p.a.size(-1));
  solve_small(call, a.stack(), p.upper, p.values, packed.stack(), true);
  packed.store(p.vectors);
}

}  // namespace

bool is_small_problem(const OpCall& call, DType type, int64_t n) {
  return small_for(call, type, n) != nullptr;
}

void solve_small(const OpCall& call, const Stack& a, bool upper, MemoryRange values,
                 const Stack& vectors, bool wants_vectors) {
  const Small& small = *small_for(call, a.dtype, a.rows);
  Defines d = with_numbers({}, a.dtype);
  d.set(define::SIZE, small.rows).set(define::GROUP, small.group);
  LinalgParams p = params_of(a, vectors);
  p.steps = wants_vectors ? 1 : 0;
  call.launch(kernels::linalg::eigh_small::jacobi, d,
              {.a = a, .value = values, .vector = vectors, .upper = upper, .p = p})
      .run({a.count * small.group, 1, 1}, {small.group, 1, 1});
}

constinit const AlgorithmFor<EighProblem> kSmallEigh(
    {.id = "eigh.small",
     .description = "two-sided Jacobi rotations in local memory",
     .style = DeviceStyle::Gpu},
    Steps<refuse, run>());

}  // namespace ocltensor::opencl::linalg
