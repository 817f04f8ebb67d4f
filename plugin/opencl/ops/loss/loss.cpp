// Elementwise losses, reduced or not: rows of a table of formulas. Reductions: 0 none, 1 mean, 2
// sum.
#include "loss.h"

#include <algorithm>

#include "base/promotion.h"
#include "call/division.h"
#include "kernels/loss.h"
#include "ops/copy/copy.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduction.h"

namespace ocltensor::opencl::loss {
namespace {

// Forward: a is the input, b the target, c the weight (if the call has one), s1 the loss's
// parameter; the same text serves elementwise kernels and reductions. Backward: a is the gradient,
// b the input, c the target, d the weight, s0 a factor, s1 the parameter.
struct Row {
  const char* name;
  const char* text;
  const char* weighted;  // null: the loss has no weight
  std::optional<Arg> parameter;
  bool backward;
  double factor = 1;
};

#define DISTANCE "fabs(a - b)"
#define CROSS                                                                                \
  "((b - K(1)) * ((log1p(-a) < K(-100)) ? K(-100) : log1p(-a)) - b * ((log(a) < K(-100)) ? " \
  "K(-100) : log(a)))"
#define CROSS_SLOPE "s0 * a * (b - c) / (((K(1) - b) * b < K(1e-12f)) ? K(1e-12f) : (K(1) - b) * b)"

constexpr Row kRows[] = {
    {"mse_loss.out", "(a - b) * (a - b)", nullptr, {}, false},
    {"smooth_l1_loss.out",
     "(" DISTANCE " < s1) ? K(0.5f) * (a - b) * (a - b) / s1 : " DISTANCE " - K(0.5f) * s1",
     nullptr, Arg::beta, false},
    {"huber_loss.out",
     "(" DISTANCE " <= s1) ? K(0.5f) * (a - b) * (a - b) : s1 * (" DISTANCE " - K(0.5f) * s1)",
     nullptr, Arg::delta, false},
    {"binary_cross_entropy.out", CROSS, CROSS " * c", {}, false},
    {"mse_loss_backward.grad_input", "s0 * (b - c) * a", nullptr, {}, true, 2},
    {"smooth_l1_loss_backward.grad_input",
     "s0 * a * ((b - c <= -s1) ? K(-1) : ((b - c >= s1) ? K(1) : (b - c) / s1))", nullptr,
     Arg::beta, true},
    {"huber_loss_backward.out", "s0 * a * ((b - c < -s1) ? -s1 : ((b - c > s1) ? s1 : b - c))",
     nullptr, Arg::delta, true},
    {"binary_cross_entropy_backward.grad_input", CROSS_SLOPE, CROSS_SLOPE " * d", {}, true},
};

struct FormulaLoss {
  const Row& row;
  const char* text;
  DType compute;
  Dims shape;
  std::span<const TensorView> operands;
  int64_t mode;
  double count;  // of elements, for means
  double parameter;
};

const char* refuse_reduction(const OpCall&, const FormulaLoss& what) {
  if (what.row.backward) return "it is a gradient";
  return what.mode == 0 ? "losses are not reduced" : nullptr;
}
void run_reduction(const OpCall& call, const FormulaLoss& what) {
  const TensorView out = call.out(0);
  const reduce::Reduction reduction{
      1, {{what.text, reduce::kAdd, "0", what.mode == 1 ? "x / s0" : "x"}}};
  reduce::ReduceLaunch launch{&reduction,
                              what.compute,
                              what.shape,
                              first_dims(what.shape.size()),
                              {},
                              {&out},
                              {what.count, what.parameter, 0, 0}};
  for (size_t i = 0; i < what.operands.size(); ++i) launch.inputs[i] = &what.operands[i];
  reduce::launch_reduce(call, launch);
}

const char* refuse_elementwise(const OpCall&, const FormulaLoss& what) {
  return what.row.backward || what.mode == 0 ? nullptr : "losses are reduced";
}
void run_elementwise(const OpCall& call, const FormulaLoss& what) {
  const elementwise::Formula formula{what.row.name, elementwise::FormulaForm::Vector, what.text};
  std::vector<elementwise::ElementwiseInput> inputs;
  inputs.reserve(what.operands.size());
  for (const TensorView& view : what.operands) inputs.push_back({&view, 0, false});
  const bool mean = what.row.backward && what.mode == 1;
  const Scalar parameters[] = {what.row.factor / (mean ? what.count : 1.0), what.parameter};
  const TensorView out = call.out(0);
  elementwise::launch_elementwise(call, out,
                                  {&formula, what.compute, out.dtype(), false, inputs, parameters});
}

constinit const AlgorithmFor<FormulaLoss> kReduction({.id = "loss.reduction",
                                                      .description = "the formula within its sum",
                                                      .last_resort = true},
                                                     Steps<refuse_reduction, run_reduction>());
constinit const AlgorithmFor<FormulaLoss> kElementwise(
    {.id = "loss.elementwise", .description = "the formula of each element", .last_resort = true},
    Steps<refuse_elementwise, run_elementwise>());

struct Traits {
  static std::string describe(const OpCall& call, const FormulaLoss& what) {
    return fmt::format("{} {} {}", call.name(), name(what.compute), to_string(what.shape));
  }
};
using Algorithms = AlgorithmList<FormulaLoss, Traits>;

Algorithms& algorithms() {
  static Algorithms& list =
      *new Algorithms("loss", loss_operators(), {&kReduction, &kElementwise});  // leaked
  return list;
}

// Cross entropies of what is no probability are errors, as on the CPU: one launch more, which reads
// both tensors.
void report_beyond_unit(const OpCall& call, TensorView input, TensorView target) {
  if (!call.policy().check_values || input.numel() == 0 || input.numel() != target.numel()) return;
  const Contiguous inputs(call, input), targets(call, target);
  const Division division = divide(call.caps(), input.numel(), 1024);
  Defines d;
  d.type(define::A, input.dtype()).type(define::TARGET, target.dtype());
  call.launch(kernels::loss::loss_range::judge, d,
              {.input = inputs.view(),
               .target = targets.view(),
               .faults = call.fault(FaultKind::Input),
               .target_site = call.fault(FaultKind::Target).number,
               .count = input.numel(),
               .per_item = division.per_item})
      .run(division.global, division.local);
}

void run_row(OpCall& call, const Row& row) {
  const auto specs = check_outputs(call, OutputTypes::Castable);
  const Args& args = call.args();
  std::vector<TensorView> views;
  if (row.backward) views.push_back(args.tensor(Arg::grad_output));
  for (const Arg operand : {Arg::self, Arg::target}) views.push_back(args.tensor(operand));
  const auto weight = row.weighted != nullptr ? args.optional_tensor(Arg::weight) : std::nullopt;
  if (weight) views.push_back(*weight);
  const auto first = row.backward ? 1 : 0;
  Dims shape = broadcast(views[first].sizes(), views[first + 1].sizes());
  if (weight) shape = broadcast(shape, weight->sizes());
  if (row.backward)
    check(broadcast(shape, views[0].sizes()) == shape, "{}: grad_output has shape {}, expected {}",
          call.name(), to_string(views[0].sizes()), to_string(shape));
  const DType compute = compute_type(specs[0].dtype);
  const int64_t mode = args.integer(Arg::reduction);
  const double parameter = row.parameter ? args.real(*row.parameter) : 0;
  check(row.backward || mode != 0 || Dims(call.out(0).sizes()) == shape,
        "{}: the output has shape {}, expected {}", call.name(), to_string(call.out(0).sizes()),
        to_string(shape));
  call.accept();
  // ATen's backward divides by the number of the input's own elements, even where the input is
  // broadcast.
  const auto count = static_cast<double>(row.backward ? views[1].numel() : numel(shape));
  if (!row.backward && row.weighted != nullptr) report_beyond_unit(call, views[0], views[1]);
  algorithms().run(
      call, {row, weight ? row.weighted : row.text, compute, shape, views, mode, count, parameter});
}

// Each row is an operator.
template <size_t row>
void loss(OpCall& call) {
  run_row(call, kRows[row]);
}
template <size_t... rows>
std::vector<OpEntry> entries_of(std::index_sequence<rows...>) {
  return {{kRows[rows].name, loss<rows>}...};
}

}  // namespace

const AlgorithmFamily& loss_algorithms() { return algorithms().family(); }

std::span<const OpEntry> loss_operators() {
  static const auto& entries = *new auto([] {
    std::vector<OpEntry> list = entries_of(std::make_index_sequence<std::size(kRows)>());
    list.insert(list.end(), kCtcOperators.begin(), kCtcOperators.end());
    list.insert(list.end(), kNllOperators.begin(), kNllOperators.end());
    list.insert(list.end(), kMultilabelOperators.begin(), kMultilabelOperators.end());
    return list;
  }());
  return entries;
}

}  // namespace ocltensor::opencl::loss
