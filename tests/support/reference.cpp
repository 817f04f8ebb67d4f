// Running the reference, and the tolerance rules.
#include "reference.h"

#include <fmt/format.h>

#include <cmath>

#include "execute.h"

namespace ocltensor::testing {
namespace {

TensorPtr contiguous(const HostTensor& value) {
  return std::make_shared<TensorData>(
      TensorData{value, {contiguous_strides(value.sizes), 0, value.numel()}});
}

template <typename Convert>
void convert_tensors(Case& c, Convert convert) {
  for (CaseValue& arg : c.args) {
    if (auto* one = std::get_if<TensorPtr>(&arg); one && *one) {
      *one = contiguous(convert((*one)->value));
    } else if (auto* list = std::get_if<std::vector<TensorPtr>>(&arg)) {
      for (TensorPtr& t : *list)
        if (t) t = contiguous(convert(t->value));
    }
  }
}

// The same call on contiguous copies, floating types widened unless the case says otherwise.
Case widened(const Case& c) {
  Case wide = c;
  wide.alias = -1;
  // Beside complex numbers nothing widens: the CPU backend computes in complex128 whatever the
  // operands.
  const bool widen = !c.same_type && !is_complex(c.dtype);
  convert_tensors(wide, [&](const HostTensor& t) {
    return widen && is_floating(t.dtype) ? t.to(DType::Float64) : t;
  });
  if (!widen) return wide;
  for (size_t i = 0; i < wide.args.size(); ++i) {
    if (auto* type = std::get_if<DType>(&wide.args[i]); type && is_floating(*type))
      *type = DType::Float64;
    if (c.op->schema.inputs[i].name == "half_to_float") wide.args[i] = Scalar(false);
  }
  if (c.out_dtype && is_floating(*c.out_dtype)) wide.out_dtype = DType::Float64;
  return wide;
}

// The same call with absolute values, by the operator that sums up what the case's one combines.
std::vector<HostTensor> magnitudes(const Case& wide, const Tolerance& t) {
  Case c = wide;
  if (t.scale_op) c.op = find_operator(t.scale_op);
  const bool beside_complex = is_complex(wide.dtype);  // real operands there are no indices
  convert_tensors(c, [&](const HostTensor& x) {
    return is_floating(x.dtype) || beside_complex ? x.absolute() : x;
  });
  for (CaseValue& arg : c.args)
    if (auto* s = std::get_if<Scalar>(&arg); s && s->is_float())
      *s = Scalar(std::abs(s->as_complex()));
  return run_reference(c);
}

double largest_finite_of(const HostTensor& t) {
  double largest = 0;
  for (int64_t i = 0, n = t.numel(); i < n; ++i)
    if (const double v = t.magnitude(i); std::isfinite(v)) largest = std::max(largest, v);
  return largest;
}

double largest_input(const Case& wide) {
  double largest = 0;
  CaseView view(wide);
  for (const auto& slot : view.slots())
    if (is_floating(slot.data->value.dtype) || is_complex(slot.data->value.dtype))
      largest = std::max(largest, largest_finite_of(slot.data->value));
  return largest;
}

// What the types of an output say about its accuracy.
struct Precision {
  DType rounding;  // the coarser of the inferred and the actual type
  DType compute;
};

struct Bounds {
  const Case& wide;
  std::vector<HostTensor> absolute = {};  // made on first use

  double scale(const Tolerance& t, const HostTensor& expected, double common, size_t output,
               int64_t i) {
    switch (t.scale) {
      case Scale::Result: return expected.magnitude(i);
      case Scale::Unit: return 1 + expected.magnitude(i);
      case Scale::Absolute: {
        const HostTensor& a = absolute.at(std::min(output, absolute.size() - 1));
        return a.magnitude(i);
      }
      default: return common;
    }
  }

  std::vector<double> of(const Tolerance& t, const HostTensor& expected, Precision p,
                         size_t output) {
    std::vector<double> bounds(static_cast<size_t>(expected.numel()), 0);
    const double tiny = smallest_normal(p.rounding);
    double common = 0;
    if (t.scale == Scale::Largest) common = largest_finite_of(expected);
    if (t.scale == Scale::FromOne) common = 1 + largest_finite_of(expected);
    if (t.scale == Scale::Inputs) common = std::pow(1 + largest_input(wide), t.degree);
    if (t.scale == Scale::Absolute && absolute.empty()) absolute = magnitudes(wide, t);
    for (int64_t i = 0, n = expected.numel(); i < n; ++i) {
      const double e = expected.magnitude(i);
      double& bound = bounds[static_cast<size_t>(i)];
      if (t.scale == Scale::Exact)
        bound = e < tiny ? tiny : 0;
      else
        bound =
            epsilon(p.rounding) * e + tiny +
            t.k * std::sqrt(t.terms) * epsilon(p.compute) * scale(t, expected, common, output, i);
      if (std::isnan(bound)) bound = 0;
    }
    return bounds;
  }
};

}  // namespace

std::vector<HostTensor> run_reference(const Case& c) {
  const Backend& cpu = reference_backend();
  if (cpu.find(c.op->name) == nullptr)
    throw NoReference("the CPU backend does not have " + c.op->name);
  Outcome outcome = execute(cpu, c, infer(c), nullptr);
  if (outcome.status != TB_OK)
    throw NoReference(
        fmt::format("the CPU backend answers {}: {}", outcome.status, outcome.message));
  if (!outcome.violations.empty())
    throw NoReference("the CPU backend: " + outcome.violations.front());
  return std::move(outcome.outs);
}

std::vector<Expected> expect(const Case& c, bool rounds_summands) {
  const Case wide = widened(c);
  std::vector<HostTensor> values = run_reference(wide);
  std::vector<TensorSpec> natural = c.op->infer(CaseView(c).args());
  std::vector<TensorSpec> specs = infer(c);
  if (c.unique) {
    values = c.unique(values);
    specs.assign(values.size(), specs.front());
    natural = specs;
  }
  CaseView view(c);
  for (const size_t argument : c.mutates)
    for (const auto& slot : view.slots()) {
      if (slot.argument != argument) continue;
      TensorSpec spec{slot.data->value.dtype, slot.data->value.sizes, {}};
      natural.push_back(spec);
      specs.push_back(spec);
    }
  Bounds bounds{wide};
  std::vector<HostTensor> summands;
  if (rounds_summands && c.summands) summands = c.summands(wide);
  std::vector<Expected> result;
  for (size_t i = 0; i < values.size(); ++i) {
    const Tolerance& t = c.tolerance_of(i);
    Expected e{std::move(values[i]), {}, t.scale};
    DType rounding = specs[i].dtype;
    if (is_floating(natural[i].dtype) && epsilon(natural[i].dtype) > epsilon(rounding) &&
        is_floating(rounding))
      rounding = natural[i].dtype;
    if ((is_floating(rounding) || is_complex(rounding)) && t.scale != Scale::Bits)
      e.bound = bounds.of(t, e.value, {rounding, compute_type(rounding)}, i);
    if (!summands.empty() && rounding != compute_type(rounding))
      for (size_t at = 0; at < e.bound.size(); ++at)
        e.bound[at] += epsilon(rounding) / 2 * summands[i].real(static_cast<int64_t>(at));
    result.push_back(std::move(e));
  }
  return result;
}

}  // namespace ocltensor::testing
