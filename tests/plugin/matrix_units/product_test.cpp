// Products on AMD's and Intel's matrix units with the units in OpenCL C: the kernel's arithmetic of
// indices for every form, its launches and the choice of it, without a device that has the units.
#include "matrix_units/matmul/product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>

#include "call/proof_numbers.h"
#include "kernel_sources.h"
#include "ops/matmul/operand.h"
#include "plugin/any_call.h"
#include "plugin/matrix_units/emulated_unit.h"

namespace ocltensor::opencl::matrix_units {
namespace {

using matmul::Problem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr float kRoom = 7;
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Case {
  int64_t batch, m, n, k;
  bool a_along_k, b_along_k;
  bool odd;        // lines that do not begin at multiples of 16 bytes
  bool a_repeats;  // for every matrix of the batch
  bool self;
  int64_t pieces;
  bool float_result;
};
constexpr Case kCases[] = {
    {1, 1, 1, 1, true, true, true, false, false, 1, false},
    {3, 17, 66, 33, true, false, false, false, true, 1, false},
    {2, 70, 9, 130, false, true, true, true, false, 1, true},
    {2, 5, 130, 260, false, false, false, false, true, 3, false},
    {1, 130, 135, 65, true, true, false, false, true, 1, true},
    {1, 33, 140, 77, false, false, false, false, false, 1, false},
};

class UnitProducts : public EmulatedUnit {
 protected:
  void open(const char* emulated) {
    EmulatedUnit::open(emulated);
    call_.emplace();
  }
  const OpCall& call() { return **call_; }
  const Architecture& architecture() { return *facts(call().caps()).architecture; }

  // Random numbers on the device and, as it holds them, on the host.
  struct Numbers {
    tb_address address;
    std::vector<float> host;
    double operator[](int64_t i) const { return host[static_cast<size_t>(i)]; }
  };
  Numbers upload(ProofNumbers& memory, const std::vector<float>& list, DType type) {
    const tb_address address = memory.upload(list, type);
    return {address, memory.download(address, type, static_cast<int64_t>(list.size()))};
  }
  Numbers draw(ProofNumbers& memory, int64_t count, DType type) {
    std::vector<float> list(static_cast<size_t>(count));
    std::uniform_int_distribution<int> byte(-128, 127);
    for (float& x : list)
      x = type == DType::Int8 ? static_cast<float>(byte(random_)) : normal_(random_);
    return upload(memory, list, type);
  }
  // The largest relative error of a result's rounding; sums of floats are far more accurate.
  static double unit_of(DType type) {
    switch (type) {
      case DType::Float16: return 0x1p-11;
      case DType::BFloat16: return 0x1p-8;
      case DType::Int32: return 0;
      default: return 0x1p-19;  // a few hundred terms
    }
  }

  // A product by one specialisation, with room behind each row of the result.
  void expect_right(const Case& c, Product v) {
    const DType type = type_of(v.kind);
    const bool is_int8 = v.kind == Kind::Int8;
    v.float_result = c.float_result && !is_int8, v.float_self = v.float_result;
    v.self = c.self && !is_int8, v.pieces = c.pieces;
    const DType result = is_int8 ? DType::Int32 : v.float_result ? DType::Float32 : type;
    const DType of_self = v.float_self ? DType::Float32 : type;
    ProofNumbers memory(call());
    const int64_t vector = 16 / size_of(type);
    const auto lined = [&](int64_t n) { return c.odd ? n + 1 : divide_up(n, vector) * vector; };
    const int64_t a_line = lined(c.a_along_k ? c.k : c.m), a_lines = c.a_along_k ? c.m : c.k;
    const int64_t b_line = lined(c.b_along_k ? c.k : c.n), b_lines = c.b_along_k ? c.n : c.k;
    const Numbers a = draw(memory, c.batch * a_line * a_lines, type);
    const Numbers b = draw(memory, c.batch * b_line * b_lines, type);
    const Numbers s = draw(memory, c.batch * c.m * c.n, of_self);
    const int64_t line = c.n + 3;
    Problem p{{type, type, result, of_self}, c.batch, c.m, c.n, c.k, {}, {}, {}, {}};
    if (!is_int8) p.end.alpha = 0.5;
    p.a = {a.address, c.a_repeats ? 0 : a_line * a_lines, c.a_along_k ? a_line : 1,
           c.a_along_k ? 1 : a_line};
    p.b = {b.address, b_line * b_lines, c.b_along_k ? 1 : b_line, c.b_along_k ? b_line : 1};
    const int64_t count = c.batch * c.m * line;
    const std::vector<float> room(static_cast<size_t>(count), kRoom);
    p.c = {memory.upload(room, result), c.m * line, line, 1};
    if (v.self) {
      p.end.self = matmul::Matrix{s.address, c.m * c.n, 1, c.m};
      p.end.beta = -2;
    }
    v.a_along_k = c.a_along_k || !matmul::has_vector_lines(p, matmul::operand_a(p), false);
    v.b_along_k = c.b_along_k || !matmul::has_vector_lines(p, matmul::operand_b(p), false);
    run_product(call(), p, v);
    const std::vector<float> got = memory.download(p.c.address, result, count);
    compare(p, a, b, s, got, line, unit_of(result));
  }

 private:
  static void compare(const Problem& p, const Numbers& a, const Numbers& b, const Numbers& s,
                      const std::vector<float>& got, int64_t line, double unit) {
    for (int64_t at = 0; at < static_cast<int64_t>(got.size()); ++at) {
      const int64_t z = at / (p.m * line), i = at / line % p.m, j = at % line;
      const float seen = got[static_cast<size_t>(at)];
      if (j >= p.n) {
        ASSERT_EQ(seen, kRoom) << "beyond row " << i;
        continue;
      }
      double sum = 0, size = 0;
      for (int64_t k = 0; k < p.k; ++k) {
        const double product = a[z * p.a.batch + i * p.a.row + k * p.a.col] *
                               b[z * p.b.batch + k * p.b.row + j * p.b.col];
        sum += product;
        size += std::abs(product);
      }
      double want = p.end.alpha.as_double() * sum;
      if (p.end.self) {
        const double self = s[z * p.end.self->batch + i * p.end.self->row + j * p.end.self->col];
        want += p.end.beta.as_double() * self;
        size += std::abs(self);
      }
      // int8: 24 bits are exact in what download() returns.
      if (unit == 0) want = static_cast<float>(want);
      ASSERT_NEAR(seen, want, unit == 0 ? 0 : 2 * unit * size + 1e-6)
          << "matrix " << z << ", element (" << i << ", " << j << ")";
    }
  }

  std::mt19937 random_{1};
  std::normal_distribution<float> normal_;
  std::optional<AnyCall> call_;
};

// Others have the same kernels but for the built-ins.
constexpr const char* kEach[] = {"emulated:gfx906",  "emulated:gfx942", "emulated:gfx1100",
                                 "emulated:gfx1200", "emulated:xmx8",   "emulated:xmx16"};
std::string name_of(const testing::TestParamInfo<const char*>& info) {
  return std::string(info.param).substr(std::string_view("emulated:").size());
}

// The check that runs before the first use on a driver passes: for every kind and form, with some
// of the layouts, ends and types of each; all of them over kinds and forms.
TEST_P(UnitProducts, EveryFormPassesItsProof) {
  open(GetParam());
  if (IsSkipped()) return;
  std::minstd_rand random(7);
  const auto any_of = [&random](size_t n) { return random() / 7 % n; };
  for (size_t kind = 0; kind < kKinds; ++kind)
    for (size_t form = 0; form < forms(architecture()).size(); ++form) {
      if (!has(architecture().kinds, static_cast<Kind>(kind))) continue;
      const size_t layout = any_of(4), end = any_of(3);
      Product v{static_cast<Kind>(kind), form, layout / 2 == 1, layout % 2 == 1, end == 1};
      v.pieces = end == 2 ? 2 : 1;
      const bool is_short = v.kind == Kind::Half || v.kind == Kind::BFloat;
      v.float_result = is_short && any_of(2) == 1, v.float_self = v.float_result && v.self;
      if (v.kind == Kind::Int8) v.self = false;
      EXPECT_EQ(wrong_product(call(), &v), "")
          << kind << ", form " << form << ", " << layout << ", end " << end;
    }
}

// Random numbers, batches, broadcast operands, gaps, and sizes that end in the middle of
// everything, for every kind in one of the forms.
TEST_P(UnitProducts, AreRightForAnyShapeAndLayout) {
  open(GetParam());
  if (IsSkipped()) return;
  size_t turn = 0;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    if (!has(architecture().kinds, static_cast<Kind>(kind))) continue;
    for (const Case& c : kCases) {
      const size_t form = (turn++ + kind) % forms(architecture()).size();
      SCOPED_TRACE(fmt::format("kind {}, form {}, {} x {} x {}", kind, form, c.m, c.n, c.k));
      expect_right(c, {static_cast<Kind>(kind), form, true, true, false});
      if (HasFatalFailure()) return;
    }
  }
}

// Infinities and NaN reach the results of their row or column, and no others.
TEST_P(UnitProducts, NumbersThatAreNotFiniteStayInTheirRow) {
  open(GetParam());
  if (IsSkipped()) return;
  constexpr int64_t kM = 37, kN = 72, kK = 45, kLine = 48;
  for (const Kind kind : {Kind::Half, Kind::BFloat, Kind::Float}) {
    if (!has(architecture().kinds, kind)) continue;
    const DType type = type_of(kind);
    ProofNumbers memory(call());
    Numbers a = draw(memory, kM * kLine, type);
    a.host[3 * kLine + 44] = kInf, a.host[36 * kLine] = std::nanf("");
    a = upload(memory, a.host, type);
    const Numbers b = draw(memory, kK * kN, type);
    Problem p{type, 1, kM, kN, kK, {a.address, 0, kLine, 1}, {b.address, 0, kN, 1}, {}};
    p.c = {memory.upload(std::vector<float>(kM * kN, kRoom), type), 0, kN, 1};
    run_product(call(), p, {kind, 1, true, false, false});
    const std::vector<float> got = memory.download(p.c.address, type, kM * kN);
    for (int64_t i = 0; i < kM; ++i)
      for (int64_t j = 0; j < kN; ++j) {
        const float seen = got[static_cast<size_t>(i * kN + j)];
        if (i == 3) {
          const double right = b[44 * kN + j];
          ASSERT_EQ(seen, static_cast<float>(right < 0 ? -kInf : kInf)) << j;
        } else {
          ASSERT_EQ(std::isnan(seen), i == 36) << i << ", " << j;
        }
      }
  }
}
INSTANTIATE_TEST_SUITE_P(Of, UnitProducts, testing::ValuesIn(kEach), name_of);

std::string printed_choice(DType type, int64_t m, int64_t n, int64_t k) {
  const AnyCall any;  // as the settings are now
  ProofNumbers memory(*any);
  const auto matrix = [&](int64_t rows, int64_t columns) {
    return matmul::Matrix{memory.upload(memory.draw(rows * columns, 1), type), 0, columns, 1};
  };
  Problem p{type, 1, m, n, k, matrix(m, k), matrix(k, n), matrix(m, n)};
  if (type == DType::Int8) {
    p.types = {type, type, DType::Int32, DType::Int32};
    p.c.address = memory.upload(memory.draw(m * n, 1), DType::Int32);
  }
  testing::internal::CaptureStderr();
  matmul::run_matmul(*any, p);
  return testing::internal::GetCapturedStderr();
}

using UnitChoice = UnitProducts;

TEST_F(UnitChoice, IsMadeByRule) {
  open("emulated:gfx1100");
  if (IsSkipped()) return;
  config::set("OCLTENSOR_VERBOSE", "1");
  EXPECT_THAT(printed_choice(DType::Float16, 64, 64, 64), HasSubstr("matmul.amd_wmma (by rule)"));
  EXPECT_THAT(printed_choice(DType::BFloat16, 64, 64, 64), HasSubstr("matmul.amd_wmma (by rule)"));
  EXPECT_THAT(printed_choice(DType::Int8, 64, 64, 64), HasSubstr("matmul.amd_wmma (by rule)"));
  EXPECT_THAT(printed_choice(DType::Float16, 4, 64, 64), HasSubstr("not matmul.amd_wmma: a few"));
  EXPECT_THAT(printed_choice(DType::Float32, 64, 64, 64),
              AllOf(HasSubstr("not matmul.amd_wmma: not a type of the matrix unit"),
                    HasSubstr("not matmul.amd_mfma: only AMD's gfx908")));
  config::set("OCLTENSOR_DISABLED_PROVIDERS", "amd_wmma");
  EXPECT_THAT(printed_choice(DType::Float16, 64, 64, 64),
              Not(HasSubstr("matmul.amd_wmma (by rule)")));
}

// CDNA multiplies floats as they are.
TEST_F(UnitChoice, TakesFloatsWhereTheUnitDoes) {
  open("emulated:gfx942");
  if (IsSkipped()) return;
  config::set("OCLTENSOR_VERBOSE", "1");
  EXPECT_THAT(printed_choice(DType::Float32, 64, 64, 64), HasSubstr("matmul.amd_mfma (by rule)"));
}

// Kernels in which `wrong` stands for `right`, while it exists.
class ChangedKernels {
 public:
  ChangedKernels(const std::string& right, const std::string& wrong) {
    for (const Source* source : kernel_sources::all()) {
      std::string text = source->text;
      if (const size_t at = text.find(right); at != std::string::npos)
        text.replace(at, right.size(), wrong);
      std::filesystem::create_directories((folder_ / source->path).parent_path());
      std::ofstream(folder_ / source->path) << text;
    }
    config::set("OCLTENSOR_KERNEL_DIR", folder_.string());
    config::set("OCLTENSOR_VERBOSE", "1");
  }
  ~ChangedKernels() { std::filesystem::remove_all(folder_); }
  ChangedKernels(const ChangedKernels&) = delete;

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("ocltensor_changed_" + std::to_string(getpid()));
};

// As on a device whose unit takes other lanes' rows than its documentation says.
TEST_F(UnitChoice, LeavesAUnitThatMultipliesOtherwise) {
  open("emulated:gfx1100");
  if (IsSkipped()) return;
  const ChangedKernels changed("HOLDER(line, word, lane) ((line) + ",
                               "HOLDER(line, word, lane) (((line) ^ 1) + ");
  const std::string printed = printed_choice(DType::Float16, 64, 64, 64);
  EXPECT_THAT(printed, HasSubstr("not matmul.amd_wmma: the kernels failed their tests"));
  EXPECT_THAT(printed, HasSubstr("matrix 0 is"));
  EXPECT_THAT(printed, Not(HasSubstr("matmul.amd_wmma (by rule)")));
}

// As with a unit that takes float16's subnormals for 0.
TEST_F(UnitChoice, LeavesAUnitThatFlushesSubnormals) {
  open("emulated:gfx1100");
  if (IsSkipped()) return;
  const ChangedKernels changed("sum + a.x * b.x + a.y * b.y;",
                               "sum + (fabs(a.x) < 0x1p-14f ? 0 : a.x) * b.x + a.y * b.y;");
  EXPECT_THAT(printed_choice(DType::Float16, 64, 64, 64),
              HasSubstr("not matmul.amd_wmma: the kernels failed their tests"));
}

// As with one that multiplies floats as TF32.
TEST_F(UnitChoice, LeavesAUnitThatCutsFloats) {
  open("emulated:gfx942");
  if (IsSkipped()) return;
  const ChangedKernels changed("fma(as_float(left), as_float(right), sum)",
                               "fma(as_float(left & 0xffffe000u), as_float(right), sum)");
  EXPECT_THAT(printed_choice(DType::Float32, 64, 64, 64),
              HasSubstr("not matmul.amd_mfma: the kernels failed their tests"));
}

// As with a driver whose compiler lacks the unit's functions.
TEST_F(UnitChoice, LeavesAUnitThatTheCompilerDoesNotKnow) {
  open("emulated:gfx1100");
  if (IsSkipped()) return;
  const ChangedKernels changed("sum + a.x * b.x + a.y * b.y;",
                               "function_that_no_compiler_knows(sum);");
  const std::string printed = printed_choice(DType::Float16, 64, 64, 64);
  EXPECT_THAT(printed, HasSubstr("not matmul.amd_wmma: the kernels failed their tests"));
  EXPECT_THAT(printed, HasSubstr("function_that_no_compiler_knows"));
  EXPECT_THAT(printed, Not(HasSubstr("matmul.amd_wmma (by rule)")));
}

}  // namespace
}  // namespace ocltensor::opencl::matrix_units
