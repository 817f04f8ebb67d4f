// Products by mma.sync with the matrix units in OpenCL C: the kernels' arithmetic of indices, their
// launches and the choice among them, without a device that has the units.
#include "nvidia_mma/matmul/product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/config.h"
#include "call/proof_numbers.h"
#include "nvidia_mma/provider.h"
#include "plugin/any_call.h"
#include "plugin/nvidia_mma/emulated_units.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

using matmul::Problem;
using testing::HasSubstr;
using testing::Not;

class MmaProducts : public EmulatedUnits {
 protected:
  void open(const char* emulated) {
    EmulatedUnits::open(emulated);
    call_.emplace();
  }
  const OpCall& call() { return **call_; }

  // Random numbers on the device and, as it holds them, on the host.
  struct Numbers {
    tb_address address;
    std::vector<float> host;
    float operator[](int64_t i) const { return host[static_cast<size_t>(i)]; }
  };
  Numbers draw(ProofNumbers& memory, int64_t count, DType type) {
    std::vector<float> list(static_cast<size_t>(count));
    for (float& x : list) x = normal_(random_);
    const tb_address address = memory.upload(list, type);
    return {address, memory.download(address, type, count)};
  }
  // Expects alpha * a b + beta * self in `got`, of which rows are `line` apart; `unit` is the
  // largest relative error of a factor and of the result.
  static void expect_near(const Problem& p, const Numbers& a, const Numbers& b, const Numbers& s,
                          const std::vector<float>& got, int64_t line, float room, double unit) {
    for (int64_t z = 0; z < p.batch; ++z)
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < line; ++j) {
          const float seen = got[static_cast<size_t>(z * p.c.batch + i * line + j)];
          if (j >= p.n) {
            ASSERT_EQ(seen, room) << "beyond the row " << i;
            continue;
          }
          double sum = 0, size = 0;
          for (int64_t k = 0; k < p.k; ++k) {
            const double product =
                static_cast<double>(a[z * p.a.batch + i * p.a.row + k * p.a.col]) *
                static_cast<double>(b[z * p.b.batch + k * p.b.row + j * p.b.col]);
            sum += product;
            size += std::abs(product);
          }
          double want = p.end.alpha.as_double() * sum;
          if (p.end.self) {
            const double self =
                s[z * p.end.self->batch + i * p.end.self->row + j * p.end.self->col];
            want += p.end.beta.as_double() * self;
            size += std::abs(self);
          }
          // Factors are rounded once each, the result once; float sums are far more accurate.
          ASSERT_NEAR(seen, want, 3 * unit * size + 1e-6)
              << "matrix " << z << ", element (" << i << ", " << j << ")";
        }
  }
  static double unit_of(MmaKind kind) {
    switch (kind) {
      case MmaKind::Half: return 0x1p-11;
      case MmaKind::BFloat: return 0x1p-8;
      case MmaKind::Tf32: return 0x1p-10;
      default: return 0x1p-22;
    }
  }

  std::mt19937 random_{1};
  std::normal_distribution<float> normal_;

 private:
  std::optional<AnyCall> call_;
};

// The check that runs before the first use on a driver passes: for every kind and tile, with one
// of the layouts and ends of each.
class MmaProofs : public MmaProducts {};

TEST_P(MmaProofs, EveryFormPasses) {
  open(GetParam());
  if (IsSkipped()) return;
  const int64_t gen = generation(call().caps());
  size_t count = 0;
  for (size_t kind = 0; kind < kMmaKinds; ++kind)
    for (size_t tile = 0; tile < kMmaTiles.size(); ++tile) {
      const size_t layout = (kind + tile + count) % 4;
      MmaProduct v{static_cast<MmaKind>(kind), tile, layout / 2 == 1, layout % 2 == 1,
                   count % 3 == 1};
      v.pieces = count % 3 == 2 ? 2 : 1;
      if (v.kind == MmaKind::Int8) v = {v.kind, tile, true, true, false, v.pieces};
      if (!takes_tile(v.kind, gen, v.form())) continue;
      EXPECT_EQ(wrong_mma_product(call(), &v), "") << kind << ", tile " << tile << ", " << layout;
      ++count;
    }
  EXPECT_EQ(count, gen < 80 ? 6u : 19u);
}

// The same of products of groups, whose parts are those of lines, or of whole steps along k.
TEST_P(MmaProofs, EveryFormOfGroupsPasses) {
  open(GetParam());
  if (IsSkipped()) return;
  using matmul::Parts;
  const int64_t gen = generation(call().caps());
  for (const MmaKind kind : {MmaKind::Half, MmaKind::BFloat, MmaKind::Tf32, MmaKind::Tf32x3})
    for (size_t tile = 0; tile < kMmaTiles.size(); ++tile)
      for (const Parts parts : {Parts::OfM, Parts::OfN, Parts::OfK}) {
        MmaProduct v{kind, tile, parts == Parts::OfM, parts == Parts::OfN, false, 1, parts};
        if (!takes_tile(kind, gen, v.form())) continue;
        if (v.guarded() && static_cast<size_t>(parts) % 3 != tile % 3) continue;  // three products
        EXPECT_EQ(wrong_mma_product(call(), &v), "")
            << static_cast<int>(kind) << ", tile " << tile << ", " << static_cast<int>(parts);
      }
}
INSTANTIATE_TEST_SUITE_P(Generations, MmaProofs, testing::Values("emulated75", "emulated80"));

// Random numbers, batches, broadcast operands, gaps, and sizes that end in the middle of
// everything.
TEST_F(MmaProducts, AreRightForAnyShapeAndLayout) {
  open("emulated80");
  if (IsSkipped()) return;
  struct Case {
    int64_t batch, m, n, k;
    bool a_along_k, b_along_k, a_repeats, odd, self;
    int64_t pieces;
  };
  const Case cases[] = {
      {1, 1, 1, 1, true, true, false, true, false, 1},
      {3, 17, 66, 33, true, false, false, false, true, 1},
      {2, 70, 9, 130, false, true, true, true, false, 1},
      {2, 5, 130, 260, false, false, false, false, true, 3},
      {1, 65, 65, 64, true, true, false, false, false, 1},
  };
  size_t turn = 0;
  for (const MmaKind kind : {MmaKind::Half, MmaKind::Tf32, MmaKind::Tf32x3})
    for (const Case& c : cases) {
      const size_t tile = 4 + turn++ % 2;  // 64 x 64 or 16 x 128
      MmaProduct v{kind, tile, true, true, c.self, c.pieces};
      const DType type = v.type();
      ProofNumbers memory(call());
      const auto lined = [&](int64_t n) { return c.odd ? n + 1 : divide_up(n, 8) * 8; };
      const int64_t a_line = lined(c.a_along_k ? c.k : c.m), a_lines = c.a_along_k ? c.m : c.k;
      const int64_t b_line = lined(c.b_along_k ? c.k : c.n), b_lines = c.b_along_k ? c.n : c.k;
      const Numbers a = draw(memory, c.batch * a_line * a_lines, type);
      const Numbers b = draw(memory, c.batch * b_line * b_lines, type);
      const Numbers s = draw(memory, c.batch * c.m * c.n, type);
      const int64_t line = c.n + 3;
      Problem p{type, c.batch, c.m, c.n, c.k, {}, {}, {}, {.alpha = 0.5}};
      p.a = {a.address, c.a_repeats ? 0 : a_line * a_lines, c.a_along_k ? a_line : 1,
             c.a_along_k ? 1 : a_line};
      p.b = {b.address, b_line * b_lines, c.b_along_k ? 1 : b_line, c.b_along_k ? b_line : 1};
      const auto count = static_cast<size_t>(c.batch * c.m * line);
      p.c = {memory.upload(std::vector<float>(count, 7), type), c.m * line, line, 1};
      if (c.self) {
        p.end.self = matmul::Matrix{s.address, c.m * c.n, 1, c.m};
        p.end.beta = -2;
      }
      v.a_along_k = c.a_along_k || !has_vector_lines(p, matmul::operand_a(p), false);
      v.b_along_k = c.b_along_k || !has_vector_lines(p, matmul::operand_b(p), false);
      v.guarded() ? run_tf32x3_product(call(), p, v) : run_product(call(), p, v);
      const std::vector<float> got =
          memory.download(p.c.address, type, static_cast<int64_t>(count));
      SCOPED_TRACE(fmt::format("kind {}, tile {}, {} x {} x {}", static_cast<int>(kind), tile, c.m,
                               c.n, c.k));
      expect_near(p, a, b, s, got, line, 7, unit_of(v.kind));
      if (HasFatalFailure()) return;
    }
}

// float32 by parts: numbers that cannot be split are multiplied as they are.
TEST_F(MmaProducts, NumbersBeyondTwoPartsAreMultipliedInPlainFloat) {
  open("emulated80");
  if (IsSkipped()) return;
  constexpr int64_t kM = 40, kN = 72, kK = 144;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float special : {1.0f, 0x1.fp-100f, 0x1p-110f, -0x1.8p64f, -kInf}) {
    ProofNumbers memory(call());
    Numbers a = draw(memory, kM * kK, DType::Float32);
    a.host[3 * kK + 5] = special;
    const tb_address a_at = memory.upload(a.host, DType::Float32);
    const Numbers b = draw(memory, kK * kN, DType::Float32);
    Problem p{DType::Float32, 1, kM, kN, kK, {a_at, 0, kK, 1}, {b.address, 0, kN, 1}, {}};
    p.c = {memory.upload(std::vector<float>(kM * kN, 7), DType::Float32), 0, kN, 1};
    const MmaProduct v{MmaKind::Tf32x3, 4, true, false, false};
    run_tf32x3_product(call(), p, v);
    const std::vector<float> got = memory.download(p.c.address, DType::Float32, kM * kN);
    for (int64_t j = 0; j < kN; ++j) {
      double want = 0, size = 0;
      for (int64_t k = 0; k < kK; ++k) {
        const double product =
            static_cast<double>(a[3 * kK + k]) * static_cast<double>(b[k * kN + j]);
        want += product;
        size += std::abs(product);
      }
      const float seen = got[static_cast<size_t>(3 * kN + j)];
      if (std::isinf(special)) {
        ASSERT_EQ(seen, static_cast<float>(want)) << j;
      } else {
        ASSERT_NEAR(seen, want, 0x1p-21 * size) << special << ", " << j;
      }
    }
  }
}

// Without the plain product behind it: right if the guard's word has another value, and nothing is
// written if it has this one.
TEST_F(MmaProducts, PartsAloneAreRightAndStopByTheirGuard) {
  open("emulated80");
  if (IsSkipped()) return;
  constexpr int64_t kM = 40, kN = 72, kK = 144;
  ProofNumbers memory(call());
  const Numbers a = draw(memory, kM * kK, DType::Float32);
  const Numbers b = draw(memory, kK * kN, DType::Float32);
  Problem p{DType::Float32, 1, kM, kN, kK, {a.address, 0, kK, 1}, {b.address, 0, kN, 1}, {}};
  const MmaProduct v{MmaKind::Tf32x3, 4, true, false, false};
  const uint32_t value = matmul::next_guard_value();
  for (const bool stops : {false, true}) {
    const matmul::Guard guard{
        memory.upload({std::bit_cast<float>(stops ? value : ~value)}, DType::Float32), value};
    p.c = {memory.upload(std::vector<float>(kM * kN, 7), DType::Float32), 0, kN, 1};
    enqueue_product(call(), p, v, operand_a(p), operand_b(p), guard);
    const std::vector<float> got = memory.download(p.c.address, DType::Float32, kM * kN);
    if (stops) {
      EXPECT_THAT(got, testing::Each(7.0f));
    } else {
      expect_near(p, a, b, {}, got, kN, 7, unit_of(v.kind));
    }
  }
}

// What ran for float16 and for float32, and the reasons that were printed.
TEST_F(MmaProducts, AreChosenByRule) {
  open("emulated80");
  if (IsSkipped()) return;
  config::set("OCLTENSOR_VERBOSE", "1");
  const auto multiply = [&](DType type, int64_t m, int64_t n, int64_t k) {
    const AnyCall any;  // as the settings are now
    ProofNumbers memory(*any);
    Problem p{type, 1, m, n, k, {}, {}, {}};
    p.a = {draw(memory, m * k, type).address, 0, k, 1};
    p.b = {draw(memory, k * n, type).address, 0, n, 1};
    p.c = {draw(memory, m * n, type).address, 0, n, 1};
    testing::internal::CaptureStderr();
    matmul::run_matmul(*any, p);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(multiply(DType::Float16, 64, 64, 64), HasSubstr("matmul.mma (by rule)"));
  EXPECT_THAT(multiply(DType::Float16, 4, 64, 64), HasSubstr("not matmul.mma: a few rows"));
  EXPECT_THAT(multiply(DType::BFloat16, 64, 64, 64), HasSubstr("matmul.mma (by rule)"));
  EXPECT_THAT(multiply(DType::Float32, 64, 64, 64), HasSubstr("matmul.mma: TF32 is not allowed"));
  EXPECT_THAT(multiply(DType::Float32, 640, 640, 512), HasSubstr("matmul.mma_tf32x3 (by rule)"));
  config::set("OCLTENSOR_ALLOW_TF32", "1");
  EXPECT_THAT(multiply(DType::Float32, 64, 64, 64), HasSubstr("matmul.mma (by rule)"));
  config::set("OCLTENSOR_DISABLED_PROVIDERS", "nvidia_mma");
  EXPECT_THAT(multiply(DType::Float16, 64, 64, 64), Not(HasSubstr("matmul.mma (by rule)")));
}

TEST_F(MmaProducts, WhereThereAreNoneTheProviderSaysWhy) {
  ASSERT_EQ(getenv("OCLTENSOR_NVIDIA_MMA"), nullptr);
  AnyCall any;
  if (nvidia::facts(device(0).caps()).mma_generation != 0)
    GTEST_SKIP() << "SKIPPED: the device has some";
  EXPECT_THAT(missing_provider(kNvidiaMma), HasSubstr("compute capability 7.5"));
}

TEST(MmaTiles, FillTheDeviceAndRespectItsMemory) {
  const auto choose = [](int64_t batch, int64_t m, int64_t n, int64_t k, int64_t local,
                         int64_t pieces = kMostPieces) {
    const MmaKind kind = MmaKind::Half;
    return choose_mma_tiles({batch, m, n, k, 132, kind, usable_tiles(kind, 80, local), pieces});
  };
  constexpr int64_t kCommon = 48 << 10, kMuch = 162 << 10;
  EXPECT_EQ(choose(1, 4096, 4096, 4096, kMuch), (MmaTiles{0, 1}));
  EXPECT_EQ(choose(1, 4096, 4096, 4096, kCommon), (MmaTiles{1, 1}));
  EXPECT_EQ(kMmaTiles[choose(1, 16, 4096, 4096, kCommon).tile].rows, 16);
  EXPECT_EQ(kMmaTiles[choose(1, 512, 512, 512, kCommon).tile].rows, 64);
  EXPECT_GT(choose(1, 64, 64, 65536, kCommon).pieces, 16);
  EXPECT_EQ(choose(1, 64, 64, 65536, kCommon, 1).pieces, 1);
  EXPECT_EQ(choose(512, 64, 64, 64, kCommon), (MmaTiles{4, 1}));
}

// The driver adds 128 bytes to what a kernel declares.
TEST(MmaTiles, HaveLessThanTheReportedMemoryUnlessUnitsAreKnownToHaveMore) {
  Capabilities caps;
  caps.local_memory = 48 << 10;
  caps.unit_local_memory = 228 << 10;
  caps.facts.set(nvidia::DeviceFacts{.compute_capability = 75});
  EXPECT_EQ(most_local_memory(caps), (48 << 10) - 128);
  caps.facts.set(nvidia::DeviceFacts{.compute_capability = 90});
  EXPECT_EQ(most_local_memory(caps), 226 << 10);
  caps.is_capped = true;  // by float64, say
  EXPECT_EQ(most_local_memory(caps), 226 << 10);
  caps.local_memory_capped = true;
  EXPECT_EQ(most_local_memory(caps), (48 << 10) - 128);
}

// Every form of the kernel has at most the registers and the local memory that a generation has.
TEST(MmaTiles, EveryGenerationHasSome) {
  for (const int64_t gen : {75, 80, 90})
    for (size_t k = 0; k < kMmaKinds; ++k) {
      const auto kind = static_cast<MmaKind>(k);
      if (gen < 80 && kind != MmaKind::Half && kind != MmaKind::Int8) {
        EXPECT_EQ(usable_tiles(kind, gen, 1 << 20), 0u);
        continue;
      }
      const uint32_t common = usable_tiles(kind, gen, 48 << 10);
      EXPECT_GE(std::popcount(common), 3) << gen << ", " << k;
      EXPECT_EQ(usable_tiles(kind, gen, 1 << 20) & common, common);
      EXPECT_EQ(usable_tiles(kind, gen, 1 << 10), 0u);
    }
}

}  // namespace
}  // namespace ocltensor::opencl::nvidia_mma
