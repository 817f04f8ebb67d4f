// LU factorisation with partial pivoting, solves with it, inverses, and its factors as matrices.
#include "call/division.h"
#include "kernels/linalg.h"
#include "lu.h"
#include "ops/copy/copy.h"

namespace ocltensor::opencl::linalg {
namespace {

struct LuTraits {
  static std::string describe(const OpCall& call, const LuProblem& p) {
    return fmt::format("{} {} {}{}", call.name(), name(p.a.dtype()), to_string(p.a.sizes()),
                       p.b ? fmt::format(" for {}", to_string(p.b->sizes())) : "");
  }
};
using Algorithms = AlgorithmList<LuProblem, LuTraits>;

Algorithms& algorithms() {
  static Algorithms& list =  // leaked: threads may run while the process ends
      *new Algorithms("lu", lu_operators(), {&kPanelsLu});
  return list;
}

// Runs the problem, unless there is nothing to factor. `info` counts from 1; 0 is success.
void run(const OpCall& call, const LuProblem& p) {
  if (p.a.numel() > 0)
    algorithms().run(call, p);
  else if (p.info.numel() > 0)
    copy::fill_tensor(call, p.info, 0);
}

void lu_factor(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  call.accept();
  ContiguousOutput pivots(call, call.out(1));
  ContiguousOutput info(call, call.out(2));
  run(call, {.a = args.tensor(Arg::A),
             .lu = call.out(0),
             .pivots = pivots.view(),
             .info = info.view(),
             .pivot = args.boolean(Arg::pivot)});
  pivots.finish();
  info.finish();
}

void solve(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  call.accept();
  ContiguousOutput pivots(call, call.out(2));
  ContiguousOutput info(call, call.out(3));
  LuProblem p{.a = args.tensor(Arg::A),
              .lu = call.out(1),
              .pivots = pivots.view(),
              .info = info.view(),
              .left = args.boolean(Arg::left)};
  if (call.wants(0)) {
    p.b = args.tensor(Arg::B);
    p.x = call.out(0);
  }
  run(call, p);
  pivots.finish();
  info.finish();
}

void inverse(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::A);
  call.accept();
  ContiguousOutput info(call, call.out(1));
  Dims sizes = batch_of(self);
  sizes.push_back(self.size(-1));
  const Scratch memory = call.scratch(static_cast<uint64_t>(numel(sizes) * size_of(DType::Int32)));
  const LocalTensor pivots(memory.address(), DType::Int32, sizes);
  run(call, {.a = self, .pivots = pivots, .info = info.view(), .x = call.out(0)});
  info.finish();
}

void lu_solve(OpCall& call) {
  check_outputs(call);
  const Args& args = call.args();
  const TensorView out = call.out(0);
  const bool left = args.boolean(Arg::left);
  const bool adjoint = args.boolean(Arg::adjoint);
  call.accept();
  if (out.numel() == 0) return;
  const Dims batch = batch_of(out);
  const Operand lu(call, args.tensor(Arg::LU), batch);
  const Vectors pivots(call, args.tensor(Arg::pivots), batch);
  const LocalTensor target = on_left(out, left);
  Packed x(call, out.dtype(), batch, target.view().size(-2), target.view().size(-1));
  x.load(on_left(args.tensor(Arg::B), left));
  solve_lu(call, adjoint ? lu.stack().conjugated() : lu.stack(), pivots.view(), x.stack(),
           adjoint == left);
  x.store(target);
}

void unpack_permutation(const OpCall& call, TensorView pivots_tensor, TensorView out) {
  const Dims batch = batch_of(out);
  const int64_t m = out.size(-1);
  const Vectors pivots(call, pivots_tensor, batch);
  const Scratch order = call.scratch(static_cast<uint64_t>(numel(batch) * m * 4));
  Packed p(call, out.dtype(), batch, m, m);
  copy::fill_tensor(
      call,
      LocalTensor(p.stack().at.address, out.dtype(), Dims{p.stack().count * p.stack().at.batch}),
      0);
  LinalgParams params = params_of(p.stack(), p.stack());
  params.steps = pivots.view().size(-1);
  params.vector_batch = params.steps;
  launch_typed(call, out.dtype(), kernels::linalg::blocks_parts::permutation,
               {.order = order, .b = p.stack(), .pivot = pivots.view(), .p = params})
      .run({numel(batch), 1, 1}, {1, 1, 1});
  p.store(out);
}

void unpack_triangle(const OpCall& call, TensorView lu, TensorView out, bool unit_lower) {
  const Operand source(call, lu, batch_of(lu));
  const Packed part(call, out.dtype(), batch_of(out), out.size(-2), out.size(-1));
  copy_triangle(call, source.stack(), part.stack(), unit_lower);
  part.store(out);
}

void lu_unpack(OpCall& call) {
  check_outputs(call);
  call.accept();
  const TensorView lu = call.args().tensor(Arg::LU_data);
  if (call.wants(0)) unpack_permutation(call, call.args().tensor(Arg::LU_pivots), call.out(0));
  if (call.wants(1)) unpack_triangle(call, lu, call.out(1), true);
  if (call.wants(2)) unpack_triangle(call, lu, call.out(2), false);
}

constexpr OpEntry kOperators[] = {{"linalg_lu_factor_ex.out", lu_factor, true},
                                  {"linalg_lu_solve.out", lu_solve, true},
                                  {"_linalg_solve_ex.result", solve, true},
                                  {"linalg_inv_ex.inverse", inverse, true},
                                  {"lu_unpack.out", lu_unpack, true}};

}  // namespace

std::span<const OpEntry> lu_operators() { return kOperators; }

const AlgorithmFamily& lu_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::linalg
