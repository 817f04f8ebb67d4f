// The order of large copies, which go in pieces, among launches: on one stream, on two, and between
// two devices; and waits for events of another device.
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace ot = ocltensor;

namespace {

// More than all of a stream's staging memory (16 MiB): each chunk of it is used again.
constexpr int64_t kCount = (int64_t{21} << 18) + 5;

// Whole numbers, whose sums and products below float32 has, too.
float number(int64_t i, int seed) { return static_cast<float>((i * 7 + seed) % 8191); }

ot::Tensor numbers(int seed, bool pinned = false) {
  std::vector<float> values(kCount);
  for (int64_t i = 0; i < kCount; ++i) values[static_cast<size_t>(i)] = number(i, seed);
  const ot::Tensor t = ot::tensor(values, "cpu");
  return pinned ? t.pin_memory() : t;
}

ot::Tensor on(const ot::Device& device) {
  return ot::empty({kCount}, {ot::DType::Float32, device});
}

// `t` reads as times * number(i, seed) + plus.
void expect(const ot::Tensor& t, int seed, float times, float plus) {
  const std::vector<float> seen = t.to_vector<float>();
  for (int64_t i = 0; i < kCount; ++i)
    ASSERT_EQ(seen[static_cast<size_t>(i)], times * number(i, seed) + plus) << "element " << i;
}

TEST(Transfers, InPiecesKeepTheirOrderAmongLaunches) {
  for (int round = 0; round < 3; ++round) {
    const ot::Tensor a = numbers(round), b = numbers(round + 100);
    ot::Tensor x = on("ocl");
    x.copy_(a);
    ot::Tensor y = ot::add(x, 1);
    x.copy_(b);
    ot::Tensor z = ot::mul(x, 2);
    x.copy_(a);
    for (int i = 0; i < 20; ++i) ot::add_(x, 1);
    expect(z, round + 100, 2, 0);
    ot::add_(z, 3);
    expect(y, round, 1, 1);
    expect(x, round, 1, 20);
    expect(z, round + 100, 2, 3);
  }
}

TEST(Transfers, OfPinnedMemoryKeepTheirOrder) {
  for (int round = 0; round < 3; ++round) {
    const ot::Tensor a = numbers(round, true);
    ot::Tensor back = numbers(7, true), x = on("ocl");
    x.copy_(a, true);
    ot::add_(x, 5);
    back.copy_(x, true);
    ot::mul_(x, 2);
    ot::synchronize("ocl");
    expect(back, round, 1, 5);
    expect(x, round, 2, 10);
  }
}

TEST(Transfers, OfTwoStreamsAreOrderedByEvents) {
  const ot::Stream first = ot::Stream::create("ocl"), second = ot::Stream::create("ocl");
  const ot::Event written("ocl"), read("ocl");
  ot::Tensor x = on("ocl"), y, z;
  ot::synchronize("ocl");
  for (int round = 0; round < 3; ++round) {
    const ot::Tensor a = numbers(round), b = numbers(round + 100);
    {
      const ot::StreamGuard guard(first);
      x.copy_(a);
      ot::add_(x, 1);
      written.record();
    }
    {
      const ot::StreamGuard guard(second);
      second.wait(written);
      y = ot::mul(x, 3);
      x.copy_(b);
      read.record();
      expect(y, round, 3, 3);
    }
    {
      const ot::StreamGuard guard(first);
      first.wait(read);
      z = ot::mul(x, 2);
      expect(z, round + 100, 2, 0);
    }
  }
}

class TwoDevices : public testing::Test {
 protected:
  void SetUp() override {
    if (ot::device_count("ocl") < 2)
      GTEST_SKIP() << "SKIPPED: needs two devices (PoCL: POCL_DEVICES='pthread pthread')";
  }
};

TEST_F(TwoDevices, CopiesBetweenThemKeepTheOrderOfBoth) {
  const ot::Device here("ocl", 0), there("ocl", 1);
  for (const bool own : {false, true}) {
    const ot::StreamGuard of_here(own ? ot::Stream::create(here) : ot::Stream::default_of(here));
    const ot::StreamGuard of_there(own ? ot::Stream::create(there) : ot::Stream::default_of(there));
    ot::Tensor x = on(here), y = on(there);
    for (int round = 0; round < 3; ++round) {
      x.copy_(numbers(round));
      ot::add_(x, 1);
      ot::fill_out(y, y, -1);
      y.copy_(x);
      ot::fill_out(x, x, -2);
      for (int i = 0; i < 10; ++i) ot::add_(y, 1);
      ot::mul_(y, 2);
      x.copy_(y);
      ot::add_(y, 5);
      ot::add_(x, 4);
      expect(x, round, 2, 26);
      expect(y, round, 2, 27);
    }
  }
}

// The host goes on where there is a launch thread, which then has the wait among its commands.
TEST_F(TwoDevices, AStreamWaitsForAnEventOfTheOther) {
  const ot::Device here("ocl", 0), there("ocl", 1);
  const ot::Stream waiting = ot::Stream::create(there);
  const ot::StreamGuard guard(waiting);
  const char* const thread = std::getenv("OCLTENSOR_LAUNCH_THREAD");
  const bool host_waits = thread != nullptr && std::string_view(thread) == "0";
  ot::Tensor x = on(here), y = on(there);
  x.copy_(numbers(1));
  const auto work = [&] {
    for (int i = 0; i < 20; ++i) x = ot::tanh(x);
  };
  work();
  ot::add_(y, 1);
  ot::synchronize(here);
  for (int round = 0; round < 6; ++round) {
    const ot::Event done(here);
    ot::fill_out(y, y, 0);
    waiting.synchronize();
    work();
    done.record();
    ASSERT_FALSE(done.query()) << "the work is too short for this test";
    waiting.wait(done);
    EXPECT_EQ(done.query(), host_waits);
    switch (round % 3) {  // a launch, a fill, a copy from the host: each of them comes behind
      case 0: ot::add_(y, 1); break;
      case 1: ot::fill_out(y, y, 1); break;
      default: y.copy_(ot::ones({kCount}, {ot::DType::Float32, "cpu"}));
    }
    const ot::Event behind(there);
    behind.record();
    behind.synchronize();
    EXPECT_TRUE(done.query()) << round;
    for (const float v : y.to_vector<float>()) ASSERT_EQ(v, 1);
  }
}

}  // namespace
