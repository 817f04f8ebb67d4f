// Tensors on the CPU: views against indices worked out by hand, copies, conversion, errors.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "ocltensor/ocltensor.h"
#include "support/error_text.h"

namespace ocltensor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

// 0, 1, 2, ... in the given shape: an element's value is its storage index.
Tensor counting(std::initializer_list<int64_t> sizes) {
  Dims shape(sizes);
  std::vector<int64_t> values(static_cast<size_t>(numel(shape)));
  std::iota(values.begin(), values.end(), 0);
  return tensor(std::span<const int64_t>(values), shape);
}
Ints values(const Tensor& t) { return t.to_vector<int64_t>(); }
Ints sizes(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }

TEST(Views, SliceFollowsPython) {
  const Tensor t = counting({10});
  EXPECT_EQ(values(t.slice(0, 2, 9, 3)), (Ints{2, 5, 8}));
  EXPECT_EQ(values(t.slice(0, -3)), (Ints{7, 8, 9}));
  EXPECT_EQ(values(t.slice(0, {}, -8)), (Ints{0, 1}));
  EXPECT_EQ(values(t.slice(0, 5, 3)), Ints{});
  EXPECT_EQ(values(t.slice(0, -100, 100, 9)), (Ints{0, 9}));
  EXPECT_EQ(values(t.slice(0, 1, 10, 2).slice(0, 1, 5, 2)), (Ints{3, 7}));
  EXPECT_THAT(error_of([&] { t.slice(0, 0, 5, 0); }), HasSubstr("step must be positive"));
}

TEST(Views, SelectNarrowTransposePermute) {
  const Tensor t = counting({2, 3, 4});
  EXPECT_EQ(values(t.select(1, -1)), (Ints{8, 9, 10, 11, 20, 21, 22, 23}));
  EXPECT_EQ(values(t[1][2]), (Ints{20, 21, 22, 23}));
  EXPECT_EQ(values(t.narrow(2, 1, 2)[0]), (Ints{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(values(t.transpose(0, -1)[3]), (Ints{3, 15, 7, 19, 11, 23}));
  const Tensor p = t.permute({2, 0, 1});
  EXPECT_EQ(sizes(p), (Ints{4, 2, 3}));
  EXPECT_EQ(values(p[1]), (Ints{1, 5, 9, 13, 17, 21}));
  EXPECT_THAT(error_of([&] { t.select(0, 2); }), HasSubstr("index 2 is out of range"));
  EXPECT_THAT(error_of([&] { t.narrow(0, 1, 2); }), HasSubstr("exceed dimension"));
  EXPECT_THAT(error_of([&] { t.permute({0, 0, 1}); }), HasSubstr("appears twice"));
}

TEST(Views, ExpandSqueezeUnsqueeze) {
  const Tensor t = counting({3, 1});
  EXPECT_EQ(values(t.expand({2, -1, 2})), (Ints{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(sizes(t.unsqueeze(-1)), (Ints{3, 1, 1}));
  EXPECT_EQ(sizes(t.unsqueeze(0).squeeze()), (Ints{3}));
  EXPECT_EQ(sizes(t.squeeze(0)), (Ints{3, 1}));
  EXPECT_EQ(sizes(t.squeeze(1)), (Ints{3}));
  EXPECT_THROW(t.expand({4, 1}), Error);
}

TEST(Views, ViewCutsRunsAnew) {
  const Tensor t = counting({4, 6});
  EXPECT_EQ(sizes(t.view({2, -1, 3})), (Ints{2, 4, 3}));
  const Tensor part = t.slice(1, 0, 4);  // rows of 4 with a gap
  EXPECT_EQ(values(part.view({2, 2, 2, 2}).select(1, 1)), (Ints{6, 7, 8, 9, 18, 19, 20, 21}));
  EXPECT_THAT(error_of([&] { part.view({16}); }), HasSubstr("use reshape()"));
  EXPECT_FALSE(part.reshape({16}).shares_storage(t));
  EXPECT_EQ(values(part.reshape({16}))[5], 7);
  EXPECT_TRUE(t.reshape({24}).shares_storage(t));
  // Runs with an unmergeable middle, and dimensions of size 1 anywhere.
  const Tensor s = counting({2, 3, 4}).transpose(0, 1);  // strides 4, 12, 1
  EXPECT_EQ(sizes(s.view({1, 3, 1, 2, 2, 2})), (Ints{1, 3, 1, 2, 2, 2}));
  EXPECT_EQ(values(s.view({3, 2, 2, 2})), values(s));
  EXPECT_THROW(s.view({6, 4}), Error);
  EXPECT_EQ(sizes(counting({2, 0, 3}).view({0, 7})), (Ints{0, 7}));
  EXPECT_EQ(sizes(counting({}).view({1, 1})), (Ints{1, 1}));
  EXPECT_EQ(values(counting({1, 1}).view({})), Ints{0});
  EXPECT_THAT(error_of([&] { t.view({5, -1}); }), HasSubstr("not possible for 24 elements"));
  EXPECT_EQ(sizes(counting({2, 3, 4}).flatten(1)), (Ints{2, 12}));
}

TEST(Views, EveryViewEqualsItsReshape) {
  const Tensor base = counting({4, 3, 2, 5});
  const Tensor sources[] = {base, base.permute({1, 0, 2, 3}), base.slice(3, 1, 5, 2),
                            base.select(2, 1), base.expand({2, 4, 3, 2, 5})};
  int views = 0;
  for (const Tensor& s : sources)
    for (const Dims& shape : {Dims{-1}, Dims{2, -1}, Dims{-1, 2}, Dims{3, -1, 2}, Dims{2, 2, -1}}) {
      if (s.numel() % 12 != 0) continue;
      const Tensor r = s.reshape(shape);
      views += r.shares_storage(s);
      EXPECT_EQ(values(r), values(s))
          << fmt::format("{}{}", to_string(s.sizes()), to_string(s.strides()));
    }
  EXPECT_GT(views, 8);
}

TEST(Views, AsStridedStaysInside) {
  const Tensor t = counting({10});
  EXPECT_EQ(values(t.as_strided(Dims{2, 3}, Dims{1, 2}, 1)), (Ints{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(values(t.as_strided(Dims{3}, Dims{-2}, 8)), (Ints{8, 6, 4}));
  EXPECT_THAT(error_of([&] { t.as_strided(Dims{3}, Dims{4}, 2); }), HasSubstr("2 to 10"));
  EXPECT_THROW(t.as_strided(Dims{3}, Dims{-2}, 3), Error);
}

TEST(Copies, StridesOffsetsAndTypes) {
  Tensor t = zeros({3, 4}, DType::Float32);
  t.slice(1, 1, 4, 2).copy_(tensor<double>({1.5, -2, 3, 4, 5, 6.25}, {3, 2}));
  EXPECT_THAT(t.to_vector<float>(), ElementsAre(0, 1.5, 0, -2, 0, 3, 0, 4, 0, 5, 0, 6.25));
  t.t().copy_(tensor<int32_t>({7, 8, 9}));  // broadcast over rows of the transposed one
  EXPECT_THAT(t[1].to_vector<float>(), ElementsAre(8, 8, 8, 8));
  EXPECT_EQ(tensor<float>({2.75f, -2.75f}).to_vector<int64_t>(), (Ints{2, -2}));
  EXPECT_THAT(tensor<float>({0, -1, NAN}).to_vector<bool>(), ElementsAre(false, true, true));
}

TEST(Copies, AssignmentToAViewWritesThroughIt) {
  const Tensor m = zeros({2, 3});
  m[0] = tensor<double>({1, 2, 3});
  m[1].slice(0, 1) = 7.5;
  m.select(1, 0) = m.select(1, 2);
  EXPECT_THAT(m.to_vector<float>(), ElementsAre(3, 2, 3, 7.5, 7.5, 7.5));
  Tensor row = m[0];
  row = m[1];  // a variable only takes another handle
  row.fill_(0);
  row = zeros({4});
  EXPECT_THAT(m.to_vector<float>(), ElementsAre(3, 2, 3, 0, 0, 0));
  EXPECT_THAT(error_of([&] { m[0] = zeros({2}); }), HasSubstr("broadcast"));
  EXPECT_THAT(error_of([&] { Tensor() = m; }), HasSubstr("undefined"));
}

TEST(Copies, OverlappingSourceIsReadFirst) {
  Tensor t = counting({6});
  t.slice(0, 1).copy_(t.slice(0, 0, 5));
  EXPECT_EQ(values(t), (Ints{0, 0, 1, 2, 3, 4}));
  Tensor u = counting({3, 3});
  u.copy_(u.t());
  EXPECT_EQ(values(u), (Ints{0, 3, 6, 1, 4, 7, 2, 5, 8}));
  EXPECT_THAT(error_of([&] { counting({1}).expand({3}).copy_(t.slice(0, 0, 3)); }),
              HasSubstr("names an element twice"));
}

TEST(Copies, HalfTypesKeepSpecialValues) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor t = tensor<float>({1.0f, -inf, NAN, 1e-8f, 70000.0f});
  const std::vector<float> h = t.to(DType::Float16).to_vector<float>();
  EXPECT_EQ(h[0], 1);
  EXPECT_EQ(h[1], -inf);
  EXPECT_TRUE(std::isnan(h[2]));
  EXPECT_EQ(h[3], 0);
  EXPECT_EQ(h[4], inf);
  EXPECT_EQ(t.to(DType::BFloat16).to_vector<float>()[4], 70144);  // 8 bits of significand
}

TEST(Fill, EveryTypeAndStrides) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto type = static_cast<DType>(i);
    if (is_complex(type)) continue;
    EXPECT_EQ(full({2, 3}, 1, type).to_vector<int32_t>(), std::vector<int32_t>(6, 1)) << name(type);
  }
  Tensor t = zeros({2, 3});
  t.select(1, 1).fill_(2.5);
  EXPECT_THAT(t.to_vector<float>(), ElementsAre(0, 2.5, 0, 0, 2.5, 0));
  EXPECT_THROW(full({1}, NAN, DType::Int32), Error);
  EXPECT_EQ(full({0, 3}, 1).numel(), 0);
}

TEST(ToHost, ItemAndPrinting) {
  EXPECT_EQ(tensor<int64_t>({int64_t{1} << 62}).item<int64_t>(), int64_t{1} << 62);
  EXPECT_EQ(tensor<float>({1, 2}).select(0, 1).item<double>(), 2);
  EXPECT_THAT(error_of([] { zeros({2}).item(); }), HasSubstr("one element"));
  EXPECT_EQ(counting({2, 2}).text(), "[[0, 1],\n [2, 3]]\nint64 [2, 2] on cpu");
  EXPECT_EQ(counting({}).text(), "0\nint64 [] on cpu");
  EXPECT_EQ(zeros({0}).text(), "[]\nfloat32 [0] on cpu");
  const std::string large = counting({50, 50}).text();
  EXPECT_THAT(large, HasSubstr("[[   0,    1,    2, ...,   47,   48,   49],\n"));
  EXPECT_THAT(large, HasSubstr(",\n ...,\n [2350,"));
  const Tensor mixed = tensor({{1.5, -100.25}, {1e-7, 2.0 / 3}});
  EXPECT_EQ(mixed.text(), "[[     1.5,  -100.25],\n [   1e-07, 0.666667]]\nfloat64 [2, 2] on cpu");
  set_print_options({.precision = 3, .threshold = 3, .edge = 1});
  EXPECT_EQ(counting({3, 3}).text(), "[[0, ..., 2],\n ...,\n [6, ..., 8]]\nint64 [3, 3] on cpu");
  EXPECT_THAT(mixed.text(), HasSubstr("0.667"));
  set_print_options({});
  EXPECT_THROW(set_print_options({.precision = 0}), Error);
}

TEST(Metadata, DataChecksDeviceAndType) {
  const Tensor t = counting({4}).slice(0, 2);
  EXPECT_EQ(t.data<int64_t>()[0], 2);
  EXPECT_THAT(error_of([&] { t.data<float>(); }), HasSubstr("asked for float32"));
  EXPECT_THAT(error_of([] { Tensor().sizes(); }), HasSubstr("undefined"));
  EXPECT_THROW(empty({2, -1}), Error);
  EXPECT_THROW(tensor<float>({1, 2, 3}, {2}), Error);
  EXPECT_THROW(empty_strided(Dims{2}, Dims{-1}), Error);
}

TEST(Metadata, ResizeLeavesOtherTensorsAlone) {
  Tensor t = counting({4});
  const Tensor other = t.slice(0, 0, 2);
  t.resize_(Dims{3, 5});
  t.fill_(9);
  EXPECT_EQ(values(other), (Ints{0, 1}));
  EXPECT_TRUE(t.is_contiguous());
}

template <typename T>
std::string item_error(const Tensor& t) {
  return error_of([&] { (void)t.item<T>(); });
}

TEST(ToTheHost, ANumberThatDoesNotFitIsAnError) {
  EXPECT_THAT(item_error<int>(tensor(int64_t{3000000000})),
              HasSubstr("3000000000 does not fit in int32"));
  EXPECT_THAT(item_error<int>(tensor(1e20)), HasSubstr("1e+20 does not fit in int32"));
  EXPECT_THAT(item_error<int64_t>(tensor(0x1p63)), HasSubstr("does not fit in int64"));
  EXPECT_THAT(item_error<int>(tensor(NAN)), HasSubstr("nan does not fit"));
  EXPECT_THAT(item_error<int8_t>(tensor(-INFINITY)), HasSubstr("-inf does not fit"));
  EXPECT_THAT(item_error<int8_t>(tensor(300)), HasSubstr("300 does not fit in int8"));
  EXPECT_THAT(item_error<uint8_t>(tensor(-1)), HasSubstr("-1 does not fit in uint8"));
  EXPECT_THAT(item_error<float>(tensor(1e300)), HasSubstr("1e+300 does not fit in float32"));
  EXPECT_THAT(item_error<float>(ones({1}, DType::Complex64)), HasSubstr("complex"));
  EXPECT_THAT(error_of([] {
                (void)tensor({1, 300}).to_vector<int8_t>();
              }),
              HasSubstr("300 does not fit in int8"));
  EXPECT_THAT(error_of([] {
                (void)tensor({1.0, double{NAN}}).to_vector<int64_t>();
              }),
              HasSubstr("nan does not fit in int64"));
  EXPECT_THAT(error_of([] { (void)ones({2}, DType::Complex64).to_vector<float>(); }),
              HasSubstr("complex"));
}

TEST(ToTheHost, WhatFitsIsRoundedOrCutOff) {
  EXPECT_EQ(tensor(0.1).item<float>(), 0.1f);
  EXPECT_EQ(tensor(-0x1p63).item<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(tensor(-128.9).item<int8_t>(), -128);
  EXPECT_EQ(tensor(255.5f).item<uint8_t>(), 255);
  EXPECT_EQ(tensor(-0.5).item<uint64_t>(), 0u);
  EXPECT_EQ(tensor(0.5).item<bool>(), true);
  EXPECT_TRUE(std::isinf(tensor(double{INFINITY}).item<float>()));
  EXPECT_TRUE(std::isnan(tensor(double{NAN}).item<float>()));
  EXPECT_THAT(tensor({0.1, 2.9, -2.9}).to_vector<int>(), ElementsAre(0, 2, -2));
  EXPECT_THAT(tensor({0.1}).to_vector<float>(), ElementsAre(0.1f));
  EXPECT_EQ(tensor(-std::numeric_limits<float>::quiet_NaN()).text().substr(0, 3), "nan");
}

}  // namespace
}  // namespace ocltensor
