// Cases of the operators over lists of tensors.
#include "base/multi_tensor.h"

#include <cmath>

#include "pointwise_domains.h"
#include "support/cases.h"

namespace ocltensor::testing {
namespace {

constexpr const char* kWhyStep =
    "a dozen roundings, a quotient and a root; parameters move by a part of their size";

bool accepts(const Operator& op, DType dtype) {
  return op.name == "_amp_update_scale_" ? dtype == DType::Float32 : is_floating(dtype);
}

struct Maker {
  const Operator& op;
  DType dtype;
  Draw& draw;
  Case c;
  std::vector<Dims> shapes = {};
  std::vector<Layout> layouts = {};  // of each position, where all lists share one

  void draw_shapes(int64_t most) {
    const int64_t count = draw.rng.range(1, most);
    const bool shared = draw.rng.chance(0.5);
    for (int64_t t = 0; t < count; ++t) {
      shapes.push_back(draw.shape());
      if (shared) layouts.push_back(draw.output_layout(shapes.back()));
    }
  }

  // One tensor per shape. Expanded and reversed layouts only where nothing is written.
  std::vector<TensorPtr> list(DType type, const Domain& domain, bool written = false) {
    std::vector<TensorPtr> tensors;
    for (size_t t = 0; t < shapes.size(); ++t) {
      if (!layouts.empty())
        tensors.push_back(std::make_shared<TensorData>(
            TensorData{draw.values(type, shapes[t], domain), layouts[t]}));
      else if (written)
        tensors.push_back(draw.place(draw.values(type, shapes[t], domain)));
      else
        tensors.push_back(draw.tensor(type, shapes[t], domain));
    }
    return tensors;
  }

  TensorPtr single(double value) {
    HostTensor t(DType::Float32, draw.rng.chance(0.5) ? Dims{} : Dims{1});
    t.set(0, value);
    return draw.contiguous(std::move(t));
  }

  // Multiples of 1/8: exact in every type.
  double eighths(double low, double high) {
    return static_cast<double>(
               draw.rng.range(static_cast<int64_t>(low * 8), static_cast<int64_t>(high * 8))) /
           8;
  }

  size_t at(Arg argument) const {
    return static_cast<size_t>(op.schema.positions[static_cast<size_t>(argument)]);
  }

  void foreach (const Foreach& f) {
    const auto dot = std::string_view(f.pointwise).find('.');
    const PointwiseDomain* row =
        find_pointwise_domain(std::string_view(f.pointwise).substr(0, dot), draw.rng);
    const Domain first = row ? row->first : Domain{-4, 4, 0, true};
    const Domain other = row ? row->other : Domain{-4, 4, 0, true};
    draw_shapes(6);
    for (size_t k = 0; k < f.lists.size(); ++k)
      c.args[at(f.lists[k])] = list(dtype, k == 0 ? first : other, k == 0);
    if (f.has_alpha) c.args[at(Arg::alpha)] = Scalar(eighths(0, 3));
    if (f.number) {
      const Domain d = f.number_is_operand ? other : Domain{0.25, 2};
      const auto draw_number = [&] {
        return eighths(std::max(d.low, -8.0), std::min(d.high, 8.0));
      };
      CaseValue& value = c.args[at(*f.number)];
      const ArgType type = op.schema.inputs[at(*f.number)].type;
      if (type == ArgType::Tensor) {
        HostTensor one(dtype, {});
        one.set(0, draw_number());
        value = draw.contiguous(std::move(one));
      } else if (type == ArgType::Scalar) {
        value = Scalar(draw_number());
      } else {
        std::vector<double> numbers;
        for (size_t t = 0; t < shapes.size(); ++t) numbers.push_back(draw_number());
        value = numbers;
      }
    }
    c.tolerance = {row ? row->tolerance : Tolerance{}};
    // A sum of products: the pointwise operator cannot be asked over lists.
    if (c.tolerance[0].scale == Scale::Absolute)
      c.tolerance = {{Scale::Inputs, 4, 1, static_cast<int>(f.lists.size()) + 1, nullptr,
                      "one rounding per operation, terms may cancel"}};
    if (draw.rng.chance(0.4)) c.alias = 0;
  }

  void copy(bool zero) {
    draw_shapes(6);
    c.args[0] = list(dtype, {}, true);
    static constexpr DType kFloats[] = {DType::Float16, DType::BFloat16, DType::Float32};
    if (!zero) c.args[1] = list(draw.rng.chance(0.5) ? dtype : draw.rng.pick(kFloats), {});
    c.tolerance = {zero ? exact() : Tolerance{Scale::Result, 0, 1, 1, nullptr, "one conversion"}};
    if (draw.rng.chance(0.3)) c.alias = 0;
  }

  void norm() {
    static constexpr double kOrders[] = {1, 2, HUGE_VAL};
    const double order = draw.rng.pick(kOrders);
    draw_shapes(6);
    c.args[0] = list(dtype, {-4, 4, 0, true});
    c.args[1] = Scalar(order);
    double most = 1;
    for (const Dims& sizes : shapes) most = std::max(most, static_cast<double>(numel(sizes)));
    c.tolerance = {order == HUGE_VAL ? exact()
                                     : Tolerance{Scale::Result, 4, most, 1, nullptr, kWhySum}};
  }

  void mutate(std::string_view argument, const Domain& domain) {
    const auto i = static_cast<size_t>(op.schema.input(argument));
    c.args[i] = list(dtype, domain, true);
    c.mutates.push_back(i);
  }

  // ATen wants the list empty where the option is off.
  void drop_unless(std::string_view list, std::string_view option) {
    const int i = op.schema.input(list);
    if (i < 0 || std::get<Scalar>(c.get(option)).as_bool()) return;
    c.args[static_cast<size_t>(i)] = std::vector<TensorPtr>{};
    std::erase(c.mutates, static_cast<size_t>(i));
  }

  void step() {
    auto& rng = draw.rng;
    draw_shapes(5);
    mutate("self", {-4, 4});
    mutate("grads", {-2, 2});
    for (const char* name : {"exp_avgs", "momentum_buffer_list"})
      if (op.schema.input(name) >= 0) mutate(name, {-2, 2});
    for (const char* name : {"exp_avg_sqs", "max_exp_avg_sqs", "state_sums"})
      if (op.schema.input(name) >= 0) mutate(name, {0.25, 4});
    if (op.schema.input("state_steps") >= 0) {
      std::vector<TensorPtr> steps;
      for (size_t t = 0; t < shapes.size(); ++t)
        steps.push_back(single(static_cast<double>(rng.range(1, 30))));
      c.set("state_steps", steps);
    }
    for (size_t i = 0; i < op.schema.inputs.size(); ++i) {
      const Argument& a = op.schema.inputs[i];
      if (a.type == ArgType::Bool) c.args[i] = Scalar(rng.chance(0.4));
      if (a.type == ArgType::Float) c.args[i] = Scalar(rng.chance(0.4) ? 0.0 : 0.125);
      if (a.name == "beta1") c.args[i] = Scalar(0.875);
      if (a.name == "beta2") c.args[i] = Scalar(0.96875);
      if (a.name == "eps") c.args[i] = Scalar(0.0078125);
    }
    drop_unless("max_exp_avg_sqs", "amsgrad");
    drop_unless("momentum_buffer_list", "momentum");
    c.set("lr", rng.chance(0.5) ? CaseValue(single(0.0625)) : CaseValue(Scalar(0.0625)));
    if (rng.chance(0.3)) c.set("grad_scale", single(8));
    if (rng.chance(0.4)) c.set("found_inf", single(rng.chance(0.5) ? 1 : 0));
    c.tolerance = {{Scale::Inputs, 8, 1, 1, nullptr, kWhyStep}};
  }

  void unscale() {
    draw_shapes(5);
    mutate("self", {-4, 4, 0, true});
    c.set("found_inf", single(draw.rng.chance(0.3) ? 1 : 0));
    c.mutates.push_back(1);
    c.set("inv_scale", single(draw.rng.chance(0.3) ? 1 : 0.0625));
    c.tolerance = {{Scale::Result, 1, 1, 1, nullptr, "one product"}};
  }

  void update_scale() {
    const int64_t interval = draw.rng.range(1, 4);
    HostTensor tracker(DType::Int32, {});
    tracker.set_integer(0, draw.rng.range(0, interval - 1));
    c.set("self", single(draw.rng.chance(0.2) ? 3e38 : 1024));
    c.set("growth_tracker", draw.contiguous(std::move(tracker)));
    c.set("found_inf", single(draw.rng.chance(0.4) ? 1 : 0));
    c.set("scale_growth_factor", Scalar(2.0));
    c.set("scale_backoff_factor", Scalar(0.5));
    c.set("growth_interval", Scalar(interval));
    c.mutates = {0, 1};
    c.same_type = true;  // growth beyond the type's range is refused
    c.tolerance = {{Scale::Result, 1, 1, 1, nullptr, "one product"}};
  }

  Case make() {
    const std::string& n = op.schema.name;
    if (const Foreach* f = find_foreach(op))
      foreach (*f)
        ;
    else if (n == "_foreach_copy" || n == "_foreach_zero")
      copy(n == "_foreach_zero");
    else if (n == "_foreach_norm")
      norm();
    else if (n.starts_with("_fused"))
      step();
    else if (n == "_amp_update_scale_")
      update_scale();
    else
      unscale();
    return std::move(c);
  }
};

Case make(const Operator& op, DType dtype, Draw& draw) {
  return Maker{op, dtype, draw, make_case(op, dtype)}.make();
}

}  // namespace

const FamilyCases& multi_tensor_cases() {
  static constexpr FamilyCases kCases = {"multi_tensor", accepts, make};
  return kCases;
}

}  // namespace ocltensor::testing
