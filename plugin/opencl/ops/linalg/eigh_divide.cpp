// Eigenvalues of real symmetric tridiagonal matrices on GPUs by divide and conquer: leaves by
// rotations, then merges of two neighbouring blocks' solutions.
#include "eigh_parts.h"
#include "kernels/linalg.h"

namespace ocltensor::opencl::linalg {
namespace {

namespace part_kernel = kernels::linalg::eigh_divide;
namespace root_kernel = kernels::linalg::eigh_divide_roots;

constexpr int64_t kGroup = 256;
constexpr int64_t kTeam = 32;   // work-items of a root
constexpr int64_t kGivens = 4;  // numbers of a rotation, at most

// Matrices one behind the other.
Stack stack_of(const Numbers& numbers, int64_t rows, int64_t columns) {
  const TensorView view = numbers.view();
  return {view.dtype(),
          view.numel() / (rows * columns),
          rows,
          columns,
          {view.address(), rows * columns, columns, 1}};
}

// The merges of a level. Vectors of half as many rows each are multiplied by those of the problems
// D + rho z z^T, which `inner` gets.
class Merges {
 public:
  Merges(const OpCall& call, const Tridiagonal& t, int64_t count, int64_t blocks, int64_t size)
      : call_(call),
        beside_(t.beside),
        type_(t.beside.view().dtype()),
        merges_(count * blocks),
        size_(size),
        kept_(call, DType::Int32, {merges_, 2}),
        places_(call, DType::Int32, {merges_, 2, size}),
        nearest_(call, DType::Int32, {merges_, size}),
        order_(call, DType::Int32, {merges_, size}),
        rho_(call, type_, {merges_}),
        poles_(call, type_, {merges_, size}),
        weights_(call, type_, {merges_, size}),
        results_(call, type_, {merges_, size}),
        distances_(call, type_, {merges_, size}),
        exact_(call, type_, {merges_, size}),
        lengths_(call, type_, {merges_, size}),
        work_(call, type_, {merges_, 2, size}),
        givens_(call, type_, {merges_, size, kGivens}),
        inner_(call, type_, {merges_, size, size}) {
    p_.count = merges_;
    p_.rows = t.beside.view().size(1);
    p_.columns = size;
    p_.steps = blocks;
  }

  // From values and vectors of the blocks to those of the merged ones.
  void run(const Numbers& values, const Numbers& vectors, const Numbers& merged_values,
           const Numbers& merged_vectors) const {
    deflate(values, vectors);
    find_roots(merged_values);
    find_vectors();
    const int64_t half = size_ / 2;
    multiply(call_, stack_of(merged_vectors, half, size_), stack_of(vectors, half, half),
             stack_of(inner_, half, size_), false);
  }

 private:
  void deflate(const Numbers& values, const Numbers& vectors) const {
    Defines d = with_numbers({}, type_);
    d.set(define::GROUP, kGroup);
    call_
        .launch(part_kernel::deflate, d,
                {.value = values,
                 .a = vectors,
                 .beside = beside_,
                 .kept = kept_,
                 .rho = rho_,
                 .pole = poles_,
                 .weight = weights_,
                 .place = places_,
                 .result = results_,
                 .givens = givens_,
                 .work = work_,
                 .p = p_})
        .run({merges_ * kGroup, 1, 1}, {kGroup, 1, 1});
  }

  template <typename Arguments>
  void run_teams(const KernelOf<Arguments>& kernel,
                 const std::type_identity_t<Arguments>& arguments) const {
    launch_typed(call_, type_, kernel, arguments)
        .run({merges_ * size_ * kTeam, 1, 1}, {kTeam, 1, 1});
  }

  void find_roots(const Numbers& merged_values) const {
    run_teams(root_kernel::roots, {.kept = kept_,
                                   .rho = rho_,
                                   .pole = poles_,
                                   .weight = weights_,
                                   .nearest = nearest_,
                                   .distance = distances_,
                                   .value = results_,
                                   .p = p_});
    run_teams(root_kernel::adjust, {.kept = kept_,
                                    .pole = poles_,
                                    .weight = weights_,
                                    .nearest = nearest_,
                                    .distance = distances_,
                                    .value = results_,
                                    .exact = exact_,
                                    .order = order_,
                                    .sorted = merged_values,
                                    .p = p_});
    run_teams(root_kernel::lengths, {.kept = kept_,
                                     .pole = poles_,
                                     .exact = exact_,
                                     .nearest = nearest_,
                                     .distance = distances_,
                                     .length = lengths_,
                                     .p = p_});
  }

  void find_vectors() const {
    run_items(call_,
              launch_typed(call_, type_, root_kernel::vectors,
                           {.kept = kept_,
                            .pole = poles_,
                            .exact = exact_,
                            .nearest = nearest_,
                            .distance = distances_,
                            .length = lengths_,
                            .order = order_,
                            .place = places_,
                            .b = inner_,
                            .p = p_}),
              merges_ * size_ * size_);
    run_items(call_,
              launch_typed(call_, type_, root_kernel::turn,
                           {.kept = kept_, .givens = givens_, .b = inner_, .p = p_}),
              merges_ * size_);
  }

  const OpCall& call_;
  const Numbers& beside_;
  DType type_;
  int64_t merges_, size_;
  Numbers kept_, places_, nearest_, order_, rho_, poles_, weights_, results_, distances_, exact_,
      lengths_, work_, givens_, inner_;
  LinalgParams p_{};
};

}  // namespace

int64_t most_leaf_rows(const OpCall& call, DType type) {
  for (const int64_t rows : {32, 16, 8})
    if (is_small_problem(call, type, rows)) return rows;
  return 0;
}

Conquest::Conquest(const OpCall& call, const Tridiagonal& t) {
  const DType type = t.beside.view().dtype();
  const int64_t count = t.beside.view().size(0);
  const int64_t n = t.beside.view().size(1);
  int64_t blocks = 1;
  while (divide_up(n, blocks) > most_leaf_rows(call, type)) blocks *= 2;
  int64_t size = divide_up(n, blocks);
  total = size * blocks;
  const int64_t leaves = count * blocks;
  const Numbers diagonal_blocks(call, type, {leaves, size, size});
  values = std::make_unique<Numbers>(call, type, Dims{count, total});
  vectors = std::make_unique<Numbers>(call, type, Dims{leaves, size, size});
  LinalgParams p{};
  p.rows = n;
  p.columns = size;
  p.steps = blocks;
  Defines d = with_numbers({}, type);
  d.set(define::GROUP, kGroup);
  call.launch(part_kernel::leaves, d,
              {.diagonal = t.diagonal, .beside = t.beside, .a = diagonal_blocks, .p = p})
      .run({count * kGroup, 1, 1}, {kGroup, 1, 1});
  solve_small(call, stack_of(diagonal_blocks, size, size), false, *values,
              stack_of(*vectors, size, size), true);
  while (blocks > 1) {
    blocks /= 2;
    size *= 2;
    auto merged_values = std::make_unique<Numbers>(call, type, Dims{count, total});
    auto merged = std::make_unique<Numbers>(call, type, Dims{count * blocks, size, size});
    Merges(call, t, count, blocks, size).run(*values, *vectors, *merged_values, *merged);
    std::swap(values, merged_values);
    std::swap(vectors, merged);
  }
}

}  // namespace ocltensor::opencl::linalg
