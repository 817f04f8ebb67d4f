// The reduction of symmetric and Hermitian matrices to tridiagonal ones on GPUs.
#include "eigh_parts.h"
#include "kernels/linalg.h"

namespace ocltensor::opencl::linalg {
namespace {

namespace kernel = kernels::linalg::eigh_tridiagonal;

constexpr int64_t kGroup = 256;
constexpr int64_t kRows = kGroup / 32;  // of a work-group
constexpr int64_t kMostPieces = 16;

class Reduction {
 public:
  Reduction(const OpCall& call, const Stack& a, const Tridiagonal& out)
      : call_(call),
        a_(a),
        out_(out),
        n_(a.rows),
        x_(call, a.dtype, {a.count, n_}),
        u_(call, a.dtype, {a.count, n_}),
        v_(call, a.dtype, {a.count, n_}),
        sums_(call, a.dtype, {a.count, kMostPieces, 2 * kPanel}),
        vw_(call, a.dtype, {a.count, n_, 2 * kPanel}),
        wv_(call, a.dtype, {a.count, n_, 2 * kPanel}) {}

  void run() {
    for (int64_t first = 0; first < n_; first += kPanel) {
      const int64_t end = std::min(first + kPanel, n_);
      for (int64_t j = first; j < end; ++j) {
        column(j, j - first);
        if (j + 1 < n_) reflect(j, j - first);
      }
      if (end == n_) return;
      column(end, kPanel);
      multiply(call_, a_.block(end, end, n_ - end, n_ - end), panel(vw_, end),
               panel(wv_, end).adjoint(), true);
    }
  }

 private:
  template <typename Arguments>
  void launch(const KernelOf<Arguments>& kernel, const std::type_identity_t<Arguments>& arguments,
              int64_t groups) const {
    Defines d = with_numbers({}, a_.dtype);
    d.set(define::GROUP, kGroup);
    call_.launch(kernel, d, arguments).run({a_.count * groups * kGroup, 1, 1}, {kGroup, 1, 1});
  }
  LinalgParams params(int64_t column, int64_t step, int64_t groups) const {
    LinalgParams p = params_of(a_, a_);
    p.first = column;
    p.steps = step;
    p.columns = groups;
    return p;
  }
  static int64_t groups_for(int64_t rows) { return divide_up(rows, kRows); }
  // Pieces of at least 64 rows.
  int64_t pieces(int64_t column) const {
    return std::clamp<int64_t>((n_ - column) / 64, 1, kMostPieces);
  }
  Stack panel(const Numbers& numbers, int64_t row) const {
    constexpr int64_t kPair = 2 * kPanel;
    const Stack all{
        a_.dtype, a_.count, n_, kPair, {numbers.view().address(), n_ * kPair, kPair, 1}};
    return all.block(row, 0, n_ - row, kPair);
  }

  void column(int64_t j, int64_t step) const {
    const int64_t groups = groups_for(n_ - j);
    launch(kernel::column,
           {.a = a_,
            .x = x_,
            .u = u_,
            .v = v_,
            .vw = vw_,
            .wv = wv_,
            .sum = sums_,
            .tau = out_.tau,
            .diagonal = out_.diagonal,
            .pieces = static_cast<int>(pieces(j - 1)),
            .p = params(j, step, groups)},
           groups);
  }
  void reflect(int64_t j, int64_t step) const {
    const int64_t groups = groups_for(n_ - j - 1) + pieces(j);
    launch(kernel::reflect,
           {.a = a_,
            .x = x_,
            .u = u_,
            .v = v_,
            .vw = vw_,
            .wv = wv_,
            .sum = sums_,
            .tau = out_.tau,
            .beside = out_.beside,
            .pieces = static_cast<int>(pieces(j)),
            .p = params(j, step, groups)},
           groups);
  }

  const OpCall& call_;
  const Stack& a_;
  const Tridiagonal& out_;
  int64_t n_;
  Numbers x_, u_, v_, sums_, vw_, wv_;
};

}  // namespace

void reduce_to_tridiagonal(const OpCall& call, const Stack& a, const Tridiagonal& out) {
  Reduction(call, a, out).run();
}

}  // namespace ocltensor::opencl::linalg
