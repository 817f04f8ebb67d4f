// Eigenvalues and eigenvectors of symmetric and Hermitian matrices by one-sided Jacobi rotations
// (Hestenes, "Inversion of matrices by biorthogonalization and related results", 1958) of the rows
// of A + c I, whose eigenvalues are all positive: for such a matrix they are its singular values,
// and its eigenvectors are the right singular vectors.
#include "eigh.h"

#include "call/division.h"
#include "eigh_parts.h"
#include "kernels/linalg.h"

namespace ocltensor::opencl::linalg {
namespace {

namespace kernel = kernels::linalg::eigh_parts;

constexpr int64_t kFew = 16;  // up to so many rows the Frobenius norm is near enough to the largest
                              // eigenvalue

// Rotations J of B = A + c I make its rows orthogonal, J B = S W, so that B^2 = W^H S^2 W and B =
// W^H S W: the conjugate rows of W are the eigenvectors, which are orthonormal by themselves as no
// row of S W is short. Errors of the vectors are those of singular vectors of B, whose largest
// singular value is a few times that of A; eigenvalues come from A itself, as the Rayleigh
// quotients of the rows, and their errors are of second order in those of the vectors.
class Eigh {
 public:
  Eigh(const OpCall& call, const EighProblem& problem)
      : call_(call),
        batch_(batch_of(problem.a)),
        dtype_(problem.a.dtype()),
        real_(real_type(dtype_)),
        count_(numel(batch_)),
        n_(problem.a.size(-1)),
        a_(call, dtype_, batch_, n_, n_),
        rows_(call, dtype_, batch_, n_, n_),
        products_(call, dtype_, batch_, n_, n_),
        largest_(call, real_, {count_, n_}),
        lengths_(call, real_, {count_, n_}),
        scales_(call, real_, {count_, n_}),
        numbers_(call, real_, {count_, n_}),
        order_(call, DType::Int32, {count_, n_}),
        state_(call, DType::Int32, {count_, kSweeps}) {
    load_symmetric(call_, problem, a(), scales_);
    shift();
    make_rows_orthogonal(call_, rows_.stack(), state_);
    find_values(problem.values);
    if (problem.wants_vectors) store_vectors(problem.vectors);
  }

 private:
  template <typename Arguments>
  Launch launch(const KernelOf<Arguments>& kernel,
                const std::type_identity_t<Arguments>& arguments) const {
    return launch_typed(call_, dtype_, kernel, arguments);
  }
  const Stack& a() const { return a_.stack(); }
  const Stack& rows() const { return rows_.stack(); }
  const Stack& products() const { return products_.stack(); }

  // For many rows, the bound of eigenvalues is made from A^4, whose Frobenius norm is that of A's
  // largest eigenvalue to the power of 4, times at most sqrt(n).
  void shift() const {
    int power = 1;
    if (n_ > kFew) {
      multiply(call_, rows(), a(), a(), false);
      multiply(call_, products(), rows(), rows(), false);
      power = 4;
    }
    measure_columns(call_, power == 1 ? a() : products(), largest_, lengths_);
    run_rows(call_,
             launch(kernel::shift, {.a = a(),
                                    .b = rows(),
                                    .length = lengths_,
                                    .power = power,
                                    .p = params_of(a(), rows())}),
             count_ * n_);
  }

  void find_values(TensorView values) const {
    multiply(call_, products(), rows(), a(), false);
    run_rows(
        call_,
        launch(
            kernel::quotients,
            {.a = rows(), .b = products(), .value = numbers_, .p = params_of(rows(), products())}),
        count_ * n_);
    run_items(call_,
              launch(kernel::ascend, {.number = numbers_,
                                      .place = order_,
                                      .scale = scales_,
                                      .state = state_,
                                      .value = values,
                                      .p = params_of(rows(), rows())}),
              count_ * n_);
  }

  void store_vectors(TensorView vectors) const {
    measure_columns(call_, rows().transposed(), largest_, lengths_);
    arrange_columns(call_, rows().adjoint(), products().transposed(), order_, lengths_, false);
    products_.store(transposed(vectors));
  }

  const OpCall& call_;
  Dims batch_;
  DType dtype_, real_;
  int64_t count_, n_;
  Packed a_, rows_, products_;
  Numbers largest_, lengths_, scales_, numbers_, order_, state_;
};

void run_jacobi(const OpCall& call, const EighProblem& problem) { Eigh(call, problem); }

constinit const AlgorithmFor<EighProblem> kJacobi({.id = "eigh.jacobi",
                                                   .description = "one-sided Jacobi rotations",
                                                   .last_resort = true},
                                                  Steps<takes_all<EighProblem>, run_jacobi>());

struct EighTraits {
  static std::string describe(const OpCall& call, const EighProblem& p) {
    return fmt::format("{} {} {}{}", call.name(), name(p.a.dtype()), to_string(p.a.sizes()),
                       p.wants_vectors ? " with vectors" : "");
  }
};
using Algorithms = AlgorithmList<EighProblem, EighTraits>;

Algorithms& algorithms() {
  static Algorithms& list =  // leaked: threads may run while the process ends
      *new Algorithms("eigh", eigh_operators(), {&kSmallEigh, &kDivideEigh, &kJacobi});
  return list;
}

void eigh(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView a = args.tensor(Arg::A);
  const auto triangle = args.string(Arg::UPLO);
  const bool wants_vectors = args.boolean(Arg::compute_v);
  call.accept();
  if (a.numel() == 0) return;
  ContiguousOutput values(call, call.out(0));
  algorithms().run(
      call, {a, values.view(), call.out(1), triangle == "U" || triangle == "u", wants_vectors});
  values.finish();
}

constexpr OpEntry kOperators[] = {{"_linalg_eigh.eigenvalues", eigh, true}};

}  // namespace

void load_symmetric(const OpCall& call, const EighProblem& problem, const Stack& a,
                    const Numbers& scales) {
  const DType real = real_type(a.dtype);
  Packed loaded(call, a.dtype, batch_of(problem.a), a.rows, a.rows);
  loaded.load(problem.a);
  const Stack& from = loaded.stack();
  run_rows(call,
           launch_typed(call, a.dtype, kernel::symmetric,
                        {.a = from, .b = a, .upper = problem.upper, .p = params_of(from, a)}),
           a.count * a.rows);
  const Numbers largest(call, real, {a.count, a.rows});
  const Numbers lengths(call, real, {a.count, a.rows});
  measure_columns(call, a, largest, lengths);
  run_rows(call,
           launch_typed(call, a.dtype, kernel::normalise,
                        {.a = a, .largest = largest, .scale = scales, .p = params_of(a, a)}),
           a.count * a.rows);
}

std::span<const OpEntry> eigh_operators() { return kOperators; }

const AlgorithmFamily& eigh_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::linalg
