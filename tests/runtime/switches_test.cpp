// Every switch of the C++ front door by what it does, on the default device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <cstring>
#include <functional>
#include <thread>

namespace ot = ocltensor;
namespace switches = ocltensor::backends;
using testing::Contains;
using testing::ContainsRegex;
using testing::Each;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

namespace {

std::string error_of(const std::function<void()>& body, tb_status status = TB_E_INVALID) {
  try {
    body();
  } catch (const ot::Error& e) {
    EXPECT_EQ(e.status(), status) << e.what();
    return e.what();
  }
  return "no error";
}

ot::Tensor ramp(std::initializer_list<int64_t> sizes, float step,
                ot::DType type = ot::DType::Float32) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(step * static_cast<float>((i * 7919) % 101 - 50));
  return ot::tensor(values, sizes).to(type).to(ot::Device("ocl"));
}

std::vector<float> product(const ot::Tensor& a, const ot::Tensor& b) {
  return ot::mm(a, b).to_vector<float>();
}

std::vector<float> convolved(int64_t window) {
  return ot::convolution(ramp({2, 3, 9, 9}, 0.1f), ramp({4, 3, window, window}, 0.2f), std::nullopt,
                         {1, 1}, {0, 0}, {1, 1}, false, {0, 0}, 1)
      .to_vector<float>();
}

void expect_near(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-3f) << i;
}

std::string printed(const std::function<void()>& body) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

// By the device's name: the provider's own word is under test.
bool has_matrix_units() {
  const std::string name = ot::device_properties(ot::Device("ocl")).name;
  return name.find("H100") != std::string::npos || name.find("H200") != std::string::npos;
}

class Switches : public testing::Test {
 protected:
  const ot::Tensor a = ramp({48, 64}, 0.1f);
  const ot::Tensor b = ramp({64, 40}, 0.05f);

 private:
  // By rule means by rule here, whatever was measured on this machine; and what is measured here,
  // on a busy machine, is not for others.
  const switches::SettingScope nothing_kept_{{"OCLTENSOR_KEEP_MEASUREMENTS", "0"}};
};

TEST_F(Switches, ADisabledOperatorIsDeclinedOrFallsBack) {
  const std::vector<float> wanted = ot::add(a, 1).to_vector<float>();
  {
    const auto scope = switches::operations_disabled({"add", "linalg_*"});
    EXPECT_THAT(switches::disabled_operations(), Contains("add.out"));
    EXPECT_THAT(error_of([&] { ot::add(a, 1); }, TB_UNSUPPORTED),
                HasSubstr("add.out is disabled (OCLTENSOR_DISABLED_OPERATIONS)"));
    EXPECT_NO_THROW(ot::mul(a, 2));
    ot::reset_fallback_counts();
    const switches::SettingScope fallback{{"OCLTENSOR_ENABLE_FALLBACK", "1"}};
    EXPECT_EQ(ot::add(a, 1).to_vector<float>(), wanted);
    ASSERT_EQ(ot::fallback_counts().size(), 1u);
    EXPECT_EQ(ot::fallback_counts()[0].name, "add.out");
  }
  EXPECT_THAT(switches::disabled_operations(), IsEmpty());
  EXPECT_EQ(ot::add(a, 1).to_vector<float>(), wanted);
  EXPECT_EQ(ot::get_setting("OCLTENSOR_ENABLE_FALLBACK"), "0");
}

TEST_F(Switches, OperationsAreEnabledOneByOne) {
  switches::disable_operations({"add*", "mul"});
  EXPECT_THAT(switches::disabled_operations(), Contains("addmm.out"));
  switches::enable_operations({"addmm"});
  EXPECT_THAT(switches::disabled_operations(), Not(Contains("addmm.out")));
  EXPECT_THAT(error_of([&] { ot::mul(a, 2); }, TB_UNSUPPORTED), HasSubstr("disabled"));
  switches::enable_operations({"*"});
  EXPECT_THAT(switches::disabled_operations(), IsEmpty());
  EXPECT_NO_THROW(ot::mul(a, 2));
  EXPECT_THAT(error_of([] { switches::disable_operations({"ad"}); }), HasSubstr("add.out"));
  EXPECT_THAT(error_of([] { ot::set_setting("OCLTENSOR_DISABLED_OPERATIONS", "sofmax"); }),
              HasSubstr("softmax"));
  EXPECT_THAT(error_of([] { switches::disable_operations({"copy"}); }), HasSubstr("fallback"));
  EXPECT_EQ(ot::get_setting("OCLTENSOR_DISABLED_OPERATIONS"), "");
}

TEST_F(Switches, WithoutTunedKernelsTheGeneralOnesRun) {
  const std::vector<float> wanted = product(a, b);
  EXPECT_THAT(switches::last_choice("matmul"), Not(StartsWith("matmul.general")));
  const std::vector<float> wanted_map = convolved(3);
  EXPECT_NE(switches::last_choice("conv"), "conv.general");
  const auto scope = switches::flags({.enabled = false});
  expect_near(product(a, b), wanted);
  EXPECT_THAT(switches::last_choice("matmul"), StartsWith("matmul.general"));
  expect_near(convolved(3), wanted_map);
  EXPECT_EQ(switches::last_choice("conv"), "conv.general");
}

TEST_F(Switches, TheNextAlgorithmRunsWhenOneIsDisabled) {
  const std::vector<float> wanted = product(a, b);
  const std::string first = switches::last_choice("matmul");
  const auto scope = switches::algorithms_disabled({first});
  expect_near(product(a, b), wanted);
  const std::string second = switches::last_choice("matmul");
  EXPECT_NE(second, first);
  for (const switches::Algorithm& each : switches::algorithms())
    EXPECT_EQ(each.disabled, each.id == first) << each.id;
  if (!second.starts_with("matmul.general")) {
    const auto inner = switches::algorithms_disabled({second});
    expect_near(product(a, b), wanted);
    EXPECT_THAT((std::vector<std::string>{first, second}),
                Not(Contains(switches::last_choice("matmul"))));
  }
  const auto all = switches::algorithms_disabled({"matmul.*"});
  expect_near(product(a, b), wanted);
  EXPECT_THAT(switches::last_choice("matmul"), StartsWith("matmul.general"));
  EXPECT_THAT(error_of([] { (void)switches::algorithms_disabled({"matmul.pack"}); }),
              HasSubstr("matmul.packed"));
}

TEST_F(Switches, BenchmarkMeasuresOnceAndObeysItsLimit) {
  switches::forget_measurements();
  const std::vector<float> wanted = product(a, b);
  EXPECT_THAT(switches::measurements(), IsEmpty());
  const auto scope = switches::flags({.benchmark = true});
  expect_near(product(a, b), wanted);
  const auto measured = switches::measurements();
  ASSERT_GE(measured.size(), 2u);
  EXPECT_THAT(measured, Each(Field(&switches::Measurement::microseconds, testing::Gt(0))));
  std::string best;
  for (const auto& m : measured) {
    EXPECT_THAT(m.problem, HasSubstr("matmul float32 1x48x40x64"));
    if (m.best) best = m.id;
  }
  EXPECT_EQ(switches::last_choice("matmul"), best);
  const auto runs = [&](const std::string& id) {
    for (const switches::Algorithm& each : switches::algorithms())
      if (each.id == id) return each.runs;
    return uint64_t{0};
  };
  const uint64_t before = runs(best);
  expect_near(product(a, b), wanted);
  EXPECT_EQ(runs(best), before + 1);
  EXPECT_EQ(switches::measurements().size(), measured.size());
  // In place, with the output among the inputs: measuring must not change it.
  ot::Tensor c = ramp({48, 40}, 1);
  const ot::Tensor copy = ot::mul(c, 1);
  ot::addmm_out(c, c, a, b);
  expect_near(c.to_vector<float>(), ot::add(copy, ot::mm(a, b)).to_vector<float>());
  switches::forget_measurements();
  {
    const auto limit = switches::flags({.benchmark_limit = 1});
    (void)product(a, b);
    EXPECT_THAT(switches::measurements(), IsEmpty());
  }
  expect_near(convolved(3), convolved(3));
  expect_near(convolved(1), convolved(1));
  switches::forget_measurements();
}

TEST_F(Switches, ImmediateAndDeterministicDoNotMeasure) {
  switches::forget_measurements();
  (void)product(a, b);
  const std::string by_rule = switches::last_choice("matmul");
  const auto benchmark = switches::flags({.benchmark = true});
  for (const switches::Flags& flags :
       {switches::Flags{.immediate = true}, switches::Flags{.deterministic = true}}) {
    const auto scope = switches::flags(flags);
    (void)product(a, b);
    EXPECT_THAT(switches::measurements(), IsEmpty());
    EXPECT_EQ(switches::last_choice("matmul"), by_rule);
  }
  EXPECT_THAT(printed([&] {
                const auto quiet = switches::flags({.immediate = true});
                const auto scope = switches::verbose(1);
                (void)product(a, b);
              }),
              HasSubstr("by rule: immediate"));
}

TEST_F(Switches, VerbosePrintsChoicesWithReasons) {
  const std::string text = printed([&] {
    const auto scope = switches::verbose(1);
    (void)product(a, b);
    (void)ot::add(a, 1);
  });
  EXPECT_THAT(text, HasSubstr("matmul float32 1 x 48 x 40 x 64 on ocl:0: " +
                              switches::last_choice("matmul") + " (by rule)"));
  EXPECT_THAT(text, HasSubstr("not matmul.skinny: "));
  EXPECT_THAT(text,
              HasSubstr(has_matrix_units() ? "matmul.hopper (by rule)"
                                           : "not matmul.hopper: the device has no matrix units"));
  EXPECT_THAT(text, Not(HasSubstr("tf32 allowed")));
  EXPECT_THAT(text, Not(HasSubstr("operator add.out")));
  EXPECT_THAT(printed([&] {
                const auto scope = switches::verbose(2);
                (void)ot::add(a, 1);
              }),
              HasSubstr("operator add.out on ocl:0"));
  EXPECT_EQ(printed([&] { (void)product(a, b); }), "");
}

TEST_F(Switches, PermissionsArePrinted) {
  const auto scope = switches::verbose(1);
  const auto tf32 = switches::flags({.allow_tf32 = true});
  EXPECT_THAT(printed([&] { (void)product(a, b); }),
              HasSubstr(has_matrix_units() ? "matmul.hopper (by rule)" : "tf32 allowed"));
  const switches::SettingScope prefer{{"OCLTENSOR_PREFER_OPENCL", "1"}};
  EXPECT_THAT(printed([&] { (void)product(a, b); }),
              HasSubstr("not matmul.hopper: portable kernels are preferred"));
}

TEST_F(Switches, ReducedPrecisionPermitsSplitSums) {
  for (const ot::DType type : {ot::DType::Float16, ot::DType::BFloat16}) {
    const ot::Tensor x = ramp({1, 40000}, 0.01f, type);
    const auto run = [&] {
      (void)ot::mm(x, x.t());
      return switches::last_choice("matmul");
    };
    const auto with = [&](switches::SixteenBit how) {
      return type == ot::DType::Float16 ? switches::Flags{.fp16 = how}
                                        : switches::Flags{.bf16 = how};
    };
    EXPECT_THAT(run(), Not(StartsWith("matmul.split_k")));
    const auto reduced = switches::flags(with({.reduced = true, .split = true}));
    // GPUs keep partial sums of a few rows in float, and need no permission for that.
    const bool gpu = ot::get_setting("OCLTENSOR_KERNEL_STYLE") == "gpu" || has_matrix_units();
    EXPECT_EQ(run(), gpu ? "matmul.dots" : "matmul.split_k_cpu");
    const auto whole = switches::flags(with({.reduced = true, .split = false}));
    EXPECT_THAT(run(), Not(StartsWith("matmul.split_k")));
    EXPECT_THAT(printed([&] {
                  const auto scope = switches::verbose(1);
                  (void)run();
                }),
                HasSubstr("split-K is not allowed"));
  }
}

TEST_F(Switches, DeterministicPutsInOrderAndRepeatsBits) {
  const int64_t count = 20000;
  std::vector<int64_t> where;
  std::vector<float> values;
  std::vector<float> wanted(7, 0);
  for (int64_t i = 0; i < count; ++i) {
    where.push_back(i * i % 7);
    values.push_back(static_cast<float>(i) + 0.5f);
    wanted[static_cast<size_t>(where.back())] = values.back();
  }
  const ot::Tensor index = ot::tensor(where, {count}).to(ot::Device("ocl"));
  const ot::Tensor source = ot::tensor(values, {count}).to(ot::Device("ocl"));
  const ot::Tensor zeros = ot::zeros({7}, {ot::DType::Float32, "ocl"});
  const auto scope = switches::flags({.deterministic = true});
  for (int run = 0; run < 3; ++run) {
    EXPECT_EQ(ot::index_put(zeros, {index}, source).to_vector<float>(), wanted);
    EXPECT_EQ(switches::last_choice("index_put"), "index_put.ordered");
  }
  const auto sums = ot::index_add(zeros, 0, index, source).to_vector<float>();
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(ot::index_add(zeros, 0, index, source).to_vector<float>(), sums);
}

// Whole numbers, so that sums are exact in any order. GPU-style kernels cut such sums into pieces:
// tiles in eight of 1128 on a device of two units, without those four of 2250 and a rest of 1.
TEST_F(Switches, LongSumsOfFewResultsAreRightInPieces) {
  constexpr int64_t kM = 36, kN = 40, kK = 9001;
  const ot::Tensor x = ramp({kM, kK}, 1), y = ramp({kK, kN}, 1);
  const std::vector<float> xs = x.to_vector<float>(), ys = y.to_vector<float>();
  std::vector<float> wanted;
  for (int64_t m = 0; m < kM; ++m)
    for (int64_t n = 0; n < kN; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < kK; ++k)
        sum += static_cast<double>(xs[static_cast<size_t>(m * kK + k)]) *
               ys[static_cast<size_t>(k * kN + n)];
      wanted.push_back(static_cast<float>(sum));
    }
  const bool gpu = ot::get_setting("OCLTENSOR_KERNEL_STYLE") == "gpu";
  for (const char* off : {"", "matmul.tiles_in_pieces"}) {
    const switches::SettingScope setting{{"OCLTENSOR_DISABLED_ALGORITHMS", off}};
    std::vector<float> got;
    const std::string choices = printed([&] {
      const auto scope = switches::verbose(1);
      got = product(x, y);
    });
    EXPECT_EQ(got, wanted);
    const std::string chosen = *off == '\0' ? "matmul.tiles_in_pieces" : "matmul.split_k_gpu";
    if (gpu) {
      EXPECT_THAT(choices, ContainsRegex(chosen + " \\(by rule\\)"));
    }
  }
}

// With GPU-style kernels (see CMakeLists.txt) only: others put in order in any case.
TEST_F(Switches, WithoutItGpusPutInAnyOrder) {
  const auto style = ot::get_setting("OCLTENSOR_KERNEL_STYLE");
  if (style != "gpu") GTEST_SKIP() << "SKIPPED: needs OCLTENSOR_KERNEL_STYLE=gpu";
  const ot::Tensor index = ot::tensor(std::vector<int64_t>{1, 0}, {2}).to(ot::Device("ocl"));
  const ot::Tensor zeros = ot::zeros({2}, {ot::DType::Float32, "ocl"});
  (void)ot::index_put(zeros, {index}, zeros);
  EXPECT_EQ(switches::last_choice("index_put"), "index_put.unordered");
}

// Both layouts of the second factor, several blocks of k, edges of tiles, with a sum to add to.
TEST_F(Switches, Bf16ProductsTakePairsWhereTheProcessorHasThem) {
  const auto providers = switches::providers();
  const auto pairs = std::ranges::find(providers, "x86_avx512", &switches::Provider::name);
  ASSERT_NE(pairs, providers.end());
  const bool has_pairs = pairs->available && ot::get_setting("OCLTENSOR_KERNEL_STYLE") != "gpu";
  constexpr int64_t kM = 45, kN = 70, kK = 1031;
  const auto drawn = [](int64_t rows, int64_t columns) {  // whole numbers, exact in bf16
    return ot::randint(-1, 2, {rows, columns}).to(ot::DType::Float32);
  };
  const ot::Tensor a = drawn(kM, kK), b = drawn(kK, kN), s = drawn(kM, kN);
  const auto on_device = [](const ot::Tensor& t) {
    return t.to(ot::DType::BFloat16).to(ot::Device("ocl"));
  };
  const auto want = ot::addmm(s, a, b).to(ot::DType::BFloat16).to_vector<float>();
  for (const bool turned : {false, true}) {
    const ot::Tensor right = turned ? on_device(b.t().contiguous()).t() : on_device(b);
    EXPECT_EQ(ot::addmm(on_device(s), on_device(a), right).to_vector<float>(), want);
    EXPECT_EQ(switches::last_choice("matmul") == "matmul.bf16_pairs", has_pairs);
  }
}

TEST_F(Switches, ProvidersSayWhatTheyAre) {
  std::vector<std::string> names;
  for (const switches::Provider& p : switches::providers()) {
    names.push_back(p.name);
    if (p.name != "lapack" && p.name != "x86_avx512") {  // they depend on what the machine has
      EXPECT_EQ(p.available,
                p.name == "portable" || (p.name == "nvidia_hopper" && has_matrix_units()));
    }
    EXPECT_EQ(p.missing.empty(), p.available);
    EXPECT_EQ(p.version.empty(), !p.available);
    EXPECT_EQ(switches::provider_operations(p.name).empty(), !p.available);
  }
  EXPECT_THAT(names, ElementsAre("nvidia_hopper", "nvidia_mma", "amd_mfma", "amd_wmma", "intel_xmx",
                                 "amd_dot", "x86_avx512", "lapack", "portable"));
  EXPECT_THAT(switches::provider_operations("portable"), Contains("_fft_c2c.out"));
  switches::set_provider_enabled("portable", false);
  EXPECT_THAT(error_of([&] { ot::add(a, 1); }, TB_UNSUPPORTED),
              HasSubstr("the kernel provider 'portable' is disabled"));
  switches::set_provider_enabled("portable", true);
  EXPECT_NO_THROW(ot::add(a, 1));
  EXPECT_THAT(error_of([] { switches::set_provider_enabled("mkl", false); }), HasSubstr("mkl"));
  EXPECT_THAT(error_of([] { ot::set_setting("OCLTENSOR_DISABLED_PROVIDERS", "mkl"); }),
              HasSubstr("mkl"));
}

TEST_F(Switches, ScopesNestRestoreAndEndInAnyOrder) {
  const auto limit = [] { return *switches::get_flags().benchmark_limit; };
  EXPECT_EQ(limit(), 10);
  auto first = std::make_unique<switches::SettingScope>(switches::flags({.benchmark_limit = 3}));
  auto second = std::make_unique<switches::SettingScope>(switches::flags({.benchmark_limit = 4}));
  EXPECT_EQ(limit(), 4);
  switches::set_flags({.benchmark_limit = 5});  // as long as the second
  first.reset();
  EXPECT_EQ(limit(), 5);
  second.reset();
  EXPECT_EQ(limit(), 10);
  EXPECT_THROW(
      {
        const auto scope = switches::flags({.benchmark_limit = 6});
        EXPECT_EQ(limit(), 6);
        throw std::runtime_error("out of the scope");
      },
      std::runtime_error);
  EXPECT_EQ(limit(), 10);
  EXPECT_THAT(
      error_of([] { (void)switches::flags({.deterministic = true, .benchmark_limit = 5000}); }),
      HasSubstr("OCLTENSOR_BENCHMARK_LIMIT='5000'"));
  EXPECT_FALSE(*switches::get_flags().deterministic);
}

TEST_F(Switches, ThreadsEnterAndLeaveWhileOthersRun) {
  const std::vector<float> wanted = product(a, b);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto scope = switches::flags({.enabled = i % 2 == 0, .benchmark_limit = t});
        const auto inner = switches::operations_disabled({t % 2 == 0 ? "sin" : "cos"});
        expect_near(product(a, b), wanted);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(*switches::get_flags().enabled);
  EXPECT_EQ(*switches::get_flags().benchmark_limit, 10);
  EXPECT_THAT(switches::disabled_operations(), IsEmpty());
}

}  // namespace
