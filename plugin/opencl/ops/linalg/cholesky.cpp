// Cholesky factorisation and triangular solves.
#include "call/division.h"
#include "kernels/linalg.h"
#include "linalg.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::linalg {
namespace {

constexpr PanelKernel kCholesky{kernels::linalg::cholesky_cpu::cholesky,
                                kernels::linalg::cholesky_gpu::cholesky};
constexpr int64_t kBand = 1024;  // rows that steps work on, before a product updates all others
constexpr int64_t kStepGroup = 128;

// A = U^H U from the upper triangle, a block of rows at a time, after the contribution of the rows
// above has been subtracted.
void factor(const OpCall& call, const Stack& u, TensorView info) {
  const int64_t n = u.rows;
  for (int64_t j = 0; j < n; j += kPanel) {
    const int64_t size = std::min(kPanel, n - j);
    const int64_t rest = n - j - size;
    if (j > 0)
      multiply(call, u.block(j, j, size, n - j), u.block(0, j, j, size).adjoint(),
               u.block(0, j, j, n - j), true);
    const Stack diagonal = u.block(j, j, size, size);
    LinalgParams p = params_of(diagonal, diagonal);
    p.first = j;
    run_panels(call, kCholesky, {diagonal}, {}, {.a = diagonal, .info = info, .p = p});
    solve_block(call, diagonal.adjoint(), u.block(j, j + size, size, rest), Triangle::Lower);
  }
}

// The same on GPUs, from a to u: a launch for each panel of rows, which a work-group for each tile
// of the rows below shares.
void factor_in_steps(const OpCall& call, const Stack& a, const Stack& u, TensorView info) {
  const int64_t n = a.rows;
  Defines d = with_numbers({}, a.dtype);
  d.set(define::GROUP, kStepGroup);
  LinalgParams p = params_of(a, u);
  for (int64_t first = 0; first < n; first += kBand) {
    const int64_t end = std::min(first + kBand, n);
    p.steps = end;
    for (p.first = first; p.first < end; p.first += kPanel) {
      const int64_t tiles = divide_up(n - p.first, kPanel) * divide_up(end - p.first, kPanel);
      call.launch(kernels::linalg::cholesky_step::factor, d, {.a = a, .u = u, .info = info, .p = p})
          .run({a.count * tiles * kStepGroup, 1, 1}, {kStepGroup, 1, 1});
    }
    const Stack right = u.block(first, end, end - first, n - end);
    if (end < n) multiply(call, a.block(end, end, n - end, n - end), right.adjoint(), right, true);
  }
}

// Whether work-groups can hold what a step keeps: `rows`, `left` and `right` of cholesky_step.cl.
bool holds_steps(const OpCall& call, DType type) {
  constexpr int64_t kNumbers = 2 * kPanel * (kPanel + 2);
  return kStepGroup <= int64_t{call.caps().max_work_group_size} &&
         kNumbers * size_of(type) <= static_cast<int64_t>(call.caps().local_memory);
}

void cholesky(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  const bool upper = call.args().boolean(Arg::upper);
  call.accept();
  ContiguousOutput info(call, call.out(1));
  if (info.view().numel() > 0) copy::fill_tensor(call, info.view(), 0);
  if (self.numel() > 0) {
    Packed u(call, self.dtype(), batch_of(self), self.size(-1), self.size(-1));
    if (upper)
      u.load(self);
    else
      u.load(transposed(self));
    if (is_cpu_style(call) || !holds_steps(call, self.dtype())) {
      factor(call, u.stack(), info.view());
      copy_triangle(call, u.stack(), u.stack(), false);
    } else {
      const Packed factors(call, self.dtype(), batch_of(self), self.size(-1), self.size(-1));
      factor_in_steps(call, u.stack(), factors.stack(), info.view());
      copy_triangle(call, factors.stack(), u.stack(), false);
    }
    if (upper)
      u.store(call.out(0));
    else
      u.store(transposed(call.out(0)));
  }
  info.finish();
}

// With `left` false X A = B is solved as A^T X^T = B^T.
void solve_triangular(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView out = call.out(0);
  const bool left = args.boolean(Arg::left);
  const bool upper = args.boolean(Arg::upper) == left;
  const bool unit = args.boolean(Arg::unitriangular);
  call.accept();
  if (out.numel() == 0) return;
  const Operand a(call, args.tensor(Arg::self), batch_of(out));
  const LocalTensor target = on_left(out, left);
  Packed x(call, out.dtype(), batch_of(out), target.view().size(-2), target.view().size(-1));
  x.load(on_left(args.tensor(Arg::B), left));
  const Triangle kind = upper ? (unit ? Triangle::UnitUpper : Triangle::Upper)
                              : (unit ? Triangle::UnitLower : Triangle::Lower);
  solve_triangle(call, left ? a.stack() : a.stack().transposed(), x.stack(), kind);
  x.store(target);
}

constexpr OpEntry kOperators[] = {{"linalg_cholesky_ex.L", cholesky, true},
                                  {"linalg_solve_triangular.out", solve_triangular, true}};

}  // namespace

std::span<const OpEntry> cholesky_operators() { return kOperators; }

}  // namespace ocltensor::opencl::linalg
