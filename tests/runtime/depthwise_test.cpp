// Convolutions with few channels in a group: the GPU kernels against the general one, in every
// direction, on both sides of what they are written out for. Small whole numbers: sums are exact in
// any order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ocltensor/ocltensor.h>

#include <cmath>
#include <limits>

namespace ot = ocltensor;
namespace switches = ocltensor::backends;

namespace {

bool gpu_style() { return ot::get_setting("OCLTENSOR_KERNEL_STYLE") == "gpu"; }

struct Layer {
  int64_t batch, groups, in, out;  // channels of a group
  int64_t height, width, window_y, window_x, stride_y, stride_x, padding, dilation;
};

ot::Tensor whole(const std::vector<int64_t>& sizes, int64_t seed, ot::DType type) {
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 7919 + seed) % 5 - 2));
  return ot::tensor(values, {count}).view(sizes).to(type).to(ot::Device("ocl"));
}

ot::Tensor channels_last(const ot::Tensor& t) {
  return t.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
}

std::vector<float> floats(const ot::Tensor& t) {
  return t.to(ot::DType::Float32).contiguous().to_vector<float>();
}

struct Results {
  std::vector<float> out, big, weight;
  std::vector<std::string> choices;
};
Results run(const Layer& l, ot::DType type, bool last) {
  ot::Tensor x = whole({l.batch, l.groups * l.in, l.height, l.width}, 1, type);
  if (last) x = channels_last(x);
  const ot::Tensor w = whole({l.groups * l.out, l.in, l.window_y, l.window_x}, 3, type);
  const ot::Tensor b = whole({l.groups * l.out}, 2, type);
  const std::vector<int64_t> stride{l.stride_y, l.stride_x}, padding{l.padding, l.padding},
      dilation{l.dilation, l.dilation};
  Results r;
  const ot::Tensor y = ot::convolution(x, w, b, stride, padding, dilation, false, {0, 0}, l.groups);
  r.out = floats(y);
  r.choices.push_back(switches::last_choice("conv"));
  ot::Tensor gradient = whole({y.sizes().begin(), y.sizes().end()}, 4, type);
  if (last) gradient = channels_last(gradient);
  const auto backward = [&](const ot::BoolList& mask) {
    auto all = ot::convolution_backward(gradient, x, w, std::vector<int64_t>{l.groups * l.out},
                                        stride, padding, dilation, false, {0, 0}, l.groups, mask);
    r.choices.push_back(switches::last_choice("conv"));
    return all;
  };
  r.big = floats(std::get<0>(backward({true, false, false})));
  r.weight = floats(std::get<1>(backward({false, true, false})));
  return r;
}

void check(const Layer& l, ot::DType type = ot::DType::Float32, bool last = false) {
  const Results got = run(l, type, last);
  const switches::SettingScope off{{"OCLTENSOR_DISABLED_ALGORITHMS", "conv.*"}};
  const Results wanted = run(l, type, last);
  EXPECT_THAT(wanted.choices, testing::Each("conv.general"));
  EXPECT_EQ(got.out, wanted.out) << l.height << " " << l.window_y;
  EXPECT_EQ(got.big, wanted.big) << l.height << " " << l.window_y;
  EXPECT_EQ(got.weight, wanted.weight) << l.height << " " << l.window_y;
  if (!gpu_style()) return;
  if (l.in == 1) {
    EXPECT_THAT(got.choices, testing::Each("conv.depthwise"));
  } else if (l.groups > 8) {  // of fewer groups columns take the weights' gradient
    EXPECT_EQ(got.choices[2], "conv.depthwise");
  }
}

TEST(Depthwise, WindowsThatAreWrittenOut) {
  check({2, 9, 1, 1, 19, 13, 3, 3, 1, 1, 1, 1});
  check({2, 3, 1, 2, 17, 20, 3, 3, 2, 2, 1, 1});
  check({1, 4, 1, 1, 12, 11, 5, 5, 1, 1, 2, 1});
  check({2, 4, 1, 1, 15, 9, 5, 5, 2, 2, 2, 1});
  check({1, 3, 1, 1, 9, 30, 7, 7, 1, 1, 3, 1});
}

TEST(Depthwise, StripsOfSevenRows) {
  check({2, 40, 1, 1, 14, 30, 3, 3, 1, 1, 1, 1});
  check({2, 40, 1, 1, 28, 30, 3, 3, 2, 2, 1, 1});  // whose data has strips of eight
}

TEST(Depthwise, TwoColumnsOfAnItem) {
  for (const ot::DType type : {ot::DType::Float32, ot::DType::Float16, ot::DType::BFloat16}) {
    check({2, 9, 1, 1, 19, 12, 3, 3, 1, 1, 1, 1}, type);
    check({1, 3, 1, 2, 17, 20, 5, 5, 1, 1, 2, 1}, type);
    check({1, 3, 1, 1, 9, 14, 5, 5, 1, 1, 1, 1}, type);
    check({1, 3, 1, 1, 9, 30, 7, 7, 1, 1, 3, 1}, type);
  }
}

TEST(Depthwise, PaddingsOfEitherParity) {
  for (const int64_t padding : {0, 1, 2, 3, 4}) {
    check({1, 2, 1, 1, 10, 11, 3, 3, 2, 2, padding, 1});
    check({1, 2, 1, 1, 7, 6, 3, 3, 1, 1, padding, 1});
  }
}

TEST(Depthwise, AnyOtherGeometry) {
  check({2, 3, 1, 2, 16, 14, 3, 3, 1, 1, 2, 2});
  check({1, 2, 1, 1, 11, 20, 2, 4, 3, 1, 1, 1});
  check({2, 5, 1, 1, 1, 40, 1, 4, 1, 1, 0, 1});
  check({1, 3, 1, 1, 12, 12, 3, 3, 1, 2, 1, 1});
}

// Columns of both parities, more than 32 of them, and such that no tap meets.
TEST(Depthwise, AStrideOfTwoAlongRows) {
  check({2, 2, 2, 3, 9, 70, 3, 7, 2, 2, 3, 1});
  check({1, 2, 1, 2, 5, 37, 4, 2, 3, 2, 0, 1});
  check({1, 2, 1, 1, 7, 9, 1, 1, 2, 2, 0, 1});
  check({2, 3, 1, 1, 8, 33, 5, 5, 1, 2, 4, 1});
  check({1, 2, 1, 1, 6, 40, 3, 9, 2, 2, 4, 1});
  check({2, 3, 1, 1, 28, 28, 5, 5, 2, 2, 2, 1}, ot::DType::BFloat16);
}

TEST(Depthwise, SmallMapsManyImagesAndGroupsOfSeveralChannels) {
  check({40, 2, 1, 1, 7, 7, 3, 3, 1, 1, 1, 1});  // the gradient in parts
  check({3, 2, 1, 1, 2, 2, 3, 3, 1, 1, 1, 1});
  check({2, 10, 4, 3, 9, 8, 3, 3, 1, 1, 1, 1});
  check({2, 9, 2, 2, 9, 8, 3, 2, 1, 1, 1, 1});
}

TEST(Depthwise, TypesAndLayouts) {
  for (const ot::DType type : {ot::DType::Float16, ot::DType::BFloat16, ot::DType::Float64})
    check({1, 4, 1, 1, 9, 10, 3, 3, 1, 1, 1, 1}, type);
  check({2, 6, 1, 1, 9, 10, 3, 3, 2, 2, 1, 1}, ot::DType::Float32, true);
  check({2, 6, 1, 2, 9, 10, 3, 3, 1, 1, 2, 2}, ot::DType::Float16, true);
  // Two channels of a work-item, and an odd number of channels.
  check({2, 6, 1, 1, 9, 10, 3, 3, 2, 2, 1, 1}, ot::DType::Float16, true);
  check({2, 8, 1, 1, 12, 11, 7, 7, 1, 1, 3, 1}, ot::DType::BFloat16, true);
  check({1, 5, 1, 1, 9, 10, 5, 5, 1, 1, 2, 1}, ot::DType::BFloat16, true);
}

// Rows that a strip has below the map must not meet an infinity of the other tensor.
TEST(Depthwise, InfinitiesBesideAGradient) {
  std::vector<float> values(2 * 9 * 9, 1);
  values[8 * 9 + 4] = std::numeric_limits<float>::infinity();
  const ot::Tensor big = ot::tensor(values, {2, 9, 9}).view({1, 2, 9, 9}).to(ot::Device("ocl"));
  const ot::Tensor small = whole({1, 2, 7, 7}, 4, ot::DType::Float32);
  const ot::Tensor weight = whole({2, 1, 3, 3}, 4, ot::DType::Float32);
  const auto all = ot::convolution_backward(small, big, weight, {}, {1, 1}, {0, 0}, {1, 1}, false,
                                            {0, 0}, 2, {false, true, false});
  const std::vector<float> gradient = floats(std::get<1>(all));
  for (size_t i = 0; i < 18; ++i) EXPECT_EQ(std::isfinite(gradient[i]), i < 6 || i >= 9) << i;
}

// Between the gradient's elements there are no zeros that a weight could meet: an infinite one
// makes only those elements infinite that it reaches.
TEST(Depthwise, AnInfiniteWeightBesideAStride) {
  std::vector<float> values(2 * 9, 1);
  values[4] = std::numeric_limits<float>::infinity();  // the first window's middle
  const ot::Tensor weight = ot::tensor(values, {2, 9}).view({2, 1, 3, 3}).to(ot::Device("ocl"));
  const ot::Tensor big = whole({1, 2, 12, 40}, 1, ot::DType::Float32);
  const ot::Tensor small = ot::ones({1, 2, 6, 20}).to(ot::Device("ocl"));
  const auto all = ot::convolution_backward(small, big, weight, {}, {2, 2}, {1, 1}, {1, 1}, false,
                                            {0, 0}, 2, {true, false, false});
  const std::vector<float> gradient = floats(std::get<0>(all));
  for (size_t i = 0; i < gradient.size(); ++i) {
    const bool reached = i < 12 * 40 && i / 40 % 2 == 0 && i % 2 == 0;
    EXPECT_EQ(std::isinf(gradient[i]), reached) << i;
    EXPECT_FALSE(std::isnan(gradient[i])) << i;
  }
}

}  // namespace
