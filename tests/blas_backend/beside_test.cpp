// Two plugins in one process, `ocl` and `blas`, beside the host's own CPU: what
// OCLTENSOR_PLUGIN_PATH names is loaded by the first request for a device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "ocltensor/ocltensor.h"
#include "support/error_text.h"

namespace ocltensor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

const char* const kTypes[] = {"cpu", "ocl", "blas"};

Tensor numbers(Dims sizes, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  std::vector<float> data(static_cast<size_t>(count));
  for (float& v : data) v = values(random);
  return tensor(data, {count}).view(sizes);
}

// Sums of `terms` products of numbers between -2 and 2: a partial sum has a standard deviation of
// 4/3 sqrt(terms), and the roundings of float32 add up to one of 2^-24 sqrt(terms) times that.
// Eight standard deviations.
void expect_near(const Tensor& actual, const Tensor& expected, double terms) {
  const std::vector<float> a = actual.to_vector<float>(), e = expected.to_vector<float>();
  ASSERT_EQ(a.size(), e.size());
  const double bound = 8 * std::ldexp(1.0, -24) * 4 / 3 * terms;
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], e[i], bound) << "element " << i;
}

TEST(Beside, OneRequestLoadsBoth) {
  ASSERT_TRUE(is_available("blas")) << unavailable_reason("blas");
  ASSERT_TRUE(is_available("ocl")) << unavailable_reason("ocl");
  EXPECT_THAT(device_types(), IsSupersetOf({"cpu", "blas", "ocl"}));
  EXPECT_STREQ(device_properties("blas").name, "BLAS");
  EXPECT_STRNE(device_properties("ocl").name, "BLAS");
}

TEST(Beside, CopiesBetweenAllThreeKeepEveryBit) {
  const Tensor source = numbers({5, 7}, 1);
  const std::vector<float> bits = source.to_vector<float>();
  for (const char* from : kTypes)
    for (const char* to : kTypes) {
      const Tensor there = source.to(Device(from)).to(Device(to));
      EXPECT_EQ(there.device(), Device(to));
      EXPECT_EQ(there.to_vector<float>(), bits) << from << " to " << to;
      // Into a strided target, from a strided source.
      const Tensor target = zeros({7, 5}, {DType::Float32, Device(to)});
      target.t().copy_(source.to(Device(from)));
      EXPECT_EQ(target.t().to_vector<float>(), bits) << from << " to " << to << ", strided";
      // With a conversion.
      const Tensor wide = empty({5, 7}, {DType::Float64, Device(to)});
      wide.copy_(source.to(Device(from)));
      EXPECT_EQ(wide.cpu().to(DType::Float32).to_vector<float>(), bits) << from << " to " << to;
    }
}

TEST(Beside, EachComputesOnItsOwnAndAllAgree) {
  const Tensor a = numbers({33, 65}, 2), b = numbers({65, 17}, 3), row = numbers({17}, 4);
  const Tensor stack = numbers({3, 33, 65}, 5), others = numbers({3, 65, 17}, 6);
  const Tensor product = mm(a, b);
  for (const char* type : {"ocl", "blas"}) {
    SCOPED_TRACE(type);
    const Device device(type);
    const auto there = [&](const Tensor& t) { return t.to(device); };
    expect_near(mm(there(a), there(b)), product, 65);
    expect_near(mm(there(b.t().contiguous()).t().t(), there(a).t()), mm(b.t(), a.t()), 65);
    expect_near(addmm(there(row), there(a), there(b), 0.5, 2.0), addmm(row, a, b, 0.5, 2.0),
                2 * 65);
    expect_near(bmm(there(stack), there(others)), bmm(stack, others), 65);
    EXPECT_EQ(add(there(a), there(a), 2.0).to_vector<float>(), add(a, a, 2.0).to_vector<float>());
    EXPECT_EQ(mul(there(product), there(row)).to_vector<float>(),
              mul(product, row).to_vector<float>());
  }
}

TEST(Beside, APipelineGoesThroughBoth) {
  const Tensor a = numbers({16, 16}, 7), b = numbers({16, 16}, 8);
  const Tensor first = mm(a.to(Device("blas")), b.to(Device("blas")));
  const Tensor second = mm(first.to(Device("ocl")), b.to(Device("ocl")));
  // Entries of the first product are sums of 16 products below 4.
  expect_near(second.cpu(), mm(mm(a, b), b), 16 * 16);
}

TEST(Beside, ThreadsUseBothAtOnce) {
  const Tensor a = numbers({24, 24}, 9);
  const Tensor expected = mm(a, a);
  std::vector<Tensor> results(8);
  std::vector<std::thread> threads;
  for (size_t k = 0; k < results.size(); ++k)
    threads.emplace_back([&, k] {
      const Device device(k % 2 == 0 ? "ocl" : "blas");
      for (int round = 0; round < 10; ++round) {
        const Tensor there = a.to(device);
        results[k] = mm(there, there).cpu();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const Tensor& result : results) expect_near(result, expected, 24);
}

TEST(Beside, DevicesAreNeverMixed) {
  const Tensor a = numbers({4, 4}, 10);
  const std::string text = error_of([&] { mm(a.to(Device("ocl")), a.to(Device("blas"))); });
  EXPECT_THAT(text, HasSubstr("ocl:0"));
  EXPECT_THAT(text, HasSubstr("blas:0"));
  // What a backend lacks is declined with the device's name; nothing runs elsewhere unasked.
  EXPECT_THAT(error_of([&] { exp(a.to(Device("blas"))); }, TB_UNSUPPORTED), HasSubstr("blas"));
  EXPECT_EQ(mm(a.to(Device("blas")), a.to(Device("blas"))).device(), Device("blas"));
}

TEST(Beside, MemoryIsCountedApart) {
  const auto live = [](const char* type) { return memory_stats(type).requested_bytes.current; };
  const int64_t ocl = live("ocl"), blas = live("blas");
  const Tensor there = empty({1024}, {DType::Float32, Device("blas")});
  EXPECT_EQ(live("blas"), blas + 4096);
  EXPECT_EQ(live("ocl"), ocl);
}

}  // namespace
}  // namespace ocltensor
