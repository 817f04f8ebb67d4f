// Products of all types with all ends by each of the algorithms that takes them: factors of
// different types, float results, self, scales and formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>

#include "base/config.h"
#include "call/proof_numbers.h"
#include "ops/matmul/matmul.h"
#include "ops/pointwise/pointwise.h"
#include "plugin/each_algorithm.h"
#include "plugin/nvidia_mma/emulated_units.h"

namespace ocltensor::opencl::matmul {
namespace {

using testing::IsSupersetOf;

// A matrix on the device and, as it holds it, on the host.
struct Numbers {
  Matrix at;
  std::vector<float> host;
  double operator()(int64_t z, int64_t i, int64_t j) const {
    return host[static_cast<size_t>(z * at.batch + i * at.row + j * at.col)];
  }
};

// One random problem, and what it should give. Numbers are whole or halves, so that float sums are
// exact; what is rounded is the result.
class RandomProduct {
  static constexpr float kRoom = 7;

 public:
  RandomProduct(const OpCall& call, std::mt19937& random, const Types& types)
      : random_(random), memory_(call), problem_{types, 1, 1, 1, 1, {}, {}, {}} {
    Problem& p = problem_;
    constexpr int64_t kSizes[] = {1, 3, 4, 8, 16, 33, 64, 72};
    p.batch = pick({1, 1, 3});
    p.m = kSizes[below(8)], p.n = kSizes[below(8)], p.k = pick({1, 8, 40, 64, 600});
    a_ = matrix(types.a, p.m, p.k, 2), b_ = matrix(types.b, p.k, p.n, 2);
    p.a = a_.at, p.b = b_.at;
    const int64_t line = p.n + 3;
    const std::vector<float> room(static_cast<size_t>(p.batch * p.m * line), kRoom);
    p.c = {memory_.upload(room, types.result), p.m * line, line, 1};
    if (types.a == types.b && types.a == DType::Int8) return;
    p.end.alpha = below(2) == 0 ? 1 : 0.5;
    if (below(2) == 0) {
      self_ = matrix(types.self, p.m, p.n, 4);
      const auto repeats = below(3);
      if (repeats == 1) self_.at.row = 0;
      if (repeats == 2) self_.at.col = 0;
      p.end.self = self_.at;
      p.end.beta = -2;
    }
    if (below(2) == 0 && is_floating(types.a)) {
      const DType type = below(2) == 0 ? DType::Float32 : types.of_sums();
      scales_ = matrix(type, p.m, p.n, 3);
      scales_.at.batch = 0;
      (below(2) == 0 ? scales_.at.row : scales_.at.col) = 0;
      p.end.scales = {type, scales_.at};
    }
    if (below(2) == 0 && is_floating(types.of_sums()))
      p.end.formula = &pointwise::formula_of(below(2) == 0 ? "relu.out" : "gelu.out");
  }

  // Runs it and compares. The result's rows have room behind them that must not change.
  void check(const std::function<void()>& run) {
    const Problem& p = problem_;
    run();
    const int64_t line = p.c.row;
    const auto got = memory_.download(p.c.address, p.types.result, p.batch * p.m * line);
    for (int64_t z = 0; z < p.batch; ++z)
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < line; ++j) {
          const double seen = got[static_cast<size_t>((z * p.m + i) * line + j)];
          const double want = j < p.n ? expected(z, i, j) : kRoom;
          ASSERT_NEAR(seen, want, unit() * std::abs(want) + 1e-6)
              << text() << " at " << z << ", " << i << ", " << j;
        }
  }
  const Problem& problem() const { return problem_; }

 private:
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t pick(std::initializer_list<int64_t> list) {
    return list.begin()[below(static_cast<int64_t>(list.size()))];
  }
  Numbers matrix(DType type, int64_t rows, int64_t columns, int most) {
    const bool by_rows = below(2) == 0, wide = below(2) == 0;
    const int64_t line = (by_rows ? columns : rows) + (wide ? pick({1, 8}) : 0);
    const int64_t batch = line * (by_rows ? rows : columns);
    Numbers n;
    n.host = memory_.draw(batch * problem_.batch, most);
    if (is_floating(type))
      for (float& x : n.host) x /= 2;
    n.at = {memory_.upload(n.host, type), problem_.batch == 1 ? 0 : batch, by_rows ? line : 1,
            by_rows ? 1 : line};
    return n;
  }
  double expected(int64_t z, int64_t i, int64_t j) const {
    const Problem& p = problem_;
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k) sum += a_(z, i, k) * b_(z, k, j);
    double v = p.end.alpha.as_double() * sum;
    if (p.end.scales) v *= scales_(z, i, j);
    if (p.end.self) v += p.end.beta.as_double() * self_(z, i, j);
    if (p.end.formula == nullptr) return v;
    if (std::string_view(p.end.formula->name) == "relu.out") return v < 0 ? 0 : v;
    return v * 0.5 * std::erfc(-v * M_SQRT1_2);
  }
  // The rounding of a result; a second one where a launch of its own ends it. GELU in float32 has
  // few units in the last place; of integers all is exact.
  double unit() const {
    switch (problem_.types.result) {
      case DType::BFloat16: return 0x1p-7;
      case DType::Float16: return 0x1p-10;
      case DType::Float32: return problem_.end.formula == nullptr ? 0x1p-22 : 1e-5;
      default: return 0;
    }
  }
  std::string text() const {
    const Problem& p = problem_;
    return fmt::format("{} x {} -> {} (self {}), {} x {} x {} x {}, alpha {}, {}{}{}",
                       name(p.types.a), name(p.types.b), name(p.types.result), name(p.types.self),
                       p.batch, p.m, p.n, p.k, p.end.alpha.as_double(), p.end.self ? "self " : "",
                       p.end.scales ? "scales " : "",
                       p.end.formula != nullptr ? p.end.formula->name : "");
  }

  std::mt19937& random_;
  ProofNumbers memory_;
  Problem problem_;
  Numbers a_, b_, self_, scales_;
};

constexpr DType kHalf = DType::Float16, kBFloat = DType::BFloat16, kFloat = DType::Float32,
                kByte = DType::Int8;
const Types kTypes[] = {
    kFloat,
    kHalf,
    kBFloat,
    {kHalf, kHalf, kFloat, kFloat},
    {kHalf, kHalf, kFloat, kHalf},
    {kBFloat, kBFloat, kFloat, kBFloat},
    {kFloat, kByte, kFloat, kFloat},
    {kHalf, kByte, kHalf, kHalf},
    {kBFloat, kByte, kBFloat, kBFloat},
    {kBFloat, kByte, kFloat, kBFloat},
    {kByte, kHalf, kHalf, kHalf},
    {kByte, kByte, DType::Int32, DType::Int32},
};

class ProductEnds : public nvidia_mma::EmulatedUnits {
 protected:
  // What algorithms of this device were found to do, each by random problems that it takes.
  static std::set<std::string> run_all() {
    std::set<std::string> seen;
    std::mt19937 random(7);
    run_each_algorithm<Problem>(matmul_algorithms(), [&](const AlgorithmFor<Problem>& algorithm) {
      return run_one(random, algorithm, seen);
    });
    return seen;
  }

  static std::set<std::string> all_of(const std::string& id) {
    return {id + " of other types", id + " with scales", id + " with a formula"};
  }

 private:
  // Whether the algorithm takes it.
  static bool run_one(std::mt19937& random, const AlgorithmFor<Problem>& algorithm,
                      std::set<std::string>& seen) {
    const AnyCall any;
    RandomProduct product(*any, random, kTypes[random() % std::size(kTypes)]);
    const Problem& p = product.problem();
    Plan plan;
    if (algorithm.plan(*any, p, plan) != nullptr) return false;
    product.check([&] { algorithm.run(*any, p, plan); });
    const std::string id = algorithm.id;
    seen.insert(id);
    if (!p.types.alike()) seen.insert(id + " of other types");
    if (p.end.scales) seen.insert(id + " with scales");
    if (p.end.formula != nullptr) seen.insert(id + " with a formula");
    return true;
  }
};

TEST_F(ProductEnds, OfCpusAreRightByEveryAlgorithm) {
  setenv("OCLTENSOR_KERNEL_STYLE", "cpu", 1);
  if (device(0).caps().style != KernelStyle::Cpu) GTEST_SKIP() << "SKIPPED: needs its own process";
  const std::set<std::string> seen = run_all();
  EXPECT_THAT(seen, IsSupersetOf({"matmul.skinny", "matmul.in_place", "matmul.packed",
                                  "matmul.general_cpu", "matmul.int8_floats"}));
  if (!kThorough) return;
  for (const std::string id : {"matmul.skinny", "matmul.packed", "matmul.general_cpu"})
    EXPECT_THAT(seen, IsSupersetOf(all_of(id)));
}

TEST_F(ProductEnds, OfGpusAreRightByEveryAlgorithm) {
  open("emulated80");
  if (IsSkipped()) return;
  const std::set<std::string> seen = run_all();
  EXPECT_THAT(seen, IsSupersetOf({"matmul.dots", "matmul.columns", "matmul.tiles",
                                  "matmul.tiles_in_pieces", "matmul.mma", "matmul.mma_int8",
                                  "matmul.end_apart", "matmul.general_gpu", "matmul.int8_dots"}));
  if (!kThorough) return;
  for (const std::string id :
       {"matmul.dots", "matmul.columns", "matmul.tiles", "matmul.general_gpu", "matmul.end_apart"})
    EXPECT_THAT(seen, IsSupersetOf(all_of(id)));
}

}  // namespace
}  // namespace ocltensor::opencl::matmul
