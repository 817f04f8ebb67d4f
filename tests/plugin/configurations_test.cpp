// Configurations of products: whatever numbers a file may have, a plan function refuses them, or
// the product is right.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "any_call.h"
#include "call/configuration.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl::matmul {
namespace {

constexpr int64_t kM = 70, kN = 90, kK = 150;

class Configured : public testing::Test {
 protected:
  Configured()
      : a_(numbers(kM * kK)),
        b_(numbers(kK * kN)),
        on_a_(device_copy(a_)),
        on_b_(device_copy(b_)) {}

  std::vector<float> numbers(int64_t count) {
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> list;
    for (int64_t i = 0; i < count; ++i) list.push_back(uniform(random_));
    return list;
  }
  Scratch device_copy(const std::vector<float>& values) {
    Scratch memory = (*call_).scratch(values.size() * sizeof(float));
    const Place place = resolve(memory.address(), 0, static_cast<int64_t>(memory.bytes()));
    (*call_).stream().write(place.buffer, place.offset, values.data(), memory.bytes(), false);
    return memory;
  }
  Problem problem_with(tb_address out) const {
    return {.types = DType::Float32,
            .batch = 1,
            .m = kM,
            .n = kN,
            .k = kK,
            .a = {on_a_.address(), 0, kK, 1},
            .b = {on_b_.address(), 0, kN, 1},
            .c = {out, 0, kN, 1}};
  }
  // Whether the algorithm takes the numbers; then it runs, and its result is checked.
  bool try_out(const AlgorithmFor<Problem>& algorithm, const Configuration& configuration) {
    const Scratch out = (*call_).scratch(kM * kN * sizeof(float));
    out.poison();
    const Problem problem = problem_with(out.address());
    Plan plan;
    if (algorithm.plan(*call_, problem, plan, configuration) != nullptr) return false;
    algorithm.run(*call_, problem, plan);
    check(out, text_of({&algorithm, configuration}));
    return true;
  }
  void check(const Scratch& out, const std::string& what) const {
    const std::vector<std::byte> bytes = out.read();
    const auto* got = reinterpret_cast<const float*>(bytes.data());
    double worst = 0;
    for (int64_t m = 0; m < kM; ++m)
      for (int64_t n = 0; n < kN; ++n) {
        double sum = 0;
        for (int64_t k = 0; k < kK; ++k)
          sum += static_cast<double>(a_[m * kK + k]) * static_cast<double>(b_[k * kN + n]);
        const double error = std::abs(static_cast<double>(got[m * kN + n]) - sum);
        worst = std::isnan(error) ? INFINITY : std::max(worst, error);
      }
    EXPECT_LT(worst, 1e-4) << what;  // 150 roundings of sums up to about 10, in float32
  }
  // The space that the algorithm itself lists: all of it is taken.
  void try_space(const AlgorithmFor<Problem>& algorithm, size_t most) {
    Configurations space = algorithm.configurations(*call_, problem_with(on_a_.address()));
    EXPECT_GE(space.size(), 4u);
    if (space.size() > most) space.resize(most);
    for (const Configuration& c : space) EXPECT_TRUE(try_out(algorithm, c)) << c[0] << ' ' << c[1];
  }
  void try_random(const AlgorithmFor<Problem>& algorithm, size_t count, int most_taken) {
    constexpr int64_t kNumbers[] = {-32768, -8, -1, 0,  1,  2,   3,   4,   7,    8,
                                    12,     16, 24, 32, 64, 100, 128, 256, 1024, 32767};
    int taken = 0;
    for (int i = 0; i < 20000 && taken < most_taken; ++i) {
      std::vector<int64_t> list;
      for (size_t k = 0; k < count; ++k) list.push_back(kNumbers[random_() % std::size(kNumbers)]);
      taken += try_out(algorithm, Configuration(list)) ? 1 : 0;
    }
  }

  std::mt19937 random_{7};
  AnyCall call_;
  std::vector<float> a_, b_;
  Scratch on_a_, on_b_;
};

TEST_F(Configured, PackedTilesOfAnyTakenSizeAreRight) {
  for (const auto* algorithm : {&kPacked, &kInPlace}) {
    if (try_out(*algorithm, {8, 1}))  // not where local memory is small
      try_space(*algorithm, 100);
    for (const size_t count : {1u, 2u, 3u}) try_random(*algorithm, count, 40);
  }
}

// Each takes a compilation: a few of them.
TEST_F(Configured, TilesOfAnyTakenSizeAreRight) {
  EXPECT_TRUE(try_out(kTiles, {})) << "by the model";
  try_space(kTiles, 4);
  for (const size_t count : {1u, 5u}) try_random(kTiles, count, 1);
  try_random(kTiles, 6, 2);
  EXPECT_FALSE(try_out(kTiles, {64, 64, 8, 8, 8, 0}));
  EXPECT_FALSE(try_out(kTiles, {64, 64, 8, 8, 8, 200}));  // more pieces than terms
  EXPECT_TRUE(try_out(kTiles, {64, 64, 8, 8, 8, 5}));
}

}  // namespace
}  // namespace ocltensor::opencl::matmul
