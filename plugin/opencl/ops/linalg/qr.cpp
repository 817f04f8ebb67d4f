// QR by Householder reflections: the factorisation, and the orthogonal matrix of given reflectors.
#include "call/division.h"
#include "kernels/linalg.h"
#include "linalg.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::linalg {
namespace {

// Blocks of up to 32 reflectors, H0 H1 ... = I - V F V^H, with the memory that applying them needs.
class Reflector {
 public:
  Reflector(const OpCall& call, DType dtype, const Dims& batch, int64_t rows, int64_t columns,
            TensorView tau)
      : call_(call),
        tau_(tau),
        v_(call, dtype, batch, rows, kPanel),
        products_(call, dtype, batch, kPanel, kPanel),
        factor_(call, dtype, batch, kPanel, kPanel),
        sums_(call, dtype, batch, kPanel, columns),
        scaled_(call, dtype, batch, kPanel, columns) {}

  // Takes the reflectors below the diagonal of `panel`; the first one is number `first`.
  void gather(const Stack& panel, int64_t first) {
    rows_ = panel.rows;
    LinalgParams p = params_of(panel, v().block(0, 0, rows_, kPanel));
    p.first = first;
    p.steps = std::min(kPanel, tau_.size(-1) - first);
    p.vector_batch = tau_.size(-1);
    run_rows(call_,
             launch_typed(call_, v().dtype, kernels::linalg::blocks_parts::reflectors,
                          {.a = panel, .b = v(), .p = p}),
             panel.count * rows_);
    const Stack used = v().block(0, 0, rows_, kPanel);
    multiply(call_, products_.stack(), used.adjoint(), used, false);
    LinalgParams f = params_of(products_.stack(), factor_.stack());
    f.first = first;
    f.steps = p.steps;
    f.vector_batch = p.vector_batch;
    launch_typed(call_, v().dtype, kernels::linalg::blocks_parts::block_factor,
                 {.a = products_.stack(), .b = factor_.stack(), .tau = tau_, .p = f})
        .run({kPanel * panel.count, 1, 1}, {by_style<int64_t>(call_, 1, kPanel), 1, 1});
  }

  // c = H0 H1 ... c, or the adjoint of the product times c.
  void apply(const Stack& c, bool adjoint) const {
    if (c.count * c.rows * c.columns == 0) return;
    const Stack used = v().block(0, 0, rows_, kPanel);
    const Stack sums = sums_.stack().block(0, 0, kPanel, c.columns);
    const Stack scaled = scaled_.stack().block(0, 0, kPanel, c.columns);
    multiply(call_, sums, used.adjoint(), c, false);
    multiply(call_, scaled, adjoint ? factor_.stack().adjoint() : factor_.stack(), sums, false);
    multiply(call_, c, used, scaled, true);
  }

 private:
  const Stack& v() const { return v_.stack(); }

  const OpCall& call_;
  TensorView tau_;
  int64_t rows_ = 0;
  Packed v_, products_, factor_, sums_, scaled_;
};

constexpr PanelKernel kQr{kernels::linalg::qr_cpu::qr, kernels::linalg::qr_gpu::qr};
constexpr PanelKernel kMakeQ{kernels::linalg::qr_cpu::make_q, kernels::linalg::qr_gpu::make_q};

void apply_small_q(const OpCall& call, const Stack& a, const Stack& b, TensorView tau) {
  LinalgParams p = params_of(a, b);
  p.steps = tau.size(-1);
  p.vector_batch = p.steps;
  run_panels(call, kMakeQ, {a}, {}, {.a = a, .b = b, .tau = tau, .p = p});
}

}  // namespace

void factor_qr(const OpCall& call, const Stack& a, const Dims& batch, TensorView tau) {
  const int64_t m = a.rows;
  const int64_t n = a.columns;
  const int64_t k = std::min(m, n);
  std::optional<Reflector> reflector;
  if (n > kPanel) reflector.emplace(call, a.dtype, batch, m, n, tau);
  for (int64_t j = 0; j < k; j += kPanel) {
    const Stack panel = a.block(j, j, m - j, std::min(kPanel, n - j));
    LinalgParams p = params_of(panel, panel);
    p.first = j;
    p.steps = std::min(kPanel, k - j);
    p.vector_batch = k;
    run_panels(call, kQr, {panel}, {}, {.a = panel, .tau = tau, .p = p});
    const int64_t next = j + kPanel;
    if (next >= n) continue;
    reflector->gather(panel, j);
    reflector->apply(a.block(j, next, m - j, n - next), true);
  }
}

void apply_q(const OpCall& call, const Stack& a, const Stack& b, const Dims& batch, TensorView tau,
             Right right) {
  const int64_t k = tau.size(-1);
  if (k == 0) return;
  if (b.columns <= kPanel) return apply_small_q(call, a, b, tau);
  Reflector reflector(call, a.dtype, batch, a.rows, b.columns, tau);
  for (int64_t j = (k - 1) / kPanel * kPanel; j >= 0; j -= kPanel) {
    reflector.gather(a.block(j, j, a.rows - j, std::min(kPanel, a.columns - j)), j);
    const int64_t first = right == Right::Identity ? j : 0;
    reflector.apply(b.block(j, first, b.rows - j, b.columns - first), false);
  }
}

namespace {

void geqrf(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  call.accept();
  if (self.numel() == 0) return;
  ContiguousOutput tau(call, call.out(1));
  Packed a(call, self.dtype(), batch_of(self), self.size(-2), self.size(-1));
  a.load(self);
  factor_qr(call, a.stack(), batch_of(self), tau.view());
  a.store(call.out(0));
  tau.finish();
}

void householder_product(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::input);
  call.accept();
  if (self.numel() == 0) return;
  const Dims batch = batch_of(self);
  const Vectors tau(call, call.args().tensor(Arg::tau), batch);
  const Operand a(call, self, batch);
  Packed q(call, self.dtype(), batch, self.size(-2), self.size(-1));
  q.set_identity();
  apply_q(call, a.stack(), q.stack(), batch, tau.view(), Right::Identity);
  q.store(call.out(0));
}

void qr(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::A);
  const TensorView q_out = call.out(0);
  const TensorView r_out = call.out(1);
  const bool wants_q = call.args().string(Arg::mode) != "r";
  call.accept();
  const Dims batch = batch_of(self);
  const int64_t m = self.size(-2);
  const int64_t n = self.size(-1);
  const int64_t k = std::min(m, n);
  if (numel(batch) * m == 0) return;
  const Scratch memory = call.scratch(static_cast<uint64_t>(numel(batch) * k * self.itemsize()));
  const LocalTensor tau(memory.address(), self.dtype(), Dims{numel(batch), k});
  Packed a(call, self.dtype(), batch, m, n);
  a.load(self);
  factor_qr(call, a.stack(), batch, tau);
  if (wants_q && q_out.numel() > 0) {
    Packed q(call, self.dtype(), batch, m, q_out.size(-1));
    q.set_identity();
    apply_q(call, a.stack(), q.stack(), batch, tau, Right::Identity);
    q.store(q_out);
  }
  if (r_out.numel() == 0) return;
  copy_triangle(call, a.stack(), a.stack(), false);
  a.store_part(r_out);
}

constexpr OpEntry kOperators[] = {{"geqrf.a", geqrf, true},
                                  {"linalg_householder_product.out", householder_product, true},
                                  {"linalg_qr.out", qr, true}};

}  // namespace

std::span<const OpEntry> qr_operators() { return kOperators; }

}  // namespace ocltensor::opencl::linalg
