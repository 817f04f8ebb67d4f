// Warming up in processes with empty caches of their own: what is computed is right, what is
// missing is built, and work elsewhere is not concerned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "fresh_process.h"

namespace ot = ocltensor;

namespace {

class WarmUp : public testing::Test {
 protected:
  WarmUp() {
    ot::set_setting("OCLTENSOR_CACHE_DIR", folder_.path() + "/cache");
    ot::set_setting("OCLTENSOR_BUILD_AHEAD", "0");
  }
  static ot::Tensor numbers(int64_t count) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 101) * 0.25f - 12);
    return ot::tensor(values, {count}).to(ot::Device("ocl"));
  }

 private:
  Folder folder_;
};

TEST_F(WarmUp, BuildsWhatIsMissingAndEndsWithACompleteCall) {
  const ot::Tensor x = numbers(500);
  std::vector<float> got;
  int calls = 0;
  const ot::WarmUp result = ot::warm_up(ot::Device("ocl"), [&] {
    ++calls;
    got.clear();
    got = ot::mul(ot::exp(ot::neg(ot::abs(x))), x).to_vector<float>();
  });
  EXPECT_GE(result.programs, 4u);
  EXPECT_EQ(result.calls, 2u);  // the first call ends at its result
  EXPECT_EQ(calls, 2);
  const std::vector<float> in = x.to_vector<float>();
  ASSERT_EQ(got.size(), in.size());
  for (size_t i = 0; i < in.size(); ++i)
    ASSERT_NEAR(got[i], std::exp(-std::fabs(in[i])) * in[i], 1e-6f) << i;
  const ot::WarmUp again =
      ot::warm_up(ot::Device("ocl"), [&] { (void)ot::mul(ot::exp(ot::neg(ot::abs(x))), x); });
  EXPECT_EQ(again.programs, 0u);
  EXPECT_EQ(again.calls, 1u);
}

TEST_F(WarmUp, GoesOnBehindEachResultThatTheWorkWaitsFor) {
  const ot::Tensor x = numbers(300);
  int64_t count = 0;
  const ot::WarmUp result = ot::warm_up(ot::Device("ocl"), [&] {
    const ot::Tensor places = ot::nonzero(ot::gt(x, ot::Scalar(3.0)));
    count = ot::mul(places, ot::Scalar(int64_t{2})).sizes()[0];
  });
  int64_t expected = 0;
  for (const float v : x.to_vector<float>()) expected += v > 3;
  EXPECT_EQ(count, expected);
  EXPECT_GE(result.calls, 3u);
}

TEST_F(WarmUp, ThrowsWhatTheCompleteCallThrowsAndLeavesTheStreamAlone) {
  const ot::Tensor x = numbers(8);
  EXPECT_THROW(ot::warm_up(ot::Device("ocl"),
                           [&] {
                             (void)ot::exp(x);
                             throw std::runtime_error("mine");
                           }),
               std::runtime_error);
  EXPECT_FLOAT_EQ(ot::exp(x).to_vector<float>()[0], std::exp(-12.0f));
}

TEST_F(WarmUp, WorkOfOtherThreadsGoesOn) {
  const ot::Tensor x = numbers(64);
  const std::vector<float> wanted = ot::add(x, x).to_vector<float>();
  std::atomic<bool> over{false};
  std::atomic<int> rounds{0}, wrong{0};
  std::thread other([&] {
    while (!over || rounds == 0) {
      wrong += ot::add(x, x).to_vector<float>() != wanted;
      ++rounds;
    }
  });
  const ot::WarmUp result = ot::warm_up(ot::Device("ocl"), [&] { (void)ot::sin(ot::tan(x)); });
  over = true;
  other.join();
  EXPECT_GE(result.programs, 2u);
  EXPECT_EQ(wrong, 0);
}

TEST_F(WarmUp, MeasuredChoicesAreMadeInTheCompleteCall) {
  const ot::backends::SettingScope measure{{"OCLTENSOR_BENCHMARK", "1"}};
  const ot::Tensor a = numbers(64 * 96).view({64, 96});
  ot::backends::forget_measurements();
  std::vector<float> got;
  const ot::WarmUp result = ot::warm_up(
      ot::Device("ocl"), [&] { got = ot::mm(a, a.transpose(0, 1)).to_vector<float>(); });
  EXPECT_GE(result.programs, 2u);
  EXPECT_FALSE(ot::backends::measurements().empty());
  const auto plain = ot::mm(a, a.transpose(0, 1)).to_vector<float>();
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], plain[i], 1e-2f);
}

TEST(WarmUpOnTheCpu, CallsOnce) {
  int calls = 0;
  const ot::WarmUp result = ot::warm_up(ot::Device("cpu"), [&] { ++calls; });
  EXPECT_EQ(result.programs, 0u);
  EXPECT_EQ(calls, 1);
}

}  // namespace
