// _standard_gamma, poisson, binomial: draws that take as many random numbers as they need.
#include "call/division.h"
#include "call/scalar_bits.h"
#include "kernels/random.h"
#include "random.h"

namespace ocltensor::opencl::random {
namespace {

// One kernel call: row-major parameters and result of one type.
struct Draws {
  TensorView out, in;
  const TensorView* prob = nullptr;  // of binomial
};

// Every element has a counter of its own.
RandomParams take_counters(const OpCall& call, int64_t count) {
  return take_numbers(call, count * 4, false);
}

// The smallest positive number of full precision.
double smallest_normal(DType type) {
  if (type == DType::Float16) return 0x1p-14;
  return type == DType::Float64 ? 0x1p-1022 : 0x1p-126;
}

template <typename MakeLaunch>
void run_counters(const OpCall& call, const Draws& draws, const MakeLaunch& launch) {
  const DType type = draws.out.dtype();
  RandomParams p = take_counters(call, draws.out.numel());
  p.count = draws.out.numel();
  const Division division = divide(call.caps(), p.count, 16);
  p.per_item = division.per_item;
  p.p[0] = real_bits(call, smallest_normal(type));
  Defines d;
  d.type(define::IN, type).set(define::WIDE, type == DType::Float64);
  launch(d, p).run(division.global, division.local);
}

void run_gamma(const OpCall& call, const Draws& draws) {
  run_counters(call, draws, [&](const Defines& d, const RandomParams& p) {
    return call.launch(kernels::random::rejection_gamma::draw, d,
                       {.out = draws.out, .in = draws.in, .p = p});
  });
}
void run_poisson(const OpCall& call, const Draws& draws) {
  run_counters(call, draws, [&](const Defines& d, const RandomParams& p) {
    return call.launch(
        kernels::random::rejection_poisson::draw, d,
        {.out = draws.out, .in = draws.in, .faults = call.fault(FaultKind::Rate), .p = p});
  });
}
void run_binomial(const OpCall& call, const Draws& draws) {
  run_counters(call, draws, [&](const Defines& d, const RandomParams& p) {
    return call.launch(kernels::random::rejection_binomial::draw, d,
                       {.out = draws.out, .in = draws.in, .prob = draws.prob, .p = p});
  });
}

template <void (*run)(const OpCall&, const Draws&)>
void of_one(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous in(call, self);
  ContiguousOutput out(call, call.out(0));
  run(call, {out.view(), in.view()});
  out.finish();
}

LocalTensor spread(TensorView t, const Dims& sizes) {
  return {t.address(), t.dtype(), sizes, broadcast_strides(t.sizes(), t.strides(), sizes)};
}

void binomial(OpCall& call) {
  check_outputs(call);
  const Dims sizes(call.out(0).sizes());
  const LocalTensor count = spread(call.args().tensor(Arg::count), sizes);
  const LocalTensor prob = spread(call.args().tensor(Arg::prob), sizes);
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous dense(call, count), dense_prob(call, prob);
  ContiguousOutput out(call, call.out(0));
  const TensorView prob_view = dense_prob.view();
  run_binomial(call, {out.view(), dense.view(), &prob_view});
  out.finish();
}

constexpr OpEntry kOperators[] = {{"_standard_gamma.out", of_one<run_gamma>},
                                  {"poisson.out", of_one<run_poisson>},
                                  {"binomial.out", binomial}};

}  // namespace

std::span<const OpEntry> rejection_operators() { return kOperators; }

}  // namespace ocltensor::opencl::random
