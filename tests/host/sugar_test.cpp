// Tensors as people write them: symbols, methods, brackets, creation, defaults. What they compute
// is compared with the operators' functions and with values worked out by hand.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ocltensor/ocltensor.h"
#include "support/error_text.h"

namespace ocltensor {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;
using Bools = std::vector<bool>;

Floats floats(const Tensor& t) { return t.to_vector<float>(); }
Ints ints(const Tensor& t) { return t.to_vector<int64_t>(); }
Ints sizes(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }
TEST(Symbols, ComputeWithTensorsAndNumbers) {
  const Tensor a = tensor({1.f, 2.f, 4.f}), b = tensor({3.f, 5.f, 7.f});
  EXPECT_EQ(floats(a + b), (Floats{4, 7, 11}));
  EXPECT_EQ(floats(b - a), (Floats{2, 3, 3}));
  EXPECT_EQ(floats(a * 2), (Floats{2, 4, 8}));
  EXPECT_EQ(floats(1 - a), (Floats{0, -1, -3}));
  EXPECT_EQ(floats(8 / a), (Floats{8, 4, 2}));
  EXPECT_EQ(floats(b % 3), (Floats{0, 2, 1}));
  EXPECT_EQ(floats(-a), (Floats{-1, -2, -4}));
  EXPECT_EQ(ints(a == tensor({1.f, 3.f, 4.f})), (Ints{1, 0, 1}));
  EXPECT_EQ(ints(a != 2), (Ints{1, 0, 1}));
  EXPECT_EQ(ints(2 < a), (Ints{0, 0, 1}));
  EXPECT_EQ(ints(a <= 2), (Ints{1, 1, 0}));
  EXPECT_EQ((a > 1).dtype(), DType::Bool);
  EXPECT_EQ(ints((a > 1) & (a < 4)), (Ints{0, 1, 0}));
  EXPECT_EQ(ints((a > 2) | (a < 2)), (Ints{1, 0, 1}));
  EXPECT_EQ(ints((a > 1) ^ (a > 2)), (Ints{0, 1, 0}));
  EXPECT_EQ(ints(~(a > 1)), (Ints{1, 0, 0}));
  const Tensor n = tensor({1, 2, 3});
  EXPECT_EQ(ints(n << 2), (Ints{4, 8, 12}));
  EXPECT_EQ(ints(n >> 1), (Ints{0, 1, 1}));
}

TEST(Symbols, NumbersKeepTheirKind) {
  EXPECT_EQ((tensor({1, 2}) + 1).dtype(), DType::Int32);
  EXPECT_EQ((tensor({1, 2}) + 1.5).dtype(), DType::Float32);
  EXPECT_EQ((tensor({1, 2}) / 2).dtype(), DType::Float32);
  EXPECT_EQ((true + tensor<uint8_t>({1, 2})).dtype(), DType::UInt8);
  const std::vector<int> v(7);
  EXPECT_EQ(floats(ones({2}) * v.size()), (Floats{7, 7}));
  EXPECT_EQ(Scalar(3u).as_int(), 3);
  EXPECT_EQ(Scalar(1.5f).as_double(), 1.5);
  EXPECT_EQ(Scalar(std::complex<float>(1, 2)).imaginary(), 2);
  EXPECT_THAT(error_of([] { (void)Scalar(~uint64_t{0}); }), HasSubstr("largest int64"));
}

TEST(Symbols, CompoundOnesWriteInPlace) {
  Tensor a = tensor({1.f, 2.f});
  const Tensor other = a;  // NOLINT(performance-unnecessary-copy-initialization): shares elements
  a += 1;
  a *= tensor({2.f, 3.f});
  a -= 0.5;
  a /= 2;
  EXPECT_EQ(floats(other), (Floats{1.75, 4.25}));
  Tensor m = zeros({2, 2});
  m[1] += 3;
  EXPECT_EQ(floats(m), (Floats{0, 0, 3, 3}));
  const Tensor whole = tensor({1, 2});
  EXPECT_THROW(whole += 0.5, Error);  // as in ATen: the result would not fit
  EXPECT_EQ(ints(whole), (Ints{1, 2}));
}

TEST(Methods, AreTheFunctions) {
  const Tensor a = tensor({{1.f, 2.f}, {3.f, 4.f}});
  EXPECT_EQ(floats(a.sum()), Floats{10});
  EXPECT_EQ(floats(a.sum(1)), (Floats{3, 7}));
  EXPECT_EQ(floats(a.mean({0})), (Floats{2, 3}));
  EXPECT_EQ(floats(sum(a)), Floats{10});
  EXPECT_EQ(floats(a.mm(a)), (Floats{7, 10, 15, 22}));
  EXPECT_EQ(floats(a.exp().log().round()), floats(a));
  EXPECT_EQ(ints(a.argmax(1)), (Ints{1, 1}));
  EXPECT_EQ(floats(std::get<0>(a.max(0))), (Floats{3, 4}));
  EXPECT_EQ(floats(a.clamp(2, 3)), (Floats{2, 2, 3, 3}));
  EXPECT_EQ(floats(a.masked_select(a > 2)), (Floats{3, 4}));
  a.relu_().add_(1).mul_(2);
  EXPECT_EQ(floats(a), (Floats{4, 6, 8, 10}));
  a.masked_fill_(a > 7, 0);
  EXPECT_EQ(floats(a), (Floats{4, 6, 0, 0}));
  a.uniform_(3, 4);
  for (const float v : floats(a)) EXPECT_TRUE(v >= 3 && v < 4) << v;
}

TEST(Brackets, WhatATensorNamesIsATensorInAnExpression) {
  const Tensor a = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  const Tensor rows = tensor({true, false}), second = tensor<int64_t>({1});
  EXPECT_EQ(floats(a[rows].sum() + 2 * a[second][0]), (Floats{14, 16, 18}));
  const Tensor kept = a[second];
  a[rows] = a[second] + a[second];  // a mask over the first dimension
  EXPECT_EQ(floats(a), (Floats{8, 10, 12, 4, 5, 6}));
  a[rows] = 1.5;
  a[second] = 0;
  a[a == 1.5] += 1;
  a[a == 0] = a[a == 0];
  EXPECT_EQ(floats(a), (Floats{2.5, 2.5, 2.5, 0, 0, 0}));
  EXPECT_EQ(floats(kept), (Floats{4, 5, 6}));
  const Tensor whole = tensor({1, 2});
  whole[whole > 1] = 7.9;  // cut off, as by fill_
  EXPECT_EQ(ints(whole), (Ints{1, 7}));
  EXPECT_THAT(error_of([&] { a[second > 0] = 1; }), HasSubstr("a mask of shape [1]"));
}

TEST(Brackets, ASliceNeedsNoBraces) {
  const Tensor a = arange(6).view({3, 2});
  EXPECT_EQ(ints(a[slice(1, 3)]), (Ints{2, 3, 4, 5}));
  EXPECT_EQ(ints(a[{1, 1}]), Ints{3});  // two positions as before
  a[slice(0, -1)] = 0;
  EXPECT_EQ(ints(a), (Ints{0, 0, 0, 0, 4, 5}));
  EXPECT_THAT(error_of([&] { (void)a[{":", 0}]; }), HasSubstr("slice(first, end, step)"));
}

TEST(Creation, TakesOptionsInAnyForm) {
  EXPECT_EQ(zeros({2, 3}, "cpu").dtype(), DType::Float32);
  EXPECT_EQ(ones({2}, DType::Int64).dtype(), DType::Int64);
  EXPECT_EQ(full({2}, 7, {DType::Int32, "cpu"}).dtype(), DType::Int32);
  EXPECT_EQ(empty({2, 0}).numel(), 0);
  EXPECT_EQ(zeros_like(ones({2}, DType::Int64)).dtype(), DType::Int64);
  EXPECT_EQ(zeros_like(ones({2}, DType::Int64), DType::Bool).dtype(), DType::Bool);
  EXPECT_EQ(ints(arange(4)), (Ints{0, 1, 2, 3}));
  EXPECT_EQ(arange(0, 4, 1, DType::Float64).dtype(), DType::Float64);
  EXPECT_EQ(floats(eye(2)), (Floats{1, 0, 0, 1}));
}

TEST(Creation, TakesLists) {
  EXPECT_EQ(tensor(2.5).dim(), 0);
  EXPECT_EQ(tensor({1, 2, 3}).dtype(), DType::Int32);
  EXPECT_EQ(tensor({1, 2, 3}, DType::Float16).dtype(), DType::Float16);
  EXPECT_EQ(tensor({true, false}).dtype(), DType::Bool);
  const Tensor m = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(sizes(m), (Ints{2, 3}));
  EXPECT_EQ(ints(m), (Ints{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(sizes(tensor({{{1.0}, {2.0}}, {{3.0}, {4.0}}})), (Ints{2, 2, 1}));
  EXPECT_EQ(sizes(tensor({{{{1.f, 2.f}}}})), (Ints{1, 1, 1, 2}));
  EXPECT_THAT(error_of([] {
                (void)tensor({{1, 2}, {3}});
              }),
              HasSubstr("the list at position [1] has 1 entries, the first of its level 2"));
  const std::vector<double> v{1, 2, 3, 4};
  EXPECT_EQ(sizes(tensor(v)), Ints{4});
  const std::vector<int64_t> shape{2, 2};
  EXPECT_EQ(sizes(tensor(v, shape)), (Ints{2, 2}));
}

TEST(Creation, UsesMemoryOfTheCaller) {
  float numbers[] = {1, 2, 3, 4, 5, 6};
  int freed = 0;
  {
    const Tensor t = from_blob(numbers, {2, 3}, DType::Float32, [&](void* p) {
      EXPECT_EQ(p, numbers);
      ++freed;
    });
    t.mul_(2);
    EXPECT_EQ(numbers[5], 12);
    numbers[0] = 7;
    const Tensor row = t[0];
    EXPECT_EQ(floats(row), (Floats{7, 4, 6}));
    EXPECT_EQ(floats(from_blob(numbers, {3, 2}, DType::Float32, {}, {1, 3})),
              (Floats{7, 8, 4, 10, 6, 12}));
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
  EXPECT_THAT(error_of([&] { (void)from_blob(reinterpret_cast<char*>(numbers) + 1, {1}); }),
              HasSubstr("not aligned"));
  EXPECT_THAT(error_of([] { (void)from_blob(nullptr, {1}); }), HasSubstr("no data"));
}

TEST(Brackets, GiveViews) {
  const Tensor a = arange(24).view({2, 3, 4});
  EXPECT_EQ(ints(a[{1, 2, 3}]), Ints{23});
  EXPECT_EQ(ints(a[{slice(1, 2), "...", 0}]), (Ints{12, 16, 20}));
  EXPECT_EQ(sizes(a[{"...", std::nullopt, slice(0, 4, 2)}]), (Ints{2, 3, 1, 2}));
  EXPECT_EQ(ints(a[{-1, slice(-1)}]), (Ints{20, 21, 22, 23}));
  EXPECT_TRUE(a[{0}].shares_storage(a));
  EXPECT_THAT(error_of([&] { (void)a[{0, 0, 0, 0}]; }), HasSubstr("4 indices for a tensor of 3"));
  EXPECT_THAT(error_of([&] { (void)a[{"...", "..."}]; }), HasSubstr("once"));
  EXPECT_THAT(error_of([&] { (void)a[{".."}]; }), HasSubstr("not \"..\""));
}

TEST(Brackets, TakeMasksAndPositions) {
  const Tensor a = arange(12).view({3, 4});
  EXPECT_EQ(ints(a[a > 8]), (Ints{9, 10, 11}));
  EXPECT_EQ(ints(a[tensor({2, 0})]), (Ints{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(ints(a[{slice(), tensor({3, 3, 0})}]), (Ints{3, 3, 0, 7, 7, 4, 11, 11, 8}));
  EXPECT_EQ(ints(a[{tensor({0, 2}), tensor({1, 3})}]), (Ints{1, 11}));
  EXPECT_EQ(ints(a[{tensor({true, false, true}), 1}]), (Ints{1, 9}));
  EXPECT_EQ(ints(a[{1, tensor({0, 3})}]), (Ints{4, 7}));
  EXPECT_THAT(error_of([&] { (void)a[tensor({true, false})]; }), HasSubstr("mask of shape [2]"));
}

TEST(Brackets, WriteWhatIsAssigned) {
  const Tensor a = zeros({3, 4}, DType::Int64);
  a[{slice(0, 2), slice(1, 3)}] = tensor({{1, 2}, {3, 4}});
  a[{2}] = 9;
  EXPECT_EQ(ints(a), (Ints{0, 1, 2, 0, 0, 3, 4, 0, 9, 9, 9, 9}));
  a[a == 9] = 5;
  a[a == 5] += 1;
  a[{0, tensor({0, 3})}] = tensor({7, 8});
  EXPECT_EQ(ints(a), (Ints{7, 1, 2, 8, 0, 3, 4, 0, 6, 6, 6, 6}));
  a[{1}] *= 2;
  EXPECT_EQ(ints(a[1]), (Ints{0, 6, 8, 0}));
  a[{0}] = a[{1}];
  EXPECT_EQ(ints(a[0]), (Ints{0, 6, 8, 0}));
  Tensor row = a[{2}];  // a variable is another handle: to assign to it changes no element
  row = a[0];
  EXPECT_EQ(ints(a[2]), (Ints{6, 6, 6, 6}));
}

TEST(Shapes, CompareAndDefaultDevices) {
  EXPECT_TRUE(ones({2, 3}).sizes() == zeros({2, 3}).sizes());
  EXPECT_TRUE(ones({2, 3}).sizes() == (Dims{2, 3}));
  EXPECT_TRUE(default_device().is_cpu());
  const DefaultDevice on("cpu");
  EXPECT_TRUE(zeros({1}).device().is_cpu());
}

}  // namespace
}  // namespace ocltensor
