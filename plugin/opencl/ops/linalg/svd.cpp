// Singular values by one-sided Jacobi rotations (Demmel and Veselic, "Jacobi's method is more
// accurate than QR", 1992) of the rows of R, from the QR factorisation of the columns in the order
// of their sizes, which halves the number of sweeps (Drmac and Veselic, "New fast and accurate
// Jacobi SVD algorithm", 2008).
#include "svd.h"

#include "call/algorithms.h"
#include "call/division.h"
#include "kernels/linalg.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::linalg {
namespace {

namespace kernel = kernels::linalg::svd_parts;

constexpr int64_t kBlock = 16;  // rows of a block

constexpr PanelKernel kRotate{kernels::linalg::svd_cpu::rotate_rows,
                              kernels::linalg::svd_gpu::rotate_rows};

// The decomposition of matrices of at least as many rows as columns, A = U S V^H. Columns of A are
// sorted, A P = Q R; rotations J make the rows of R orthogonal, J R = S W^H, so that W has the
// right singular vectors of R; R W = U' S has the left ones. Both are made orthonormal by QR, which
// also completes them where singular values are 0. Then U = Q U' and V = P W. What is computed of W
// and V are the conjugates, as V^H is what is asked for.
class Svd {
 public:
  Svd(const OpCall& call, TensorView source, TensorView values)
      : call_(call),
        batch_(batch_of(source)),
        dtype_(source.dtype()),
        real_(real_type(dtype_)),
        count_(numel(batch_)),
        m_(source.size(-2)),
        n_(source.size(-1)),
        values_(values),
        a_(call, dtype_, batch_, m_, n_),
        r_(call, dtype_, batch_, n_, n_),
        tau_(call, dtype_, {count_, n_}),
        largest_(call, real_, {count_, n_}),
        lengths_(call, real_, {count_, n_}),
        scales_(call, real_, {count_, n_}),
        columns_(call, DType::Int32, {count_, n_}),
        order_(call, DType::Int32, {count_, n_}),
        state_(call, DType::Int32, {count_, kSweeps}) {
    factor(source);
    make_rows_orthogonal(call_, r_.stack(), state_);
    sort_values();
  }

  // U, and the conjugate of V.
  void vectors(TensorView u_out, TensorView v_out) {
    const Packed w = right_vectors();
    copy_triangle(call_, a_.stack(), r_.stack(), false);
    const Packed left(call_, dtype_, batch_, n_, n_);
    multiply(call_, left.stack(), r_.stack(), w.stack().conjugated(), false);
    const Numbers tau(call_, dtype_, {count_, n_});
    factor_qr(call_, left.stack(), batch_, tau.view());
    Packed u(call_, dtype_, batch_, m_, u_out.size(-1));
    u.set_identity();
    const Stack part = u.stack().block(0, 0, n_, n_);
    apply_q(call_, left.stack(), part, batch_, tau.view(), Right::Identity);
    change_signs(left.stack(), part);
    apply_q(call_, a_.stack(), u.stack(), batch_, tau_.view(), Right::Any);
    u.store(u_out);
    const Packed v(call_, dtype_, batch_, n_, n_);
    arrange_columns(call_, w.stack().transposed(), v.stack().transposed(), columns_, scales_, true);
    v.store(v_out);
  }

 private:
  template <typename Arguments>
  Launch launch(const KernelOf<Arguments>& kernel,
                const std::type_identity_t<Arguments>& arguments) const {
    return launch_typed(call_, dtype_, kernel, arguments);
  }

  void change_signs(const Stack& a, const Stack& b) const {
    run_rows(call_, launch(kernel::change_signs, {.a = a, .b = b, .p = params_of(a, b)}),
             b.count * b.rows);
  }

  void factor(TensorView source) {
    Packed loaded(call_, dtype_, batch_, m_, n_);
    loaded.load(source);
    measure_columns(call_, loaded.stack(), largest_, lengths_);
    run_items(call_,
              launch(kernel::sort_columns, {.size = largest_,
                                            .place = columns_,
                                            .scale = scales_,
                                            .p = params_of(r_.stack(), r_.stack())}),
              count_ * n_);
    arrange_columns(call_, loaded.stack(), a_.stack(), columns_, scales_, false);
    factor_qr(call_, a_.stack(), batch_, tau_.view());
    copy_triangle(call_, a_.stack(), r_.stack(), false);
  }

  void sort_values() const {
    measure_columns(call_, r_.stack().transposed(), largest_, lengths_);
    run_items(call_,
              launch(kernel::sort_values, {.size = lengths_,
                                           .place = order_,
                                           .scale = scales_,
                                           .state = state_,
                                           .value = values_,
                                           .p = params_of(r_.stack(), r_.stack())}),
              count_ * n_);
  }

  // The conjugate of W: the rows that R was rotated to, normalised, in the order of singular
  // values.
  Packed right_vectors() const {
    const Packed rows(call_, dtype_, batch_, n_, n_);
    arrange_columns(call_, r_.stack().transposed(), rows.stack(), order_, lengths_, false);
    const Numbers tau(call_, dtype_, {count_, n_});
    factor_qr(call_, rows.stack(), batch_, tau.view());
    Packed w(call_, dtype_, batch_, n_, n_);
    w.set_identity();
    apply_q(call_, rows.stack(), w.stack(), batch_, tau.view(), Right::Identity);
    return w;
  }

  const OpCall& call_;
  Dims batch_;
  DType dtype_, real_;
  int64_t count_, m_, n_;
  TensorView values_;
  Packed a_, r_;
  Numbers tau_, largest_, lengths_, scales_, columns_, order_, state_;
};

void store_identity(const OpCall& call, TensorView out) {
  Packed identity(call, out.dtype(), batch_of(out), out.size(-2), out.size(-1));
  identity.set_identity();
  identity.store(out);
}

void run_jacobi(const OpCall& call, const SvdProblem& p) {
  const bool wide = p.a.size(-2) < p.a.size(-1);
  const LocalTensor turned = transposed(p.a);
  Svd decomposition(call, wide ? turned.view() : p.a, p.values);
  if (!p.u) return;
  if (wide)
    decomposition.vectors(transposed(*p.vh), *p.u);
  else
    decomposition.vectors(*p.u, transposed(*p.vh));
}

constinit const AlgorithmFor<SvdProblem> kJacobi({.id = "svd.jacobi",
                                                  .description = "one-sided Jacobi rotations",
                                                  .last_resort = true},
                                                 Steps<takes_all<SvdProblem>, run_jacobi>());

struct SvdTraits {
  static std::string describe(const OpCall& call, const SvdProblem& p) {
    return fmt::format("{} {} {}{}", call.name(), name(p.a.dtype()), to_string(p.a.sizes()),
                       p.u ? " with vectors" : "");
  }
};
using Algorithms = AlgorithmList<SvdProblem, SvdTraits>;

Algorithms& algorithms() {
  static Algorithms& list =  // leaked: threads may run while the process ends
      *new Algorithms("svd", svd_operators(), {&kJacobi});
  return list;
}

void svd(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::A);
  const bool wants_vectors = call.args().boolean(Arg::compute_uv);
  call.accept();
  if (numel(batch_of(self)) == 0) return;
  if (self.numel() == 0) {
    for (const size_t i : {0, 2})
      if (wants_vectors && call.wants(i)) store_identity(call, call.out(i));
    return;
  }
  ContiguousOutput values(call, call.out(1));
  SvdProblem problem{self, values.view(), std::nullopt, std::nullopt};
  if (wants_vectors) {
    problem.u = call.out(0);
    problem.vh = call.out(2);
  }
  algorithms().run(call, problem);
  values.finish();
}

constexpr OpEntry kOperators[] = {{"_linalg_svd.U", svd, true}};

}  // namespace

void measure_columns(const OpCall& call, const Stack& a, const Numbers& largest,
                     const Numbers& lengths) {
  run_rows(call,
           launch_typed(call, a.dtype, kernel::measure,
                        {.a = a, .largest = largest, .length = lengths, .p = params_of(a, a)}),
           a.count * a.columns);
}

// Small matrices, and those of large batches, are one piece of work each; others are cut into
// blocks of rows, which are paired in rounds. A sweep that rotates nothing ends the later ones.
void make_rows_orthogonal(const OpCall& call, const Stack& a, const Numbers& state) {
  copy::fill_tensor(call, state.view(), 0);
  LinalgParams p = params_of(a, a);
  const int64_t n = a.rows;
  const bool whole = n <= 4 * kBlock || (a.count >= 64 && n <= 32 * kBlock);
  p.blocks = whole ? 2 : 2 * divide_up(n, 2 * kBlock);
  p.block_rows = whole ? divide_up(n, 2) : kBlock;
  p.sweeps = whole ? kSweeps : 1;
  for (; p.sweep < kSweeps; p.sweep += p.sweeps)
    for (p.round = 0; p.round < p.blocks - 1; ++p.round)
      run_panels(call, kRotate, {.panel = a, .pieces = p.blocks / 2}, {},
                 {.a = a, .state = state, .p = p});
}

void arrange_columns(const OpCall& call, const Stack& a, const Stack& b, const Numbers& places,
                     const Numbers& divisors, bool back) {
  run_rows(call,
           launch_typed(call, a.dtype, kernel::arrange,
                        {.a = a,
                         .b = b,
                         .place = places,
                         .divisor = divisors,
                         .back = back,
                         .conjugated = a.conjugate,
                         .p = params_of(a, b)}),
           a.count * a.rows);
}

std::span<const OpEntry> svd_operators() { return kOperators; }

const AlgorithmFamily& svd_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::linalg
