// A second device type: the fake plugin, which has memory and declines every operator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "ocltensor/ocltensor.h"
#include "support/error_text.h"

namespace ocltensor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

int64_t counter(const char* name) { return std::stoll(get_setting(name)); }

class FakeDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(load_plugin(FAKES_DIR "/fake.so"), "fake");  // again and again: the same one
    set_setting("OCLTENSOR_ENABLE_FALLBACK", "0");
    reset_fallback_counts();
  }
  Device fake{(load_plugin(FAKES_DIR "/fake.so"), "fake:0")};
};

TEST_F(FakeDevice, NamesAndIndices) {
  EXPECT_EQ(fake.text(), "fake:0");
  EXPECT_EQ(Device("fake:1").index(), 1);
  EXPECT_EQ(device_count("fake"), 2);
  EXPECT_EQ(Device("fake"), fake);
  set_current_device("fake:1");
  EXPECT_EQ(Device("fake"), Device("fake:1"));
  std::thread([&] { EXPECT_EQ(Device("fake"), fake); }).join();
  set_current_device(fake);
  EXPECT_THAT(error_of([] { Device("fake:2"); }), HasSubstr("there are 2 fake device(s)"));
  for (const char* bad : {"", "fake:", "fake:x", "fake:-1", "fake:1x", ":0"})
    EXPECT_THAT(error_of([&] { Device d(bad); }), HasSubstr("names no device"));
  EXPECT_THAT(error_of([] { Device("nothing"); }, TB_E_UNAVAILABLE), HasSubstr("no plugin"));
  EXPECT_EQ(device_count("nothing"), 0);
  EXPECT_FALSE(is_available("nothing"));
  EXPECT_FALSE(unavailable_reason("nothing").empty());
  EXPECT_EQ(unavailable_reason("fake"), "");
  EXPECT_STREQ(device_properties(Device("fake:1")).name, "fake device");
  EXPECT_THAT(error_of([] { load_plugin(FAKES_DIR "/fake_wrong_magic.so"); }, TB_E_UNAVAILABLE),
              HasSubstr("magic"));
}

TEST_F(FakeDevice, CopiesRoundTripWithAnyStrides) {
  const Tensor host = tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor there = host.to(fake);
  EXPECT_EQ(there.device(), fake);
  EXPECT_EQ(there.to_vector<float>(), host.to_vector<float>());
  EXPECT_EQ(there.t().to_vector<float>(), host.t().to_vector<float>());
  EXPECT_EQ(there.slice(1, 0, 3, 2).to_vector<float>(), (std::vector<float>{1, 3, 4, 6}));
  EXPECT_EQ(there[1][2].item<float>(), 6);
  EXPECT_THAT(error_of([&] { there.data(); }), HasSubstr("needs a CPU tensor"));
  // Into a strided target, with a cast: the rest stays as it was.
  there.slice(1, 0, 3, 2).copy_(tensor<double>({10, 20, 30, 40}, {2, 2}));
  EXPECT_THAT(there.to_vector<float>(), ElementsAre(10, 2, 20, 30, 5, 40));
  // Negative strides.
  EXPECT_THAT(there.as_strided(Dims{3}, Dims{-2}, 5).to_vector<float>(), ElementsAre(40, 30, 2));
  EXPECT_EQ(zeros({0, 3}, {DType::Float32, fake}).to_vector<float>().size(), 0u);
  EXPECT_THAT(full({2}, 2.5, {DType::BFloat16, fake}).to_vector<float>(), ElementsAre(2.5, 2.5));
}

TEST_F(FakeDevice, CopiesBetweenTwoDevices) {
  const Tensor a = tensor<int32_t>({1, 2, 3}).to(fake);
  const Tensor b = a.to(Device("fake:1"));
  EXPECT_EQ(b.device().index(), 1);
  EXPECT_THAT(b.to_vector<int32_t>(), ElementsAre(1, 2, 3));
}

TEST_F(FakeDevice, MismatchedDevicesAreNamed) {
  const Tensor a = zeros({2}, {DType::Float32, fake}), b = zeros({2});
  const Tensor c = zeros({2}, {DType::Float32, "fake:1"});
  EXPECT_THAT(error_of([&] { add(a, b); }), HasSubstr("at least two devices, fake:0 and cpu"));
  EXPECT_THAT(error_of([&] { add(a, c); }), HasSubstr("at least two devices, fake:0 and fake:1"));
  Tensor out = empty({2});
  EXPECT_THAT(error_of([&] { add_out(out, a, a); }), HasSubstr("the output is on cpu"));
  EXPECT_THAT(error_of([&] {
                mm(zeros({1, 1}, {DType::Float32, fake}), zeros({1, 1}));
              }),
              HasSubstr("mm.out"));
}

TEST_F(FakeDevice, FallbackIsOffByDefault) {
  const Tensor a = zeros({2, 3}, {DType::Float32, fake});
  const std::string text = error_of([&] { add(a, 1); }, TB_UNSUPPORTED);
  for (const char* part :
       {"add.out", "float32[2, 3]", "computes nothing", "fake:0", "OCLTENSOR_ENABLE_FALLBACK=1"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_THAT(error_of([&] { exp(a); }, TB_UNSUPPORTED), HasSubstr("exp.out"));
  EXPECT_THAT(error_of([&] { a.t().contiguous(); }, TB_UNSUPPORTED), HasSubstr("copy.out"));
  EXPECT_TRUE(fallback_counts().empty());
}

uint32_t reason_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    EXPECT_EQ(e.status(), TB_UNSUPPORTED) << e.what();
    return e.reason();
  }
  return 99;
}

TEST_F(FakeDevice, ADeclinedCallKeepsTheBackendsReason) {
  const Tensor a = zeros({2, 3}, {DType::Float32, fake});
  EXPECT_EQ(reason_of([&] { add(a, 1); }), TB_REASON_DTYPE);
  EXPECT_EQ(reason_of([&] { exp(a); }), TB_REASON_OPERATOR);
  EXPECT_EQ(reason_of([&] { a.t().contiguous(); }), TB_REASON_DTYPE);
}

TEST_F(FakeDevice, AGeneratorOfAnotherDeviceIsRefused) {
  const Tensor here = zeros({4}), there = zeros({4}, {DType::Float32, fake});
  const Generator of_cpu(Device{}, 5), of_fake(fake, 5), of_second("fake:1", 5);
  EXPECT_THAT(error_of([&] { uniform(here, 0, 1, of_fake); }),
              HasSubstr("the generator is of fake:0, the call runs on cpu"));
  EXPECT_THAT(error_of([&] { uniform(there, 0, 1, of_cpu); }),
              HasSubstr("the generator is of cpu, the call runs on fake:0"));
  EXPECT_THAT(error_of([&] { uniform(there, 0, 1, of_second); }),
              HasSubstr("the generator is of fake:1, the call runs on fake:0"));
  EXPECT_THAT(error_of([&] { randperm(5, of_fake); }), HasSubstr("the call runs on cpu"));
  const std::vector<Value> args{here};
  const std::vector<NamedValue> named{{"generator", Value(of_fake)}};
  EXPECT_THAT(error_of([&] { call("uniform.out", args, named); }), HasSubstr("of fake:0"));
  // The device's own is lent to the CPU where the device declines.
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  EXPECT_EQ(uniform(there, 0, 1, of_fake).to_vector<float>(),
            uniform(here, 0, 1, of_cpu).to_vector<float>());
  EXPECT_EQ(of_fake.state(), of_cpu.state());
}

TEST_F(FakeDevice, FallbackComputesWarnsAndCounts) {
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  const Tensor a = tensor<float>({1, 2, 3, 4}, {2, 2}).to(fake);
  const Tensor b = add(a, a.t());
  EXPECT_EQ(b.device(), fake);
  EXPECT_THAT(b.to_vector<float>(), ElementsAre(2, 5, 5, 8));
  add_(a, 1);
  EXPECT_THAT(a.to_vector<float>(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(mm(a, a).to_vector<float>(), ElementsAre(16, 21, 28, 37));
  EXPECT_THAT(a.to(DType::Int32).to_vector<int32_t>(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(cat({a[0], a[1]}).to_vector<float>(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(arange(0, 3, 1, {DType::Float32, fake}).to_vector<float>(), ElementsAre(0, 1, 2));
  EXPECT_THAT(nonzero(a.select(0, 1)).to_vector<int64_t>(), ElementsAre(0, 1));
  EXPECT_EQ(masked_select(a, gt(a, 2)).device(), fake);
  EXPECT_THAT(masked_select(a, gt(a, 2)).to_vector<float>(), ElementsAre(3, 4, 5));
  Tensor out = zeros({2, 4}, {DType::Float64, fake});
  Tensor gaps = out.slice(1, 1, 4, 2);
  mul_out(gaps, a, 10);
  EXPECT_THAT(out.to_vector<double>(), ElementsAre(0, 20, 0, 30, 0, 40, 0, 50));
  const std::vector<FallbackCount> counts = fallback_counts();
  ASSERT_FALSE(counts.empty());
  EXPECT_EQ(counts[0].name, "add.out");
  EXPECT_EQ(counts[0].count, 2u);
}

TEST_F(FakeDevice, TheDefaultDeviceDoesNotDisturbCopiesToTheHost) {
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  const DefaultDevice on(fake);
  EXPECT_THAT(tensor({{1, 2}, {3, 4}}).t().to_vector<int>(), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(arange(3).to_vector<int>(), ElementsAre(0, 1, 2));
}

// What brackets assign to is not read first: names of the operators that ran.
TEST_F(FakeDevice, BracketsWriteWithoutReading) {
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  const auto names = [] {
    std::vector<std::string> all;
    for (const FallbackCount& f : fallback_counts()) all.push_back(f.name);
    return all;
  };
  const Tensor a = tensor({1.f, 2.f, 3.f}).to(fake), mask = tensor({true, false, true}).to(fake);
  const Tensor rows = tensor<int64_t>({2, 0}).to(fake), new_values = tensor({7.f, 8.f}).to(fake);
  reset_fallback_counts();
  a[mask] = 0;
  EXPECT_THAT(names(), ElementsAre("masked_fill.Scalar_out"));
  EXPECT_THAT(a.to_vector<float>(), ElementsAre(0, 2, 0));
  reset_fallback_counts();
  a[rows] = new_values;
  EXPECT_THAT(names(), ElementsAre(HasSubstr("index_put")));
  EXPECT_THAT(a.to_vector<float>(), ElementsAre(8, 2, 7));
}

TEST_F(FakeDevice, AFallbackThatFailsIsNotCounted) {
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  const Tensor a = ones({2}, fake), wrong = tensor<int64_t>({7}).to(fake);
  reset_fallback_counts();
  error_of([&] { index_select(a, 0, wrong); }, TB_E_INDEX);
  EXPECT_TRUE(fallback_counts().empty());
}

TEST_F(FakeDevice, FallbackDrawsForABackendWithoutGenerators) {
  ASSERT_EQ(load_plugin(FAKES_DIR "/host_backend.so"), "host");
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  manual_seed(5);
  const Tensor drawn = rand({4}, "host");
  EXPECT_EQ(drawn.device(), Device("host"));
  manual_seed(5);
  EXPECT_EQ(drawn.to_vector<float>(), rand({4}).to_vector<float>());
  const DefaultDevice on("host");
  EXPECT_EQ(nn::Linear(2, 3)(ones({1, 2})).device(), Device("host"));
}

TEST_F(FakeDevice, AZeroDimensionalCpuTensorMayMix) {
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  const Tensor a = tensor<float>({1, 2}).to(fake);
  const Tensor s = full({}, 3, DType::Float64);
  EXPECT_THAT(add(a, s).to_vector<float>(), ElementsAre(4, 5));
  EXPECT_EQ(add(a, s).dtype(), DType::Float32);
  EXPECT_EQ(add(a, s).device(), fake);
  // Promotion as between tensors, not as with a Python number.
  const Tensor i = tensor<int32_t>({1, 2}).to(fake);
  EXPECT_EQ(add(i, s).dtype(), DType::Float64);
  EXPECT_EQ(add(s, i).dtype(), DType::Float64);
  EXPECT_EQ(add(full({}, 1, {DType::Int32, fake}), full({}, 1, DType::Int64)).dtype(),
            DType::Int64);
  EXPECT_THAT(error_of([&] { add(a, tensor<float>({3})); }), HasSubstr("same device"));
  // Only numbers beside it, but the output says where.
  Tensor out = zeros({}, {DType::Float64, fake});
  add_out(out, s, s);
  EXPECT_EQ(out.item<double>(), 6);
}

TEST_F(FakeDevice, AComplexNumberMayMix) {
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  const Tensor a = tensor<float>({1, 2}).to(fake);
  const Tensor s = full({}, Scalar(std::complex<double>(0, 1)), DType::Complex64);
  const Tensor sum = add(a, s);
  EXPECT_EQ(sum.dtype(), DType::Complex64);
  EXPECT_EQ(sum.device(), fake);
  EXPECT_EQ(sum.select(0, 1).item().as_complex(), (std::complex<double>(2, 1)));
}

TEST_F(FakeDevice, FallbackLosesNoChangeOfAnArgument) {
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  const Tensor x = ones({2, 3}, {DType::Float32, fake}), mean = zeros({3}, {DType::Float32, fake}),
               var = ones({3}, {DType::Float32, fake});
  EXPECT_THAT(
      error_of(
          [&] { native_batch_norm(x, std::nullopt, std::nullopt, mean, var, true, 0.1, 1e-5); },
          TB_UNSUPPORTED),
      HasSubstr("cannot run on the CPU instead, because it changes its arguments"));
  EXPECT_THAT(mean.to_vector<float>(), ElementsAre(0, 0, 0));
  // What the schema marks is copied back, in lists too.
  const Tensor p = tensor<float>({1, 2}).to(fake), g = tensor<float>({1, 1}).to(fake);
  const Tensor lr = full({}, 0.5, {DType::Float32, fake});
  const std::vector<Tensor> params{p}, grads{g}, momentum;
  const std::vector<Value> args{params, grads, momentum};
  const std::vector<NamedValue> named{
      {"weight_decay", Value(0.0)},  {"momentum", Value(0.0)},   {"lr", Value(lr)},
      {"dampening", Value(0.0)},     {"nesterov", Value(false)}, {"maximize", Value(false)},
      {"is_first_step", Value(true)}};
  call("_fused_sgd_.tensor_lr", args, named);
  EXPECT_THAT(p.to_vector<float>(), ElementsAre(0.5, 1.5));
}

TEST_F(FakeDevice, MemoryIsFreedOnItsStream) {
  const int64_t before = counter("fake.bytes");
  const int64_t on_default = counter("fake.freed_on_default");
  const int64_t uses = counter("fake.record_use");
  {
    const Stream side = Stream::create(fake);
    Tensor t;
    {
      const StreamGuard guard(side);
      EXPECT_EQ(current_stream(fake), side);
      t = zeros({100}, {DType::Float32, fake});
      EXPECT_EQ(counter("fake.record_use"), uses);
    }
    EXPECT_NE(current_stream(fake), side);
    EXPECT_EQ(counter("fake.bytes"), before + 400);
    EXPECT_EQ(t.to_vector<float>()[0], 0);  // read on the default stream
    EXPECT_GT(counter("fake.record_use"), uses);
    EXPECT_TRUE(side.query());
  }
  EXPECT_EQ(counter("fake.bytes"), before);
  EXPECT_EQ(counter("fake.freed_on_default"), on_default);
  EXPECT_EQ(counter("fake.streams"), 0);
}

TEST_F(FakeDevice, PinnedMemoryCopiesAsynchronously) {
  const int64_t before = counter("fake.pinned"), async = counter("fake.async");
  {
    const Tensor p = tensor<float>({1, 2}).pin_memory(fake);
    EXPECT_TRUE(p.is_pinned());
    EXPECT_EQ(counter("fake.pinned"), before + 1);
    EXPECT_THAT(p.to(fake, true).to_vector<float>(), ElementsAre(1, 2));
    EXPECT_EQ(counter("fake.async"), async + 1);
    tensor<float>({1, 2}).to(fake, true);  // pageable: must not read freed memory later
    EXPECT_EQ(counter("fake.async"), async + 1);
    EXPECT_THAT(add(p, 1).to_vector<float>(), ElementsAre(2, 3));
  }
  EXPECT_EQ(counter("fake.pinned"), before);
}

TEST_F(FakeDevice, MemoryFunctions) {
  const Tensor t = zeros({256}, {DType::Float32, fake});
  EXPECT_GE(current_allocated_memory(fake), 1024u);
  EXPECT_EQ(driver_allocated_memory(fake), 4096u);
  EXPECT_EQ(recommended_max_memory(fake), 8192u);
  const int64_t set = counter("fake.fraction");
  set_per_process_memory_fraction(0.5, fake);
  EXPECT_EQ(counter("fake.fraction"), set + 1);
  for (const double bad : {-0.1, 2.5, static_cast<double>(NAN)})
    EXPECT_THAT(error_of([&] { set_per_process_memory_fraction(bad, fake); }),
                HasSubstr("Allowed range: 0~2"));
  EXPECT_EQ(counter("fake.fraction"), set + 1);
  EXPECT_THAT(error_of(
                  [&] {
                    empty({1 << 20, 1 << 12}, {DType::Float32, fake});
                  },
                  TB_E_OUT_OF_MEMORY),
              HasSubstr("too much"));
}

TEST_F(FakeDevice, EventsAndGenerators) {
  const Event start(fake, true), end(fake, true);
  EXPECT_FALSE(start.query());
  EXPECT_THAT(error_of([&] { start.elapsed_time(end); }, TB_E_STATE), HasSubstr("not recorded"));
  start.record();
  end.record();
  end.wait(current_stream(fake));
  EXPECT_TRUE(end.query());
  EXPECT_EQ(start.elapsed_time(end), 1);
  manual_seed(42);
  EXPECT_EQ(Generator::default_of(fake).seed(), 42u);
  EXPECT_EQ(Generator::default_of(Device("fake:1")).seed(), 42u);
  const Generator g(fake, 7);
  const Generator::State state = g.state();
  EXPECT_EQ(state[0], 7);
  EXPECT_THAT(error_of([&] { g.set_state(std::span(state).first(8)); }), HasSubstr("16 bytes"));
}

TEST_F(FakeDevice, SettingsReachTheBackend) {
  set_setting("OCLTENSOR_DEBUG_ALLOCATOR", "3");
  EXPECT_EQ(get_setting("OCLTENSOR_DEBUG_ALLOCATOR"), "3");
  set_setting("fake.knob", "17");
  EXPECT_EQ(counter("fake.knob"), 17);
  EXPECT_THAT(error_of([] { set_setting("OCLTENSOR_DEBUG_ALLOCATOR", "99"); }),
              HasSubstr("0 to 63"));
  EXPECT_THAT(error_of([] { set_setting("nobody.knows", "1"); }), HasSubstr("nobody.knows"));
  set_setting("OCLTENSOR_DEBUG_ALLOCATOR", "0");
}

// A backend need not know what the host and other backends can be told.
TEST_F(FakeDevice, ABackendWithoutSwitchesBreaksNoSetting) {
  ASSERT_EQ(load_plugin(FAKES_DIR "/fake_no_switches.so"), "fake_no_switches");
  set_setting("OCLTENSOR_ENABLE_FALLBACK", "1");
  EXPECT_EQ(get_setting("OCLTENSOR_ENABLE_FALLBACK"), "1");
  set_setting("OCLTENSOR_LOG_LEVEL", "error");
  EXPECT_EQ(get_setting("OCLTENSOR_LOG_LEVEL"), "error");
  set_setting("OCLTENSOR_LOG_LEVEL", "warning");
  set_setting("fake.knob", "18");
  EXPECT_EQ(counter("fake.knob"), 18);
  EXPECT_THAT(error_of([] { set_setting("nobody.knows", "1"); }), HasSubstr("nobody.knows"));
}

TEST_F(FakeDevice, OperatorsThatAreNotNearAreNotListed) {
  const std::string text = error_of([] { backends::disable_operations({"matmull"}); });
  EXPECT_THAT(text, HasSubstr("no operator of a loaded backend fits 'matmull'"));
  EXPECT_THAT(text, Not(HasSubstr("near")));
}

class PluginPath : public ::testing::Test {
 protected:
  void TearDown() override { set_setting("OCLTENSOR_PLUGIN_PATH", ""); }
};

TEST_F(PluginPath, EveryEntryIsLoaded) {
  set_setting("OCLTENSOR_PLUGIN_PATH", FAKES_DIR "/fake_no_switches.so:" FAKES_DIR "/fake.so");
  for (const char* type : {"fake", "fake_no_switches"})
    EXPECT_EQ(Device(type).text(), std::string(type) + ":0");
  const std::string text = error_of([] { Device("nothing"); }, TB_E_UNAVAILABLE);
  EXPECT_THAT(text, HasSubstr("no plugin for device type 'nothing' was found"));
  EXPECT_THAT(text, HasSubstr("fake_no_switches.so' is 'fake_no_switches'"));
}

TEST_F(PluginPath, ABadEntryIsAnErrorUntilItIsMended) {
  for (const char* bad : {"/nowhere/p.so", FAKES_DIR "/not_a_library.so", FAKES_DIR}) {
    set_setting("OCLTENSOR_PLUGIN_PATH", std::string(FAKES_DIR "/fake_larger.so:") + bad);
    EXPECT_FALSE(is_available("fake_larger"));
    const std::string text = error_of([] { Device("fake_larger"); }, TB_E_UNAVAILABLE);
    EXPECT_THAT(text, HasSubstr("OCLTENSOR_PLUGIN_PATH"));
    EXPECT_THAT(text, HasSubstr(bad));
    EXPECT_EQ(unavailable_reason("fake_larger"), text);
  }
  set_setting("OCLTENSOR_PLUGIN_PATH", FAKES_DIR "/fake_larger.so");
  EXPECT_EQ(Device("fake_larger").text(), "fake_larger:0");
}

}  // namespace
}  // namespace ocltensor
