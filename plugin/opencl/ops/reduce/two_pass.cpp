// Reductions whose second sweep needs the result of a first one, and norms: var, std, logsumexp,
// linalg_vector_norm.
#include <cmath>

#include "base/infer/common.h"
#include "call/algorithms.h"
#include "call/divide_up.h"
#include "call/division.h"
#include "call/scalar_bits.h"
#include "complex.h"
#include "kernels/reduce.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/elementwise.h"
#include "reduction.h"

namespace ocltensor::opencl::reduce {
namespace {

// A reduction's result in scratch memory; reduced dimensions are kept with size 1, so that it
// broadcasts against the operand.
class Middle {
 public:
  Middle(const OpCall& call, TensorView self, DimMask mask, DType type)
      : sizes_(infer::reduced_sizes(self.sizes(), mask, true)),
        memory_(call.scratch(static_cast<uint64_t>(numel(sizes_) * size_of(type)))),
        local_(memory_.address(), type, sizes_),
        view_(local_.view()) {}
  const TensorView* view() const { return &view_; }
  // The same elements with the sizes of `out`.
  LocalTensor shaped_like(TensorView out) const {
    return LocalTensor(memory_.address(), local_.dtype(), Dims(out.sizes()));
  }

 private:
  Dims sizes_;
  Scratch memory_;
  LocalTensor local_;
  TensorView view_;
};

// Strides that lead to the first element of every reduced slice.
Dims kept_strides(TensorView self, DimMask mask, bool keepdim) {
  Dims strides;
  for (size_t d = 0; d < self.sizes().size(); ++d)
    if (keepdim || !mask[d]) strides.push_back(self.strides()[d]);
  return strides;
}

double count_of(TensorView self, DimMask mask) {
  double count = 1;
  for (size_t d = 0; d < self.sizes().size(); ++d)
    if (mask[d]) count *= static_cast<double>(self.sizes()[d]);
  return count;
}

constexpr Reduction kDeviation{1, {{kOffsetVariance.part[0].lift, kAdd, "0", "sqrt(x / s0)"}}};
constexpr elementwise::Formula kMeanFormula{"mean", elementwise::FormulaForm::Vector,
                                            "(" OCLTENSOR_PIVOT("a") ") + b"};

// A variance over the dimensions of `mask`; the divisor is max(0, n - correction), as in ATen.
struct VarianceProblem {
  TensorView self;
  DimMask mask;
  bool root;
  TensorView out;
  const TensorView* mean_out;  // null: not wanted
  double count, divisor;
};
using VarianceAlgorithm = AlgorithmFor<VarianceProblem>;

// Contiguous rows that fit the registers of a work-group are read only once.
struct RowsPlan {
  int64_t group, length, rows, lanes;
};
Planned<RowsPlan> plan_one_sweep(const OpCall& call, const VarianceProblem& p) {
  constexpr int64_t kHeld = 16;  // two_pass_gpu.cl: HELD
  const TensorView& self = p.self;
  RowsPlan plan{group_size(call.caps()), 1, 0, 1};
  bool innermost = true;  // whether only the last dimensions are reduced
  for (size_t d = self.sizes().size(); d-- > 0;) {
    const bool reduced = p.mask[d];
    if (reduced) plan.length *= self.sizes()[d];
    innermost = innermost && (reduced || (p.mask & first_dims(d)).none());
  }
  if (!innermost) return "other dimensions than the last are reduced";
  if (!self.is_contiguous() || !p.out.is_contiguous() ||
      (p.mean_out != nullptr && !p.mean_out->is_contiguous()))
    return "an operand is not contiguous";
  if (self.numel() == 0 || plan.length < 16) return "rows are too short";
  if (plan.length > plan.group * kHeld) return "rows do not fit a work-group's registers";
  plan.rows = self.numel() / plan.length;
  while (plan.lanes * kHeld < plan.length) plan.lanes *= 2;
  // With few rows more work-items share a row.
  if (divide_up(plan.rows * plan.lanes, plan.group) < call.caps().compute_units &&
      plan.length > 4 * plan.lanes) {
    while (plan.lanes < plan.group && plan.lanes * 4 < plan.length) plan.lanes *= 2;
  }
  return plan;
}
void run_one_sweep(const OpCall& call, const VarianceProblem& p, const RowsPlan& plan) {
  const DType compute = compute_type(p.self.dtype());
  Defines d;
  d.type(define::COMPUTE, compute).type(define::A, p.self.dtype()).type(define::OUT, p.out.dtype());
  d.type(define::MEAN, p.mean_out != nullptr ? p.mean_out->dtype() : compute);
  d.set(define::MEANS, p.mean_out != nullptr)
      .set(define::ROOT, p.root)
      .set(define::GROUP, plan.group);
  const int64_t groups = divide_up(plan.rows * plan.lanes, plan.group);
  call.launch(kernels::reduce::two_pass_gpu::variance, d,
              {.a = p.self,
               .out = p.out,
               .mean = p.mean_out,
               .rows = plan.rows,
               .n = plan.length,
               .lanes = plan.lanes,
               .divisor = scalar_bits(p.divisor, compute)})
      .run({groups * plan.group, 1, 1}, {plan.group, 1, 1});
}

// Computes the mean, then sums squared distances from it.
void run_two_sweeps(const OpCall& call, const VarianceProblem& p) {
  const auto& [self, mask, root, out, mean_out, n, divisor] = p;
  const DType compute = compute_type(self.dtype());
  const LocalTensor pivot(self.address(), self.dtype(),
                          infer::reduced_sizes(self.sizes(), mask, true), Dims(self.strides()));
  const TensorView pivot_view = pivot.view();
  const TensorView* first = n > 0 ? &pivot_view : nullptr;
  const Middle mean(call, self, mask, compute);
  launch_reduce(call, {&kOffsetMean,
                       compute,
                       Dims(self.sizes()),
                       mask,
                       {&self, first},
                       {mean.view()},
                       {n, 0, 0, 0}});
  launch_reduce(call, {root ? &kDeviation : &kOffsetVariance,
                       compute,
                       Dims(self.sizes()),
                       mask,
                       {&self, first, mean.view()},
                       {&out},
                       {divisor, 0, 0, 0}});
  if (mean_out == nullptr || mean_out->numel() == 0) return;
  if (n == 0) return copy::fill_tensor(call, *mean_out, NAN);
  const LocalTensor offsets = mean.shaped_like(*mean_out);
  const Dims kept = Dims(mean_out->sizes());
  const LocalTensor pivots(self.address(), self.dtype(), kept,
                           kept_strides(self, mask, kept.size() == self.sizes().size()));
  const TensorView views[] = {pivots.view(), offsets.view()};
  const elementwise::ElementwiseInput inputs[] = {{&views[0], 0, false}, {&views[1], 0, false}};
  elementwise::launch_elementwise(call, *mean_out,
                                  {&kMeanFormula, compute, mean_out->dtype(), false, inputs, {}});
}

constinit const VarianceAlgorithm kOneSweep({.id = "variance.one_sweep",
                                             .description = "rows in a work-group's registers",
                                             .style = DeviceStyle::Gpu},
                                            Steps<plan_one_sweep, run_one_sweep>());
constinit const VarianceAlgorithm kTwoSweeps({.id = "variance.two_sweeps",
                                              .description = "the mean, then distances from it",
                                              .last_resort = true},
                                             Steps<takes_all<VarianceProblem>, run_two_sweeps>());

struct VarianceTraits {
  static std::string describe(const OpCall& call, const VarianceProblem& p) {
    return fmt::format("{} {} {} elements, {:.0f} each", call.name(), name(p.self.dtype()),
                       p.self.numel(), p.count);
  }
};
using Algorithms = AlgorithmList<VarianceProblem, VarianceTraits>;

Algorithms& algorithms() {
  static Algorithms& list =  // leaked: threads may run while the process ends
      *new Algorithms("variance", kSpreadOperators, {&kOneSweep, &kTwoSweeps});
  return list;
}

void variance_of(const OpCall& call, TensorView self, DimMask mask, bool root, TensorView out,
                 const TensorView* mean_out) {
  const auto correction = call.args().optional_scalar(Arg::correction);
  const double n = count_of(self, mask);
  const double divisor = std::max(0.0, n - (correction ? correction->as_double() : 1.0));
  algorithms().run(call, {self, mask, root, out, mean_out, n, divisor});
}

constexpr elementwise::Formula kBothParts{"variance", elementwise::FormulaForm::Vector, "a + b"};
constexpr elementwise::Formula kBothDeviations{"deviation", elementwise::FormulaForm::Vector,
                                               "sqrt(a + b)"};

// The squared distance of complex numbers is the sum of those of the real and the imaginary parts.
void complex_variance(const OpCall& call, TensorView self, DimMask mask, bool root, TensorView out,
                      const TensorView* mean_out) {
  const LocalTensor parts = copy::as_real(self);
  Dims sizes(out.sizes());
  sizes.push_back(2);
  const Scratch memory = call.scratch(static_cast<uint64_t>(numel(sizes)) * 8);
  const DType type = compute_type(real_type(self.dtype()));
  const LocalTensor both(memory.address(), type, sizes);
  std::optional<LocalTensor> means;
  if (mean_out != nullptr) means.emplace(copy::as_real(*mean_out));
  const std::optional<TensorView> means_view = means ? std::optional(means->view()) : std::nullopt;
  variance_of(call, parts, mask & first_dims(self.sizes().size()), false, both,
              means_view ? &*means_view : nullptr);
  Dims strides;
  for (const int64_t s : contiguous_strides(out.sizes())) strides.push_back(2 * s);
  const LocalTensor real = copy::view_of(both, Dims(out.sizes()), strides, 0);
  const LocalTensor imaginary = copy::view_of(both, Dims(out.sizes()), strides, 1);
  const TensorView views[] = {real.view(), imaginary.view()};
  const elementwise::ElementwiseInput inputs[] = {{&views[0], 0, false}, {&views[1], 0, false}};
  elementwise::launch_elementwise(
      call, out, {root ? &kBothDeviations : &kBothParts, type, out.dtype(), false, inputs, {}});
}

template <bool root>
void variance(OpCall& call) {
  (void)check_outputs(call, OutputTypes::Castable);
  const TensorView self = call.args().tensor(Arg::self);
  const DimMask mask = infer::dim_mask(call.args().ints(Arg::dim), self.ndim());
  const TensorView out = call.out(0);
  const bool has_mean = call.out_count() > 1;
  const bool complex = is_complex(self.dtype());
  if (is_complex(out.dtype()) || (has_mean && is_complex(call.out(1).dtype()) != complex))
    unsupported(TB_REASON_DTYPE, "{}: {} to a complex output", call.name(), name(self.dtype()));
  call.accept();
  std::optional<TensorView> mean;
  if (has_mean) mean = call.out(1);
  (complex ? complex_variance : variance_of)(call, self, mask, root, out, mean ? &*mean : nullptr);
}

constexpr Reduction kTop{1, {{"a", kMaximum, nullptr, "(fabs(x) == K(INFINITY)) ? K(0) : x"}}};
constexpr Reduction kLogSum{1, {{"exp(a - b)", kAdd, "0", "log(x)"}}};
constexpr elementwise::Formula kSumFormula{"logsumexp", elementwise::FormulaForm::Vector, "a + b"};

void logsumexp(OpCall& call) {
  const DType compute = compute_type(check_outputs(call, OutputTypes::Castable)[0].dtype);
  const TensorView self = call.args().tensor(Arg::self);
  const DimMask mask = infer::dim_mask(call.args().ints(Arg::dim), self.ndim());
  call.accept();
  const TensorView out = call.out(0);
  if (out.numel() == 0) return;
  const Middle top(call, self, mask, compute);
  const Middle rest(call, self, mask, compute);
  launch_reduce(call, {&kTop, compute, Dims(self.sizes()), mask, {&self}, {top.view()}});
  launch_reduce(call,
                {&kLogSum, compute, Dims(self.sizes()), mask, {&self, top.view()}, {rest.view()}});
  const LocalTensor parts[] = {rest.shaped_like(out), top.shaped_like(out)};
  const TensorView views[] = {parts[0].view(), parts[1].view()};
  const elementwise::ElementwiseInput inputs[] = {{&views[0], 0, false}, {&views[1], 0, false}};
  elementwise::launch_elementwise(call, out,
                                  {&kSumFormula, compute, out.dtype(), false, inputs, {}});
}

constexpr Reduction kNonZero{1, {{"(a != K(0)) ? K(1) : K(0)", kAdd, "0", "x"}}};
constexpr Reduction kAbsolute{1, {{"fabs(a)", kAdd, "0", "x"}}};
constexpr Reduction kSquares{1, {{"a * a", kAdd, "0", "sqrt(x)"}}};
constexpr Reduction kLargest{1, {{"fabs(a)", kMaximum, "0", "x"}}};
constexpr Reduction kSmallest{1, {{"fabs(a)", kMinimum, nullptr, "x"}}};
constexpr Reduction kPowers{1, {{"pow_(fabs(a), s0)", kAdd, "0", "pow_(x, s1)"}}};

const Reduction& norm_of_order(double order) {
  if (std::isinf(order)) return order > 0 ? kLargest : kSmallest;
  return order == 0 ? kNonZero : order == 1 ? kAbsolute : order == 2 ? kSquares : kPowers;
}

void vector_norm(OpCall& call) {
  const DType compute = compute_type(check_outputs(call, OutputTypes::Castable)[0].dtype);
  const TensorView self = call.args().tensor(Arg::self);
  const double order = call.args().real(Arg::ord);
  const DimMask mask = infer::dim_mask(call.args().ints(Arg::dim), self.ndim());
  const TensorView out = call.out(0);
  if (is_complex(out.dtype())) unsupported(TB_REASON_DTYPE, "{}: a complex output", call.name());
  call.accept();
  if (is_complex(self.dtype())) {
    const Converted moduli(call, self, compute);
    const TensorView view = moduli.view();
    return launch_reduce(call, {&norm_of_order(order),
                                compute,
                                Dims(self.sizes()),
                                mask,
                                {&view},
                                {&out},
                                {order, 1 / order, 0, 0}});
  }
  launch_reduce(call, {&norm_of_order(order),
                       compute,
                       Dims(self.sizes()),
                       mask,
                       {&self},
                       {&out},
                       {order, 1 / order, 0, 0}});
}

constexpr OpEntry kOperators[] = {{"var.correction_out", variance<false>, true},
                                  {"std.correction_out", variance<true>, true},
                                  {"var_mean.correction_out", variance<false>, true},
                                  {"logsumexp.out", logsumexp},
                                  {"linalg_vector_norm.out", vector_norm, true}};

}  // namespace

const std::span<const OpEntry> kSpreadOperators = kOperators;

const AlgorithmFamily& variance_algorithms() { return algorithms().family(); }

}  // namespace ocltensor::opencl::reduce
