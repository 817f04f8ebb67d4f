// Every row of derivatives.def against finite differences, on the CPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "calls.h"

namespace ocltensor {

// How googletest names a parameter; the name is its own.
static void PrintTo(const DifferentiableOperator& op, std::ostream* stream) {  // NOLINT
  *stream << op.name;
}

}  // namespace ocltensor

namespace ocltensor::testing {
namespace {

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

// Central differences lose step^2 times the third derivative, and eps / step of the sum. In float64
// both are under 1e-7 of functions of size 1; formulas by series (digamma, zeta) have 1e-9 of their
// own. In float32 and complex64 both are 1e-4 of sums of size 10: the oracle's comparison is the
// sharp one there. Transforms are linear: steps of 1 lose nothing, and many results share the
// noise.
struct Accuracy {
  double step, tolerance;
};
Accuracy accuracy_of(const Operator& op, DType type) {
  if (std::string_view(op.family) == "fft") return {1, 2e-3};
  return type == DType::Float64 ? Accuracy{1e-5, 2e-6} : Accuracy{1e-2, 2e-3};
}

// A real number of a tensor: an element, or a part of a complex one.
class Place {
 public:
  Place(const Tensor& t, int64_t i) : wide_(t.dtype() == DType::Float64), at_(nullptr) {
    at_ = static_cast<std::byte*>(t.data()) + i * (wide_ ? 8 : 4);
  }
  static int64_t count(const Tensor& t) { return t.numel() * (is_complex(t.dtype()) ? 2 : 1); }
  double get() const {
    return wide_ ? *reinterpret_cast<double*>(at_) : *reinterpret_cast<float*>(at_);
  }
  void set(double v) const {
    if (wide_)
      *reinterpret_cast<double*>(at_) = v;
    else
      *reinterpret_cast<float*>(at_) = static_cast<float>(v);
  }

 private:
  bool wide_;
  std::byte* at_;
};

double slope(const Call& f, const Place& x, double step) {
  const double before = x.get();
  x.set(before + step);
  const double right = x.get(), high = f.sum();
  x.set(before - step);
  const double left = x.get(), low = f.sum();
  x.set(before);
  return (high - low) / (right - left);
}

void compare(const Operator& op, const Call& f, DType type, Rng& rng, Tally& tally) {
  const auto [step, tolerance] = accuracy_of(op, type);
  const std::vector<Tensor> gradients = f.gradients();
  if (!std::isfinite(f.sum())) return;
  for (size_t i = 0; i < gradients.size(); ++i) {
    const Leaf& leaf = f.leaves()[i];
    const int64_t count = Place::count(leaf.tensor);
    if (count == 0) continue;
    const Tensor mine = gradients[i].contiguous();
    ASSERT_EQ(mine.sizes(), leaf.tensor.sizes()) << op.name;
    ASSERT_EQ(mine.dtype(), leaf.tensor.dtype()) << op.name;
    for (int n = 0; n < 8; ++n) {
      const auto at = static_cast<int64_t>(rng.next() % static_cast<uint64_t>(count));
      const Place x(leaf.tensor, at);
      const double wide = slope(f, x, step), narrow = slope(f, x, step / 2);
      const double scale = 1 + std::abs(narrow);
      if (!std::isfinite(narrow) || std::abs(wide - narrow) > tolerance * scale) {
        ++tally.rough;
        continue;
      }
      ++tally.compared[leaf.name];
      ASSERT_NEAR(Place(mine, at).get(), narrow, tolerance * scale)
          << op.name << ", argument '" << leaf.name << "', element " << at;
    }
  }
}

// torchvision's ps_roi_pool leaves out the last row and column on the way there, but not on the way
// back: no derivative. plugin/torch/tests/test_vision.py compares it with torchvision's.
std::vector<DifferentiableOperator> derivatives() {
  std::vector<DifferentiableOperator> found = checked_operators();
  std::erase_if(found, [](const auto& d) { return d.name == "torchvision::ps_roi_pool.out"; });
  return found;
}

class Gradcheck : public ::testing::TestWithParam<DifferentiableOperator> {};

TEST_P(Gradcheck, AgreesWithFiniteDifferences) {
  const DifferentiableOperator& row = GetParam();
  const Operator& op = *find_operator(row.name);
  const std::vector<DType> types = checked_types(row);
  ASSERT_FALSE(types.empty()) << "no type of " << row.name << " is checked";
  for (const DType type : types) {
    Tally tally;
    Rng rng(7);
    for (uint64_t seed = 0; seed < 100 && tally.least(row.arguments) < 400; ++seed) {
      std::optional<Case> c = gradient_case(op, type, seed);
      if (!c) continue;
      // The gradient of a row of padding is zero by definition.
      if (op.schema.name == "embedding") c->set("padding_idx", Scalar(int64_t{-1}));
      const Call f(*c, row.arguments);
      if (f.leaves().empty()) continue;
      compare(op, f, type, rng, tally);
      if (HasFatalFailure()) FAIL() << describe(*c);
    }
    int all = 0;
    for (const std::string& argument : row.arguments) {
      EXPECT_GE(tally.compared[argument], 10)
          << argument << "; " << tally.rough << " were not smooth";
      all += tally.compared[argument];
    }
    EXPECT_LE(tally.rough, all) << "most places were not smooth";
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Gradcheck, ::testing::ValuesIn(derivatives()), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
});

}  // namespace
}  // namespace ocltensor::testing
