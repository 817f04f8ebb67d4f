// Products whose end is more than the fastest kernels know (matrix units know alpha and self): the
// product first, then scales, self and the formula by a second launch.
#include "matmul.h"
#include "ops/elementwise/elementwise.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr elementwise::Formula kScaled{"matmul_scaled", elementwise::FormulaForm::Vector, "a * b"};
constexpr elementwise::Formula kScaledAndAdded{"matmul_scaled_added",
                                               elementwise::FormulaForm::Vector, "a * b + s0 * c"};

// The product without what its kernels do not know. Scaled sums are kept as floats: those of 16-bit
// types may be out of their range.
Problem plain(const Problem& p) {
  Problem q = p;
  q.end.formula = nullptr;
  if (!p.end.scales) return q;
  q.end = {.alpha = p.end.alpha};
  q.types.result = q.types.self = compute_type(p.types.of_sums());
  return q;
}

const char* plan(const OpCall&, const Problem& p) {
  return p.end.has_more() ? nullptr : "no end but alpha and self";
}

const char* pass_over(const OpCall& call, const Problem& p) {
  if (!p.end.has_more()) return "no end but alpha and self";
  return has_units_for(call, plain(p)) ? nullptr : "the products' own kernels end it";
}

LocalTensor tensor_of(DType type, const Matrix& m, const Problem& p) {
  return LocalTensor(m.address, type, Dims{p.batch, p.m, p.n}, Dims{m.batch, m.row, m.col});
}

void run(const OpCall& call, const Problem& p) {
  const DType compute = compute_type(p.types.of_sums());
  const LocalTensor result = tensor_of(p.types.result, p.c, p);
  const auto launch = [&](const elementwise::Formula& formula,
                          std::span<const elementwise::ElementwiseInput> inputs,
                          std::span<const Scalar> numbers) {
    elementwise::launch_elementwise(call, result.view(),
                                    {&formula, compute, p.types.result, false, inputs, numbers});
  };
  Problem product = plain(p);
  std::optional<Scratch> sums;
  if (p.end.scales) {
    sums.emplace(call.scratch(static_cast<uint64_t>(p.batch * p.m * p.n * size_of(compute))));
    product.c = {sums->address(), p.m * p.n, p.n, 1};
  }
  run_matmul(call, product);
  if (p.end.scales) {
    const LocalTensor a = tensor_of(compute, product.c, p);
    const LocalTensor scales = tensor_of(p.end.scales->type, p.end.scales->at, p);
    const LocalTensor self = tensor_of(p.types.self, p.end.self.value_or(p.c), p);
    const TensorView views[] = {a.view(), scales.view(), self.view()};
    const elementwise::ElementwiseInput inputs[] = {{&views[0]}, {&views[1]}, {&views[2]}};
    if (p.end.self)
      launch(kScaledAndAdded, inputs, {&p.end.beta, 1});
    else
      launch(kScaled, std::span(inputs).first(2), {});
  }
  if (p.end.formula == nullptr) return;
  const TensorView view = result.view();
  const elementwise::ElementwiseInput input{&view};
  launch(*p.end.formula, {&input, 1}, {});
}

}  // namespace

constinit const AlgorithmFor<Problem> kEndApart(
    {.id = "matmul.end_apart",
     .description = "matrix units, and a second launch for scales and formulas"},
    Steps<plan, run>(), pass_over);

}  // namespace ocltensor::opencl::matmul
