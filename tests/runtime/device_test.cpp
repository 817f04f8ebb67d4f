// The runtime through the C++ host, on the default device: specialisation, streams, events, memory
// limits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <random>

namespace ot = ocltensor;
using testing::HasSubstr;

namespace {

ot::Tensor random_tensor(std::initializer_list<int64_t> sizes, unsigned seed) {
  int64_t n = 1;
  for (const int64_t s : sizes) n *= s;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& v : values) v = normal(random);
  return ot::tensor(values, sizes, "ocl");
}

uint64_t programs() {
  const tb_counters c = ot::counters("ocl");
  return c.program_builds + c.program_loads;
}

TEST(Specialisation, NewShapesCompileNothing) {
  const auto work = [](int64_t m, int64_t n, int64_t k, unsigned seed) {
    const ot::Tensor a = random_tensor({m, k}, seed);
    const ot::Tensor b = random_tensor({k, n}, seed + 1);
    const ot::Tensor c = ot::relu(ot::add(ot::mm(a, b), 1.0));
    return ot::sum(ot::_softmax(c, 1, false), {1}).to_vector<float>();
  };
  // A GPU's tile is chosen by sizes: the smallest and the largest ones have what lies between.
  (void)work(33, 47, 65, 1);
  (void)work(39, 67, 69, 1);
  const uint64_t before = programs();
  for (const int64_t s : {5, 6, 7, 8})
    for (const float v : work(30 + s, 40 + 3 * s, 60 + s, 3)) ASSERT_NEAR(v, 1.0f, 1e-5f);
  EXPECT_EQ(programs(), before);
}

TEST(Streams, WorkOnOneIsSeenByAnotherThroughAnEvent) {
  const ot::Stream first = ot::Stream::create("ocl");
  const ot::Stream second = ot::Stream::create("ocl");
  const ot::Event event("ocl");
  ot::Tensor x = ot::ones({1 << 16}, {ot::DType::Float32, "ocl"});
  ot::synchronize("ocl");
  {
    const ot::StreamGuard guard(first);
    for (int i = 0; i < 50; ++i) ot::add_(x, 1);
    event.record();
  }
  ot::Tensor y;
  {
    const ot::StreamGuard guard(second);
    second.wait(event);
    y = ot::mul(x, 2);
  }
  second.synchronize();
  for (const float v : y.to_vector<float>()) ASSERT_EQ(v, 102.0f);
}

TEST(Streams, PinnedMemoryIsReadBehindWhatWritesIt) {
  const ot::Tensor a = random_tensor({400, 400}, 3);
  for (const bool non_blocking : {true, false}) {
    ot::Tensor late = a;
    for (int i = 0; i < 8; ++i) late = ot::tanh(ot::mm(late, a));  // the first copy waits for it
    late = late.flatten().narrow(0, 0, 12);  // small copies are staged by the processor
    const ot::Tensor pinned = ot::full({12}, -7.0, ot::DType::Float32).pin_memory();
    pinned.copy_(late, true);
    const ot::Tensor back = pinned.to(ot::Device("ocl"), non_blocking);
    EXPECT_EQ(back.to_vector<float>(), late.to_vector<float>()) << non_blocking;
  }
}

TEST(Events, TimeQueryAndErrors) {
  const ot::Event unrecorded("ocl", true);
  EXPECT_FALSE(unrecorded.query());
  unrecorded.synchronize();
  const ot::Event begin("ocl", true);
  const ot::Event end("ocl", true);
  const ot::Tensor x = random_tensor({1 << 20}, 3);
  begin.record();
  ot::Tensor y = ot::exp(x);
  for (int i = 0; i < 5; ++i) y = ot::tanh(y);
  end.record();
  end.synchronize();
  EXPECT_TRUE(end.query());
  EXPECT_GT(begin.elapsed_time(end), 0.01);
  EXPECT_THROW((void)begin.elapsed_time(unrecorded), ot::Error);
  EXPECT_THROW((void)ot::Event("ocl").elapsed_time(end), ot::Error);
}

TEST(Memory, FractionLimitsAndTheProcessGoesOn) {
  ot::empty_cache();
  const uint64_t before = ot::current_allocated_memory();
  EXPECT_THROW(ot::set_per_process_memory_fraction(2.5), ot::Error);
  const double small = 64e6 / static_cast<double>(ot::recommended_max_memory());
  ot::set_per_process_memory_fraction(small);
  try {
    (void)ot::empty({512, 1 << 20}, {ot::DType::Float32, "ocl"});
    FAIL() << "no error";
  } catch (const ot::OutOfMemoryError& e) {
    EXPECT_EQ(e.status(), TB_E_OUT_OF_MEMORY);
    EXPECT_THAT(e.what(), HasSubstr("set_per_process_memory_fraction"));
  }
  EXPECT_EQ(ot::ones({1 << 20}, {ot::DType::Float32, "ocl"}).to_vector<float>()[7], 1.0f);
  ot::set_per_process_memory_fraction(0);
  EXPECT_EQ(ot::current_allocated_memory(), before);
  ot::set_per_process_memory_fraction(1.7);
}

TEST(Memory, LargerThanTheDeviceGivesIsAnErrorWithTheLimit) {
  const auto bytes = static_cast<int64_t>(ot::device_properties("ocl").largest_allocation);
  try {
    (void)ot::empty({bytes + 4096}, {ot::DType::UInt8, "ocl"});
    FAIL() << "no error";
  } catch (const ot::Error& e) {
    EXPECT_EQ(e.status(), TB_E_OUT_OF_MEMORY);
  }
}

TEST(Memory, ChangingShapesDoNotGrow) {
  const auto step = [](int64_t n) {
    const ot::Tensor x = random_tensor({n, 300}, 5);
    return ot::sum(ot::exp(ot::mul(x, 0.1)), {0}).to_vector<float>()[0];
  };
  for (int i = 0; i < 30; ++i) (void)step(100 + 17 * (i % 13));
  const uint64_t reserved = ot::driver_allocated_memory();
  for (int i = 0; i < 200; ++i) (void)step(100 + 17 * (i % 13));
  EXPECT_LE(ot::driver_allocated_memory(), reserved);
}

TEST(Random, IntegersOfEachTypeAreTheCpus) {
  for (const ot::DType type :
       {ot::DType::Bool, ot::DType::UInt8, ot::DType::Int8, ot::DType::Int16, ot::DType::UInt16,
        ot::DType::Int32, ot::DType::UInt32, ot::DType::Int64, ot::DType::UInt64,
        ot::DType::Float16, ot::DType::BFloat16, ot::DType::Float32, ot::DType::Float64}) {
    const auto drawn = [type](const char* device) {
      ot::Generator::default_of(device).set_seed(42);
      return ot::empty({257}, {type, device}).random_().to("cpu").to(ot::DType::Int64);
    };
    EXPECT_EQ(drawn("ocl").to_vector<int64_t>(), drawn("cpu").to_vector<int64_t>())
        << ot::name(type);
  }
}

TEST(Random, SameSeedSameNumbersAsTheCpu) {
  for (const char* name : {"ocl", "cpu"}) ot::Generator::default_of(name).set_seed(42);
  const auto on_device =
      ot::uniform(ot::empty({1003}, {ot::DType::Float32, "ocl"})).to_vector<float>();
  const auto on_cpu =
      ot::uniform(ot::empty({1003}, {ot::DType::Float32, "cpu"})).to_vector<float>();
  EXPECT_EQ(on_device, on_cpu);
  const ot::Generator::State state = ot::get_rng_state("ocl");
  const auto next = ot::uniform(ot::empty({10}, {ot::DType::Float32, "ocl"})).to_vector<float>();
  ot::set_rng_state(state, "ocl");
  EXPECT_EQ(ot::uniform(ot::empty({10}, {ot::DType::Float32, "ocl"})).to_vector<float>(), next);
}

}  // namespace
