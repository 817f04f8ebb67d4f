// randperm and multinomial: random numbers that are sorted or searched.
#include "call/division.h"
#include "kernels/random.h"
#include "ops/copy/copy.h"
#include "ops/sort/sort.h"
#include "random.h"

namespace ocltensor::opencl::random {
namespace {

// The order of n random keys of 64 bits.
void randperm(OpCall& call) {
  check_outputs(call, OutputTypes::Any);
  const int64_t n = call.args().integer(Arg::n);
  if (n > INT32_MAX) unsupported(TB_REASON_SIZE, "randperm: n is limited to 2^31");
  call.accept();
  if (n == 0) return;
  const Dims row{1, n};
  const Scratch key_memory = call.scratch(static_cast<uint64_t>(n) * 8);
  const LocalTensor keys(key_memory.address(), DType::Int64, row);
  draw_integers(call, keys, 0, 0);
  const Scratch order_memory = call.scratch(static_cast<uint64_t>(n) * 8);
  const LocalTensor order(order_memory.address(), DType::Int64, row);
  sort::sort_rows(call, keys, {false, true}, nullptr, order);
  copy_tensor(call, call.out(0), LocalTensor(order_memory.address(), DType::Int64, Dims{n}));
}

Defines weight_defines(DType type) {
  Defines d;
  d.type(define::W, type).set(define::WIDE, type == DType::Float64);
  return d;
}

struct Draws {
  int64_t rows, categories, samples;
};

void with_replacement(const OpCall& call, TensorView weights, TensorView out, Draws n) {
  const DType real = call.caps().fp64 ? DType::Float64 : DType::Float32;
  const bool wide = weights.dtype() == DType::Float64;
  const Scratch sums = call.scratch(static_cast<uint64_t>(n.rows * n.categories * size_of(real)));
  const Division by_row = divide(call.caps(), n.rows);
  const Defines d = weight_defines(weights.dtype());
  call.launch(kernels::random::multinomial::cumulate, d,
              {.sum = sums,
               .weight = weights,
               .rows = n.rows,
               .per_item = by_row.per_item,
               .categories = n.categories})
      .run(by_row.global, by_row.local);
  RandomParams p = take_numbers(call, n.rows * n.samples, wide);
  p.p[0] = static_cast<uint64_t>(n.categories);
  p.p[1] = static_cast<uint64_t>(n.samples);
  run_draws(call, p, wide, [&](const RandomParams& cut) {
    return call.launch(kernels::random::multinomial::sample, d,
                       {.out = out, .sum = sums, .p = cut});
  });
}

void without_replacement(const OpCall& call, TensorView weights, TensorView out, Draws n) {
  const DType real = call.caps().fp64 ? DType::Float64 : DType::Float32;
  const bool wide = weights.dtype() == DType::Float64;
  const Scratch memory = call.scratch(static_cast<uint64_t>(n.rows * n.categories * size_of(real)));
  const LocalTensor times(memory.address(), real, Dims{n.rows, n.categories});
  const RandomParams p = take_numbers(call, n.rows * n.categories, wide);
  run_draws(call, p, wide, [&](const RandomParams& cut) {
    return call.launch(kernels::random::multinomial::race, weight_defines(weights.dtype()),
                       {.time = times, .weight = weights, .p = cut});
  });
  sort::sort_rows(call, times, {}, nullptr,
                  LocalTensor(out.address(), DType::Int64, Dims{n.rows, n.samples}));
}

// Reports rows of weights that nothing can be drawn from: errors, as on the CPU.
void report_bad_rows(const OpCall& call, TensorView weights, Draws n) {
  if (!call.policy().check_values) return;
  const Division by_row = divide(call.caps(), n.rows);
  call.launch(kernels::random::multinomial::judge, weight_defines(weights.dtype()),
              {.weight = weights,
               .rows = n.rows,
               .per_item = by_row.per_item,
               .categories = n.categories,
               .faults = call.fault(FaultKind::Weight),
               .no_weight = fault_site(call.op(), FaultKind::NoWeight, 0)})
      .run(by_row.global, by_row.local);
}

void multinomial(OpCall& call) {
  check_outputs(call);
  const TensorView self = call.args().tensor(Arg::self);
  const Draws n{self.ndim() == 1 ? 1 : self.size(0), self.size(-1),
                call.args().integer(Arg::num_samples)};
  check(n.categories > 0 && n.categories <= INT32_MAX,
        "multinomial: the number of categories must be in [1, 2^31)");
  call.accept();
  if (!call.wants(0)) return;
  const Contiguous weights(call, self);
  report_bad_rows(call, weights.view(), n);
  ContiguousOutput out(call, call.out(0));
  (call.args().boolean(Arg::replacement) ? with_replacement : without_replacement)(
      call, weights.view(), out.view(), n);
  out.finish();
}

constexpr OpEntry kOperators[] = {{"randperm.generator_out", randperm},
                                  {"multinomial.out", multinomial}};

}  // namespace

std::span<const OpEntry> permute_operators() { return kOperators; }

}  // namespace ocltensor::opencl::random
