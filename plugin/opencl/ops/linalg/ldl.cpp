// Factorisations L D L^T of symmetric and Hermitian matrices, and solves with them. A work-item per
// matrix factors on CPU drivers, a work-group on GPUs; a work-item solves for a right-hand side.
#include "call/division.h"
#include "kernels/linalg.h"
#include "ldl_params.h"
#include "linalg.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::linalg {
namespace {

namespace kernel = kernels::linalg::ldl;

Defines defines_for(const OpCall& call, TensorView a) {
  Defines d = with_numbers({}, a.dtype());
  d.set(define::HERMITIAN, is_complex(a.dtype()) && call.args().boolean(Arg::hermitian))
      .set(define::GROUP, team_of(call, a.size(-1)));
  return d;
}

// A dense row-major copy.
class Dense {
 public:
  Dense(const OpCall& call, TensorView from, DType type, const Dims& sizes)
      : numbers_(call, type, sizes) {
    copy_tensor(call, numbers_.view(), from);
  }
  TensorView view() const { return numbers_.view(); }
  operator MemoryRange() const { return numbers_; }  // NOLINT: implicit on purpose

 private:
  Numbers numbers_;
};

void factor(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  call.accept();
  if (self.numel() == 0) {
    if (call.wants(2)) copy::fill_tensor(call, call.out(2), 0);
    return;
  }
  ContiguousOutput pivots(call, call.out(1)), info(call, call.out(2));
  const int64_t n = self.size(-1), count = numel(batch_of(self));
  const Dense a(call, self, self.dtype(), Dims(self.sizes()));
  const Numbers work(call, self.dtype(), {count, 2, n});
  const int64_t team = team_of(call, n);
  call.launch(kernel::factor, defines_for(call, self),
              {.a = a,
               .work = work,
               .pivot = pivots,
               .info = info,
               .p = LdlParams{.count = count, .n = n, .columns = 0}})
      .run({count * team, 1, 1}, {team, 1, 1});
  copy_tensor(call, call.out(0), a.view());
  pivots.finish();
  info.finish();
}

void solve(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView out = call.out(0);
  const TensorView ld = args.tensor(Arg::LD);
  call.accept();
  if (out.numel() == 0) return;
  const int64_t n = ld.size(-1);
  Dims square = batch_of(out), vector = batch_of(out);
  square.push_back(n);
  square.push_back(n);
  vector.push_back(n);
  const Dense a(call, ld, ld.dtype(), square);
  const Dense pivots(call, args.tensor(Arg::pivots), DType::Int32, vector);
  const Dense b(call, args.tensor(Arg::B), out.dtype(), Dims(out.sizes()));
  const LdlParams params{.count = numel(batch_of(out)), .n = n, .columns = out.size(-1)};
  run_items(call,
            call.launch(kernel::solve, defines_for(call, ld),
                        {.a = a, .b = b, .pivot = pivots, .p = params}),
            params.count * params.columns);
  copy_tensor(call, out, b.view());
}

constexpr OpEntry kOperators[] = {{"linalg_ldl_factor_ex.out", factor, true},
                                  {"linalg_ldl_solve.out", solve, true}};

}  // namespace

std::span<const OpEntry> ldl_operators() { return kOperators; }

}  // namespace ocltensor::opencl::linalg
