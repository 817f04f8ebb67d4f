// Products by tiles in local memory, the kernels of GPUs, against the general one: rows that begin
// at multiples of four elements, of two, or anywhere, with and without edges. Small whole numbers:
// sums are exact in any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

namespace ot = ocltensor;
namespace switches = ocltensor::backends;

namespace {

// A matrix whose rows are `apart` elements apart and begin `offset` elements into its memory;
// turned: its columns instead.
ot::Tensor matrix(int64_t rows, int64_t columns, int64_t apart, int64_t offset, bool turned,
                  ot::DType type) {
  if (turned) std::swap(rows, columns);
  std::vector<float> values;
  for (int64_t i = 0; i < rows * apart + offset; ++i)
    values.push_back(static_cast<float>((i * 7919 + offset) % 5 - 2));
  const ot::Tensor memory =
      ot::tensor(values, {rows * apart + offset}).to(type).to(ot::Device("ocl"));
  const ot::Tensor m = memory.as_strided({rows, columns}, {apart, 1}, offset);
  return turned ? m.transpose(0, 1) : m;
}

struct Result {
  std::vector<float> numbers;
  std::string choice;
};
Result product(const ot::Tensor& a, const ot::Tensor& b) {
  const ot::Tensor c = ot::matmul(a, b);
  const std::string choice = switches::last_choice("matmul");
  return {c.to(ot::DType::Float32).contiguous().to_vector<float>(), choice};
}

void check(int64_t m, int64_t n, int64_t k, int64_t pad, int64_t offset, bool a_turned,
           bool b_turned, ot::DType type) {
  const ot::Tensor a = matrix(m, k, (a_turned ? m : k) + pad, offset, a_turned, type);
  const ot::Tensor b = matrix(k, n, (b_turned ? k : n) + pad, offset, b_turned, type);
  const Result got = product(a, b);
  const switches::SettingScope off{{"OCLTENSOR_DISABLED_ALGORITHMS", "matmul.*"}};
  const Result wanted = product(a, b);
  EXPECT_THAT(wanted.choice, testing::StartsWith("matmul.general"));
  EXPECT_EQ(got.numbers, wanted.numbers)
      << m << "x" << n << "x" << k << " " << pad << " " << offset;
  if (ot::get_setting("OCLTENSOR_KERNEL_STYLE") != "gpu") return;
  EXPECT_THAT(got.choice, testing::AnyOf("matmul.tiny_tiles", "matmul.small_tiles"));
}

TEST(Tiles, RowsThatBeginAnywhere) {
  for (const int64_t pad : {0, 1, 2})
    for (const int64_t offset : {0, 1, 2}) {
      check(40, 64, 32, pad, offset, false, false, ot::DType::BFloat16);
      check(40, 64, 32, pad, offset, true, true, ot::DType::Float32);
    }
}

TEST(Tiles, SizesWithEdgesAndWithout) {
  for (const int64_t size : {64, 65, 66}) {
    check(size, 70, 24, 0, 0, false, true, ot::DType::Float16);
    check(70, size, 30, 0, 0, true, true, ot::DType::BFloat16);
  }
}

}  // namespace
