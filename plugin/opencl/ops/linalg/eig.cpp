// Eigenvalues and eigenvectors of general matrices: balancing, Hessenberg form, QR iteration to the
// Schur form, back substitution. A work-item per matrix on CPU drivers, a work-group on GPUs.
#include "eig.h"

#include "call/division.h"
#include "eig_params.h"
#include "kernels/linalg.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::linalg {
namespace {

namespace reduce_kernel = kernels::linalg::eig_reduce;
namespace step_kernel = kernels::linalg::eig_hessenberg;
namespace vector_kernel = kernels::linalg::eig_vectors;

constexpr int64_t kAlone = 64;  // up to so many a work-group alone reduces a matrix

Dims square_of(TensorView a) { return {numel(batch_of(a)), a.size(-1), a.size(-1)}; }

using FindSchurForm = void (*)(const OpCall&, const SchurProblem&);

class Eig {
 public:
  Eig(const OpCall& call, const EigProblem& problem, FindSchurForm find_schur_form)
      : call_(call),
        type_(problem.a.dtype()),
        part_(real_type(type_)),
        count_(numel(batch_of(problem.a))),
        n_(problem.a.size(-1)),
        group_(team_of(call, n_)),
        a_(call, type_, square_of(problem.a)),
        q_(call, type_, problem.vectors ? square_of(problem.a) : Dims{1}),
        scales_(call, part_, {count_, 3, n_}),
        numbers_(call, part_, {count_, 2}),
        values_(call, complex_type(type_), {count_, n_}),
        params_{count_, n_, problem.vectors ? 1 : 0, 1, n_} {
    reduce(problem);
    find_schur_form(call, {a_, q_, values_, problem.values, numbers_, params_});
    if (problem.vectors) find_vectors(*problem.vectors);
  }

 private:
  template <typename Arguments>
  Launch launch(const KernelOf<Arguments>& kernel,
                const std::type_identity_t<Arguments>& arguments) const {
    Defines d = with_numbers({}, type_);
    d.set(define::GROUP, group_);
    return call_.launch(kernel, d, arguments);
  }
  template <typename Arguments>
  void run_teams(const KernelOf<Arguments>& kernel,
                 const std::type_identity_t<Arguments>& arguments) const {
    launch(kernel, arguments).run({count_ * group_, 1, 1}, {group_, 1, 1});
  }

  void reduce(const EigProblem& problem) {
    copy_tensor(call_, LocalTensor(a_.view().address(), type_, Dims(problem.a.sizes())), problem.a);
    const Numbers work(call_, type_, {count_, 2, n_});
    run_teams(reduce_kernel::balance,
              {.a = a_, .scale = scales_, .number = numbers_, .p = params_});
    if (is_cpu_style(call_) || n_ <= kAlone)
      run_teams(reduce_kernel::hessenberg,
                {.a = a_, .q = q_, .work = work, .number = numbers_, .p = params_});
    else
      reduce_in_steps(work);
  }

  // The same as `hessenberg` on GPUs, by two launches a column, which many work-groups share.
  void reduce_in_steps(const Numbers& work) const {
    constexpr int64_t kTeam = 32;
    const int64_t group = reduce::group_size(call_.caps());
    EigParams p = params_;
    const auto run = [&](const auto& kernel, const auto& arguments, int64_t groups) {
      Defines d = with_numbers({}, type_);
      d.set(define::GROUP, group);
      call_.launch(kernel, d, arguments).run({count_ * groups * group, 1, 1}, {group, 1, 1});
    };
    using Left = kernels::linalg::EigHessenbergReflectLeftArguments;
    using Right = kernels::linalg::EigHessenbergReflectRightArguments;
    for (p.column = 0; p.column + 2 < n_; ++p.column) {
      p.groups = divide_up(n_ - p.column - 1, kTeam);
      run(step_kernel::reflect_left, Left{.a = a_, .work = work, .number = numbers_, .p = p},
          p.groups);
      p.groups = divide_up(n_, group / kTeam) + (p.vectors ? divide_up(n_, kTeam) : 0);
      run(step_kernel::reflect_right,
          Right{.a = a_, .q = q_, .work = work, .number = numbers_, .p = p}, p.groups);
    }
  }

  // On CPU drivers a work-item reads an eigenvector after the other, on GPUs adjacent ones have
  // adjacent vectors.
  void find_vectors(TensorView vectors) {
    const bool cpu = is_cpu_style(call_);
    params_.x_row = cpu ? 1 : n_;
    params_.x_col = cpu ? n_ : 1;
    const Numbers x(call_, complex_type(type_), {count_, n_, n_});
    const Numbers y(call_, complex_type(type_), {count_, n_, n_});
    run_items(call_,
              launch(vector_kernel::substitute,
                     {.a = a_, .x = x, .value = values_, .number = numbers_, .p = params_}),
              count_ * n_);
    run_items(call_,
              launch(vector_kernel::combine, {.q = q_,
                                              .x = x,
                                              .y = y,
                                              .scale = scales_,
                                              .value = values_,
                                              .number = numbers_,
                                              .p = params_}),
              count_ * n_ * (cpu ? 1 : n_));
    run_items(call_,
              launch(vector_kernel::normalise,
                     {.y = y, .value = values_, .number = numbers_, .p = params_}),
              count_ * n_);
    const Dims sizes(vectors.sizes());
    Dims strides = contiguous_strides(sizes);
    if (cpu) std::swap(strides[sizes.size() - 1], strides[sizes.size() - 2]);
    copy_tensor(call_, vectors, LocalTensor(y.view().address(), vectors.dtype(), sizes, strides));
  }

  const OpCall& call_;
  DType type_, part_;
  int64_t count_, n_, group_;
  Numbers a_, q_, scales_, numbers_, values_;
  EigParams params_;
};

void run_qr(const OpCall& call, const EigProblem& problem) { run_eig(call, problem, run_schur); }

constinit const AlgorithmFor<EigProblem> kQr({.id = "eig.qr",
                                              .description = "QR iteration to the Schur form",
                                              .last_resort = true},
                                             Steps<takes_all<EigProblem>, run_qr>());

struct EigTraits {
  static std::string describe(const OpCall& call, const EigProblem& p) {
    return fmt::format("{} {} {}{}", call.name(), name(p.a.dtype()), to_string(p.a.sizes()),
                       p.vectors ? " with vectors" : "");
  }
};
using Algorithms = AlgorithmList<EigProblem, EigTraits>;

Algorithms& algorithms() {
  static Algorithms& list =  // leaked: threads may run while the process ends
      *new Algorithms("eig", eig_operators(), {&kMultishiftEig, &kQr});
  return list;
}

void eig(OpCall& call) {
  check_outputs(call);
  const TensorView a = call.args().tensor(Arg::self);
  call.accept();
  if (a.numel() == 0) return;
  ContiguousOutput values(call, call.out(0));
  std::optional<TensorView> vectors;
  if (call.out_count() > 1) vectors = call.out(1);
  algorithms().run(call, {a, values.view(), vectors});
  values.finish();
}

constexpr OpEntry kOperators[] = {{"linalg_eig.out", eig, true}, {"linalg_eigvals.out", eig, true}};

}  // namespace

void run_eig(const OpCall& call, const EigProblem& problem,
             void (*find_schur_form)(const OpCall&, const SchurProblem&)) {
  Eig(call, problem, find_schur_form);
}

void run_schur(const OpCall& call, const SchurProblem& problem) {
  const int64_t group = team_of(call, problem.params.n);
  Defines d = with_numbers({}, problem.a.view().dtype());
  d.set(define::GROUP, group);
  call.launch(kernels::linalg::eig_schur::schur, d,
              {.a = problem.a,
               .q = problem.q,
               .value = problem.values,
               .scaled = problem.scaled,
               .number = problem.numbers,
               .p = problem.params})
      .run({problem.params.count * group, 1, 1}, {group, 1, 1});
}

// A warp for small matrices: barriers cost little there.
int64_t team_of(const OpCall& call, int64_t n) {
  return by_style<int64_t>(call, 1, n <= kPanel ? kPanel : reduce::group_size(call.caps()));
}

std::span<const OpEntry> eig_operators() { return kOperators; }

const AlgorithmFamily& eig_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::linalg
