// Products of a few rows or columns on both sides of every limit of the GPU kernels, in the default
// style and (see CMakeLists.txt) in that of GPUs. Small whole numbers: sums are exact in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <cmath>
#include <limits>

namespace ot = ocltensor;
namespace switches = ocltensor::backends;

namespace {

bool gpu_style() { return ot::get_setting("OCLTENSOR_KERNEL_STYLE") == "gpu"; }

struct Sizes {
  int64_t batch, m, n, k;
};

std::vector<float> values(int64_t count, int64_t seed) {
  std::vector<float> v;
  for (int64_t i = 0; i < count; ++i) v.push_back(static_cast<float>((i * 7919 + seed) % 7 - 3));
  return v;
}

// A batch of matrices whose rows (or columns) are neighbours, beginning `offset` elements into
// memory.
ot::Tensor stored(const std::vector<float>& v, int64_t batch, int64_t rows, int64_t columns,
                  bool turned, int64_t offset, ot::DType type) {
  std::vector<float> memory(static_cast<size_t>(offset), std::numeric_limits<float>::quiet_NaN());
  if (!ot::is_floating(type)) memory.assign(static_cast<size_t>(offset), 77);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < rows * columns; ++i) {
      const int64_t at = turned ? i % rows * columns + i / rows : i;
      memory.push_back(v[static_cast<size_t>(b * rows * columns + at)]);
    }
  const auto length = static_cast<int64_t>(memory.size());
  const ot::Tensor t = ot::tensor(memory, {length}).to(type).to(ot::Device("ocl"));
  const ot::Tensor tail = t.slice(0, offset);
  return turned ? tail.view({batch, columns, rows}).transpose(1, 2)
                : tail.view({batch, rows, columns});
}

// The algorithm that ran; the result is checked.
std::string checked(const Sizes& s, bool turned_a, bool turned_b, int64_t offset, ot::DType type) {
  const std::vector<float> x = values(s.batch * s.m * s.k, 1), y = values(s.batch * s.k * s.n, 5);
  const ot::Tensor a = stored(x, s.batch, s.m, s.k, turned_a, 0, type);
  const ot::Tensor b = stored(y, s.batch, s.k, s.n, turned_b, offset, type);
  const std::vector<float> self = values(s.n, 3);
  const ot::Tensor added = ot::tensor(self, {s.n}).to(type).to(ot::Device("ocl"));
  const auto got =
      ot::baddbmm(added, a, b, 2, 3).to(ot::DType::Float32).contiguous().to_vector<float>();
  std::string choice = switches::last_choice("matmul");
  int wrong = 0;
  for (int64_t z = 0; z < s.batch; ++z)
    for (int64_t m = 0; m < s.m; ++m)
      for (int64_t n = 0; n < s.n; ++n) {
        float sum = 0;
        for (int64_t k = 0; k < s.k; ++k)
          sum += x[static_cast<size_t>((z * s.m + m) * s.k + k)] *
                 y[static_cast<size_t>((z * s.k + k) * s.n + n)];
        const float exact = 3 * sum + 2 * self[static_cast<size_t>(n)];
        const float wanted = ot::tensor(std::vector<float>{exact}, {1})
                                 .to(type)
                                 .to(ot::DType::Float32)
                                 .to_vector<float>()[0];
        wrong += got[static_cast<size_t>((z * s.m + m) * s.n + n)] != wanted;
      }
  EXPECT_EQ(wrong, 0) << s.batch << " " << s.m << " " << s.n << " " << s.k << " " << turned_a
                      << turned_b << " offset " << offset;
  return choice;
}

TEST(Skinny, BothLayoutsOnBothSidesOfTheLimits) {
  for (const bool turned : {false, true}) {
    const char* expected = turned ? "matmul.dots" : "matmul.columns";
    for (const Sizes& s : {Sizes{1, 1, 136, 260},
                           {1, 4, 129, 96},
                           {2, 5, 33, 64},
                           {1, 17, 68, 40},
                           {1, 32, 132, 32}}) {
      const std::string choice = checked(s, false, turned, 0, ot::DType::Float32);
      const bool pays = !turned || s.m <= 16;  // dot products: rows of a work-item
      if (gpu_style()) {
        EXPECT_EQ(choice == expected, pays) << s.m << " " << choice;
      }
    }
    for (const Sizes& s : {Sizes{1, 33, 64, 64}, {1, 4, 65, 31}}) {
      const std::string choice = checked(s, false, turned, 0, ot::DType::Float32);
      EXPECT_NE(choice, expected) << s.m;
    }
  }
}

// The sums of many rows and few columns are combined in several rounds, so that local memory does.
TEST(Skinny, ManyRowsOfFewColumns) {
  for (const Sizes& s : {Sizes{1, 16, 32, 64}, {1, 8, 30, 160}})
    (void)checked(s, false, false, 0, ot::DType::Float32);
  for (const Sizes& s : {Sizes{1, 8, 64, 64}, {1, 4, 40, 160}})
    (void)checked(s, false, false, 0, ot::DType::Float16);
}

TEST(Skinny, PiecesOfLongSums) {
  for (const bool turned : {false, true}) {
    (void)checked({1, 3, 5, 4099}, false, turned, 0, ot::DType::Float32);
    (void)checked({1, 1, 1, 70000}, false, turned, 0, ot::DType::Float32);
    (void)checked({1, 2, 40, 2048}, true, turned, 0, ot::DType::Float32);
  }
}

TEST(Skinny, FewColumnsAreTurned) {
  for (const bool turned : {false, true}) {
    const std::string choice = checked({2, 150, 6, 72}, turned, turned, 0, ot::DType::Float32);
    if (gpu_style()) {
      EXPECT_EQ(choice, turned ? "matmul.columns" : "matmul.dots");
    }
  }
}

TEST(Skinny, TypesAndAlignments) {
  for (const ot::DType type : {ot::DType::Float16, ot::DType::BFloat16, ot::DType::Float64,
                               ot::DType::Int64, ot::DType::Int8})
    for (const bool turned : {false, true}) {
      (void)checked({2, 3, 48, 64}, false, turned, 0, type);
      (void)checked({1, 9, 50, 67}, false, turned, 3, type);
    }
  (void)checked({1, 2, 64, 128}, false, true, 1, ot::DType::Float32);
  (void)checked({1, 2, 64, 128}, false, false, 1, ot::DType::Float32);
}

// What lies beside an operand, or in a row of its own that is none of the result's, must not enter
// a sum.
TEST(Skinny, InfinitiesStayWhereTheyAre) {
  constexpr int64_t kM = 3, kN = 70, kK = 70;
  std::vector<float> x(kM * kK, 1), y(kK * kN, 1);
  x[kK + 5] = std::numeric_limits<float>::infinity();
  y[7 * kN + 69] = std::numeric_limits<float>::quiet_NaN();
  for (const bool turned : {false, true}) {
    const ot::Tensor a = stored(x, 1, kM, kK, false, 0, ot::DType::Float32);
    const ot::Tensor b = stored(y, 1, kK, kN, turned, 2, ot::DType::Float32);
    const auto got = ot::bmm(a, b).to_vector<float>();
    for (int64_t m = 0; m < kM; ++m)
      for (int64_t n = 0; n < kN; ++n) {
        const float v = got[static_cast<size_t>(m * kN + n)];
        if (n == 69)
          EXPECT_TRUE(std::isnan(v)) << m;
        else
          EXPECT_EQ(v, m == 1 ? std::numeric_limits<float>::infinity() : kK) << m << " " << n;
      }
  }
}

}  // namespace
