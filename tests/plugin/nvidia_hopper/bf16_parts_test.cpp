// bf16 parts of float32 numbers: they add up again, and the kernels over attention scores that
// write parts write those of the floats that they would have kept. (Their products need matrix
// units.)
#include "nvidia_hopper/matmul/bf16_parts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ops/attention/scores.h"
#include "plugin/any_call.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class Bf16Parts : public testing::Test {
 protected:
  Bf16Parts() {
    setenv("OCLTENSOR_KERNEL_STYLE", "gpu", 1);
    call_.emplace();
  }
  void SetUp() override {
    if (device(0).caps().style != KernelStyle::Gpu)
      GTEST_SKIP() << "SKIPPED: the device is open with kernels of CPU drivers already; needs a "
                      "process of its own";
  }
  const OpCall& call() { return **call_; }

  Scratch memory(size_t bytes) { return call().scratch(bytes); }
  void write(const Scratch& to, const void* from, size_t bytes) {
    const Place place = resolve(to.address(), 0, static_cast<int64_t>(bytes));
    call().stream().write(place.buffer, place.offset, from, bytes, false);
  }
  template <typename T>
  std::vector<T> read(const Scratch& from, size_t count) {
    std::vector<T> values(count);
    const Place place = resolve(from.address(), 0, static_cast<int64_t>(count * sizeof(T)));
    call().stream().read(values.data(), place.buffer, place.offset, count * sizeof(T), false);
    return values;
  }
  // The sum of number i's parts, the smallest first.
  static float joined(const std::vector<uint16_t>& parts, size_t i) {
    const size_t part_size = parts.size() / 3;
    float sum = 0;
    for (size_t k = 3; k-- > 0;) {
      const uint32_t bits = uint32_t{parts[k * part_size + i]} << 16;
      float part;
      std::memcpy(&part, &bits, sizeof part);
      sum += part;
    }
    return sum;
  }
  // A guard whose word has its value, or not.
  matmul::Guard guard(const Scratch& word, bool set) {
    const matmul::Guard g{word.address(), matmul::next_guard_value()};
    const uint32_t value = set ? g.value : ~g.value;
    write(word, &value, sizeof value);
    return g;
  }

 private:
  std::optional<AnyCall> call_;
};

TEST_F(Bf16Parts, AddUpToWhatWasSplit) {
  constexpr size_t kCount = 4096;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int> exponent(-100, 62);
  std::vector<float> a(kCount), b(kCount);
  for (float& v : a) v = std::ldexp(normal(random), exponent(random) % 20);
  for (float& v : b) v = std::ldexp(normal(random), exponent(random));
  a[3] = 0;
  a[4] = -0.0f;
  const Scratch floats_a = memory(kCount * 4), floats_b = memory(kCount * 4);
  const Scratch parts_a = memory(kCount * 6), parts_b = memory(kCount * 6), word = memory(4);
  for (const float special : {1.0f, 0x1p64f, -0x1p-110f, kInf, kNaN}) {
    b[1000] = special;
    write(floats_a, a.data(), kCount * 4);
    write(floats_b, b.data(), kCount * 4);
    const matmul::Guard g = guard(word, false);
    split_to_bf16_parts(call(), {floats_a.address(), parts_a.address(), kCount},
                        {floats_b.address(), parts_b.address(), kCount}, g);
    EXPECT_EQ(read<uint32_t>(word, 1)[0] == g.value, special != 1) << special;
    const auto of_a = read<uint16_t>(parts_a, kCount * 3);
    const auto of_b = read<uint16_t>(parts_b, kCount * 3);
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(joined(of_a, i), a[i]) << i;
      if (i == 1000) continue;
      ASSERT_EQ(joined(of_b, i), b[i]) << i;
    }
  }
}

// Lines whose length is no multiple of 8, in registers of few and many work-items, and too long for
// them.
TEST_F(Bf16Parts, OfWeightsAndGradientsAreThoseOfTheFloats) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (const int64_t keys : {19, 130, 1001, 40001}) {
    const int64_t queries = 5, matrices = 3, rows = queries * matrices;
    const int64_t line = (keys + 7) / 8 * 8;
    const auto count = static_cast<size_t>(rows * keys), padded = static_cast<size_t>(rows * line);
    std::vector<float> scores(count), gradients(count), deltas(static_cast<size_t>(rows));
    for (float& v : scores) v = 30 * normal(random);
    for (float& v : gradients) v = normal(random);
    for (float& v : deltas) v = normal(random);
    scores[0] = kNaN;  // all of the row
    scores[static_cast<size_t>(keys)] = kInf;
    // As NVIDIA's arithmetic makes it: rounding carries out of it.
    const uint32_t all_ones[] = {0x7fffffffu, 0xffffffffu};
    std::memcpy(&gradients[static_cast<size_t>(2 * keys)], all_ones, sizeof all_ones);
    const Scratch s = memory(count * 4), d = memory(count * 4), word = memory(4);
    const Scratch sums = memory(static_cast<size_t>(rows) * 4), delta = memory(deltas.size() * 4);
    const Scratch weight_parts = memory(padded * 6), gradient_parts = memory(padded * 6);
    write(delta, deltas.data(), deltas.size() * 4);
    attention::ScoreBlock block{s.address(), DType::Float32, {matrices}};
    block.matrices = matrices;
    block.queries = block.all_queries = queries;
    block.keys = keys;
    block.causal = keys < 200;
    const auto expect = [&](const Scratch& parts, const std::vector<float>& floats) {
      const auto seen = read<uint16_t>(parts, padded * 3);
      for (size_t i = 0; i < padded; ++i) {
        const auto column = static_cast<int64_t>(i) % line;
        const size_t at =
            i / static_cast<size_t>(line) * static_cast<size_t>(keys) + static_cast<size_t>(column);
        const float expected = column < keys ? floats[at] : 0;
        const float actual = joined(seen, i);
        if (std::isfinite(expected)) {  // tiny ones lose bits below 2^-134
          ASSERT_NEAR(actual, expected, 0x1p-133) << i;
        } else {
          ASSERT_TRUE(std::isnan(actual)) << i << ": " << actual;
        }
      }
    };
    const auto fresh = [&] {
      write(s, scores.data(), count * 4);
      write(d, gradients.data(), count * 4);
    };
    const std::vector<uint16_t> poison(padded * 3, 0xdead);

    fresh();
    attention::softmax_scores(call(), block, sums.address());
    const auto weights = read<float>(s, count);
    EXPECT_TRUE(std::isnan(weights[0]));
    for (const bool set : {false, true}) {
      fresh();
      write(weight_parts, poison.data(), padded * 6);
      attention::softmax_scores(call(), block, sums.address(),
                                {weight_parts.address(), 0, guard(word, set)});
      if (!set) {
        expect(weight_parts, weights);
        continue;
      }
      EXPECT_EQ(std::memcmp(read<float>(s, count).data(), weights.data(), count * 4), 0);
      EXPECT_EQ(read<uint16_t>(weight_parts, padded * 3), poison);
    }

    fresh();
    attention::differentiate_scores(call(), block, d.address(), sums.address(), delta.address());
    const auto kept_weights = read<float>(s, count), kept_gradients = read<float>(d, count);
    for (const bool set : {false, true}) {
      fresh();
      write(weight_parts, poison.data(), padded * 6);
      write(gradient_parts, poison.data(), padded * 6);
      attention::differentiate_scores(
          call(), block, d.address(), sums.address(), delta.address(),
          {weight_parts.address(), gradient_parts.address(), guard(word, set)});
      if (!set) {
        expect(weight_parts, kept_weights);
        expect(gradient_parts, kept_gradients);
        continue;
      }
      EXPECT_EQ(std::memcmp(read<float>(d, count).data(), kept_gradients.data(), count * 4), 0);
    }
  }
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_hopper
