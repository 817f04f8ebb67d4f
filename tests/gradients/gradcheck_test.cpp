// Every row of derivatives.def against finite differences, in float64 on the CPU, on the
// conformance kit's random calls.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "ocltensor/ocltensor.h"
#include "support/cases.h"

namespace ocltensor {

// How googletest names a parameter.
static void PrintTo(const DifferentiableOperator& op, std::ostream* stream) { *stream << op.name; }

}  // namespace ocltensor

namespace ocltensor::testing {
namespace {

// Where an operator is defined and smooth; the others are checked in [-2, 2].
struct Range {
  double low = -2, high = 2;
};
const std::map<std::string, Range>& ranges() {
  static const auto& table = *new std::map<std::string, Range>{
      {"acosh", {1.2, 3}},
      {"acos", {-0.9, 0.9}},
      {"asin", {-0.9, 0.9}},
      {"atanh", {-0.9, 0.9}},
      {"erfinv", {-0.9, 0.9}},
      {"tan", {-1.2, 1.2}},
      {"log", {0.2, 3}},
      {"log10", {0.2, 3}},
      {"log1p", {-0.7, 3}},
      {"log2", {0.2, 3}},
      {"sqrt", {0.2, 3}},
      {"rsqrt", {0.2, 3}},
      {"digamma", {0.3, 4}},
      {"lgamma", {0.3, 4}},
      {"polygamma", {0.5, 4}},
      {"logit", {0.1, 0.9}},
      {"special_ndtri", {0.1, 0.9}},
      {"special_entr", {0.2, 3}},
      {"special_bessel_y0", {0.5, 4}},
      {"special_modified_bessel_k0", {0.5, 4}},
      {"special_zeta", {1.5, 4}},
      {"pow", {0.3, 2}},
      {"xlogy", {0.3, 3}},
      {"special_xlog1py", {0.3, 3}},
      {"igamma", {0.5, 4}},
      {"igammac", {0.5, 4}},
      {"binary_cross_entropy", {0.1, 0.9}},
      {"native_batch_norm", {0.3, 2}},
      {"nll_loss_forward", {0.3, 2}},
      {"nll_loss2d_forward", {0.3, 2}},
      {"grid_sampler_2d", {-0.9, 0.9}},
      {"grid_sampler_3d", {-0.9, 0.9}},
      {"addcdiv", {0.5, 2}},
      {"div", {0.5, 2}},
      {"reciprocal", {0.5, 2}},
  };
  return table;
}

// A call with tensors of one's own: floating arguments have random values in the range.
class Call {
 public:
  Call(const Operator& op, const Case& c, Rng& rng, Range range) : op_(op) {
    for (size_t i = 0; i < c.args.size(); ++i)
      values_.push_back(std::visit([&](const auto& v) { return value(v, rng, range); }, c.args[i]));
    settle();
  }

  // The floating arguments with these names, those in lists as well.
  std::vector<std::pair<std::string, Tensor>> leaves(const std::vector<std::string>& names) const {
    std::vector<std::pair<std::string, Tensor>> found;
    const auto add = [&](const std::string& name, const Tensor& t) {
      if (t.defined() && t.dtype() == DType::Float64) found.emplace_back(name, t);
    };
    for (const std::string& name : names) {
      const Value& v = values_[static_cast<size_t>(op_.schema.input(name))];
      if (const auto* t = std::get_if<Tensor>(&v)) add(name, *t);
      if (const auto* list = std::get_if<std::vector<Tensor>>(&v))
        for (const Tensor& t : *list) add(name, t);
    }
    return found;
  }
  // The weighted sum of the results that have gradients: of all for var_mean, else of the first.
  Tensor operator()() const {
    const std::vector<Tensor> results = call(op_.name, values_);
    Tensor sum;
    for (const Tensor& r : results) {
      if (!weights_.contains(r.numel()))
        weights_[r.numel()] = randn({r.numel()}, DType::Float64, Generator(Device(), 11));
      const Tensor part = (r.reshape({-1}) * weights_.at(r.numel())).sum();
      sum = sum.defined() ? sum + part : part;
      if (!op_.name.starts_with("var_mean")) break;
    }
    return sum;
  }

 private:
  static Tensor tensor_of(const TensorPtr& t, Rng& rng, Range range) {
    if (t == nullptr) return {};
    const HostTensor& v = t->value;
    Tensor made = from_host(v.bytes.data(), v.sizes, v.dtype);
    if (v.dtype != DType::Float64) return made;
    double* at = made.data<double>();
    for (int64_t i = 0; i < made.numel(); ++i) at[i] = rng.uniform(range.low, range.high);
    return made;
  }
  static Value value(std::monostate, Rng&, Range) { return {}; }
  static Value value(const Scalar& s, Rng&, Range) {
    if (s.kind() == Scalar::Kind::Bool) return s.as_bool();
    return s.is_float() ? Value(s.as_double()) : Value(s.as_int());
  }
  static Value value(const std::string& s, Rng&, Range) { return s; }
  static Value value(DType type, Rng&, Range) { return type; }
  static Value value(const std::vector<int64_t>& v, Rng&, Range) { return v; }
  static Value value(const std::vector<double>& v, Rng&, Range) { return v; }
  static Value value(const std::vector<bool>& v, Rng&, Range) {
    return std::vector<int64_t>(v.begin(), v.end());
  }
  static Value value(const TensorPtr& t, Rng& rng, Range range) { return tensor_of(t, rng, range); }
  static Value value(const std::vector<TensorPtr>& list, Rng& rng, Range range) {
    std::vector<Tensor> tensors;
    for (const TensorPtr& t : list) tensors.push_back(tensor_of(t, rng, range));
    return tensors;
  }
  static Value value(GeneratorArgument, Rng&, Range) { return {}; }

  // Running statistics would change from call to call.
  void settle() {
    if (op_.name != "native_batch_norm.out") return;
    if (std::get<bool>(values_[static_cast<size_t>(op_.schema.input("training"))]))
      for (const char* name : {"running_mean", "running_var"})
        values_[static_cast<size_t>(op_.schema.input(name))] = Value();
  }

  const Operator& op_;
  std::vector<Value> values_;
  mutable std::map<int64_t, Tensor> weights_;
};

// What was compared of one operator.
struct Tally {
  std::map<std::string, int> compared;  // by argument
  int rough = 0;  // places where finite differences of two steps disagree: kinks

  int least(const std::vector<std::string>& arguments) const {
    int count = 1 << 20;
    for (const std::string& name : arguments)
      count = std::min(count, compared.contains(name) ? compared.at(name) : 0);
    return count;
  }
};

constexpr double kStep = 1e-5;
// Central differences lose kStep^2 times the third derivative, and eps / kStep of the sum: both are
// under 1e-7 of functions of size 1; formulas by series (digamma, zeta) have 1e-9 of their own.
constexpr double kTolerance = 2e-6;

double slope(const Call& f, double& x, double step) {
  const NoGrad off;
  const double before = x;
  x = before + step;
  const auto high = f().item<double>();
  x = before - step;
  const auto low = f().item<double>();
  x = before;
  return (high - low) / (2 * step);
}

void compare(const Operator& op, const Call& f,
             const std::vector<std::pair<std::string, Tensor>>& leaves, Rng& rng, Tally& tally) {
  std::vector<Tensor> inputs;
  for (const auto& [name, leaf] : leaves) inputs.push_back(leaf.requires_grad_());
  const Tensor sum = f();
  if (!std::isfinite(sum.item<double>())) return;
  const std::vector<Tensor> gradients = grad({sum}, inputs);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const int64_t count = inputs[i].numel();
    if (count == 0) continue;
    const Tensor mine = gradients[i].defined() ? gradients[i].contiguous() : zeros_like(inputs[i]);
    ASSERT_EQ(mine.numel(), count) << op.name;
    for (int n = 0; n < 8; ++n) {
      const auto at = static_cast<int64_t>(rng.next() % static_cast<uint64_t>(count));
      double& x = inputs[i].data<double>()[at];
      const double wide = slope(f, x, kStep), narrow = slope(f, x, kStep / 2);
      const double scale = 1 + std::abs(narrow);
      if (!std::isfinite(narrow) || std::abs(wide - narrow) > kTolerance * scale) {
        ++tally.rough;
        continue;
      }
      ++tally.compared[leaves[i].first];
      ASSERT_NEAR(mine.data<double>()[at], narrow, kTolerance * scale)
          << op.name << ", argument '" << leaves[i].first << "', element " << at;
    }
  }
}

// All but those that draw anew in each call: dropout is in tests/host/autograd_test.cpp.
std::vector<DifferentiableOperator> checked_operators() {
  std::vector<DifferentiableOperator> found = differentiable_operators();
  std::erase_if(found, [](const auto& d) { return find_operator(d.name)->is(kRandom); });
  return found;
}

class Gradcheck : public ::testing::TestWithParam<DifferentiableOperator> {};

TEST_P(Gradcheck, AgreesWithFiniteDifferences) {
  const Operator* op = find_operator(GetParam().name);
  ASSERT_NE(op, nullptr);
  const FamilyCases* cases = find_cases(op->family);
  ASSERT_NE(cases, nullptr) << op->family;
  const auto named = ranges().find(op->schema.name);
  Range range;
  if (named != ranges().end()) range = named->second;
  Tally tally;
  Rng rng(7);
  for (uint64_t seed = 0; seed < 100 && tally.least(GetParam().arguments) < 40; ++seed) {
    Draw draw(seed + 1, LayoutMode::Contiguous, SizeMode::Small, false);
    Case c;
    try {
      c = cases->make(*op, DType::Float64, draw);
    } catch (const Error&) {
      continue;
    }
    if (c.out_dtype || c.alias >= 0) continue;
    const Call f(*op, c, rng, range);
    const auto leaves = f.leaves(GetParam().arguments);
    if (leaves.empty()) continue;
    compare(*op, f, leaves, rng, tally);
    if (HasFatalFailure()) FAIL() << describe(c);
  }
  int all = 0;
  for (const std::string& argument : GetParam().arguments) {
    EXPECT_GE(tally.compared[argument], 10)
        << argument << "; " << tally.rough << " were not smooth";
    all += tally.compared[argument];
  }
  EXPECT_LE(tally.rough, all) << "most places were not smooth";
}

INSTANTIATE_TEST_SUITE_P(Rows, Gradcheck, ::testing::ValuesIn(checked_operators()),
                         [](const auto& info) {
                           std::string name = info.param.name;
                           for (char& c : name)
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace ocltensor::testing
