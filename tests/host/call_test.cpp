// Operators through the dispatcher, on the CPU: generated functions, outputs, overlap, boxed calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "ocltensor/ocltensor.h"
#include "support/error_text.h"

namespace ocltensor {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Generated, NumbersKeepTheirKind) {
  const Tensor i = tensor<int32_t>({1, 2, 3});
  EXPECT_EQ(add(i, 1).dtype(), DType::Int32);
  EXPECT_EQ(add(i, 1.5).dtype(), DType::Float32);
  EXPECT_EQ(add(i, true).dtype(), DType::Int32);
  EXPECT_EQ(add(i, size_t{4}).to_vector<int64_t>(), (std::vector<int64_t>{5, 6, 7}));
  EXPECT_THAT(sub(10, i).to_vector<float>(), ElementsAre(9, 8, 7));
  EXPECT_THAT(sub(i, i, 3).to_vector<float>(), ElementsAre(-2, -4, -6));
  EXPECT_EQ(mul(i, tensor<double>({0.5}).select(0, 0)).dtype(), DType::Float64);
}

TEST(Generated, OptionalAndDefaultArguments) {
  const Tensor t = tensor<float>({-2, 0.5, 9});
  EXPECT_THAT(clamp(t, 0).to_vector<float>(), ElementsAre(0, 0.5, 9));
  EXPECT_THAT(clamp(t, std::nullopt, 1).to_vector<float>(), ElementsAre(-2, 0.5, 1));
  EXPECT_THAT(clamp(t, tensor<float>({-1, 1, 10}), 20).to_vector<float>(), ElementsAre(-1, 1, 10));
  EXPECT_THAT(div(t, 2, "floor").to_vector<float>(), ElementsAre(-1, 0, 4));
  EXPECT_THAT(div(t, 2, std::nullopt).to_vector<float>(), ElementsAre(-1, 0.25, 4.5));
  const Tensor m = t.unsqueeze(0);
  EXPECT_EQ(sum(m, 1).item<float>(), 7.5f);
  EXPECT_EQ(sum(m, std::nullopt).item<float>(), 7.5f);
  EXPECT_EQ(sum(m, {0, 1}, true).dim(), 2);
  EXPECT_EQ(sum(m, 1, false, DType::Float64).dtype(), DType::Float64);
  EXPECT_EQ(cat({t, t, m.squeeze()}).numel(), 9);
}

TEST(Generated, FactoriesTakeTypeAndDevice) {
  EXPECT_EQ(arange(0, 5).dtype(), DType::Int64);
  EXPECT_THAT(arange(0, 3, 1, DType::Float64).to_vector<double>(), ElementsAre(0, 1, 2));
  EXPECT_THAT(linspace(0, 1, 3).to_vector<float>(), ElementsAre(0, 0.5, 1));
  EXPECT_THAT(eye(2, 2, DType::Int32).to_vector<int32_t>(), ElementsAre(1, 0, 0, 1));
  Tensor out = empty({0}, DType::Int16);
  arange_out(out, 2, 5);
  EXPECT_THAT(out.to_vector<int16_t>(), ElementsAre(2, 3, 4));
}

TEST(Generated, ManyOutputs) {
  const auto [lowest, highest] = aminmax(tensor<float>({3, -1, 2}));
  EXPECT_EQ(lowest.item<float>(), -1);
  EXPECT_EQ(highest.item<float>(), 3);
}

TEST(Outputs, AreCastResizedAndKeepTheirStrides) {
  const Tensor a = tensor<float>({1, 2, 3, 4}, {2, 2});
  Tensor out = empty({0}, DType::Float64);
  EXPECT_EQ(&add_out(out, a, a), &out);
  EXPECT_EQ(out.dtype(), DType::Float64);
  EXPECT_THAT(out.to_vector<double>(), ElementsAre(2, 4, 6, 8));
  Tensor wide = zeros({2, 4});
  Tensor gaps = wide.slice(1, 0, 4, 2);
  mul_out(gaps, a, 10);
  EXPECT_THAT(wide.to_vector<float>(), ElementsAre(10, 0, 20, 0, 30, 0, 40, 0));
  Tensor integers = empty({2, 2}, DType::Int32);
  EXPECT_THAT(error_of([&] { add_out(integers, a, a); }),
              HasSubstr("float32 can't be cast to the desired output type int32"));
}

TEST(Outputs, InPlaceKeepsShapeAndType) {
  Tensor a = tensor<float>({1, 2, 3});
  add_(a, tensor<double>({0.5, 0.5, 0.5}));
  EXPECT_THAT(a.to_vector<float>(), ElementsAre(1.5, 2.5, 3.5));
  EXPECT_EQ(a.dtype(), DType::Float32);
  mul_(a.slice(0, 1), 2);
  EXPECT_THAT(a.to_vector<float>(), ElementsAre(1.5, 5, 7));
  EXPECT_THAT(error_of([&] {
                add_(a, zeros({2, 3}));
              }),
              HasSubstr("doesn't match the broadcast shape"));
  Tensor i = tensor<int32_t>({4});
  EXPECT_THAT(error_of([&] { div_(i, 2); }), HasSubstr("can't be cast"));
}

TEST(Outputs, OverlapIsRefusedOrAvoided) {
  const Tensor t = tensor<float>({1, 2, 3, 4, 5, 6});
  Tensor shifted = t.slice(0, 1);
  EXPECT_THAT(error_of([&] { add_out(shifted, t.slice(0, 0, 5), 1); }),
              HasSubstr("elements of argument 'self' and the written-to tensor"));
  Tensor repeated = zeros({1}).expand({3});
  EXPECT_THAT(error_of([&] { add_out(repeated, t.slice(0, 0, 3), 1); }),
              HasSubstr("more than one element of the written-to tensor"));
  // Interleaved places cross without sharing an element.
  Tensor odd = t.slice(0, 1, 6, 2);
  add_out(odd, t.slice(0, 0, 6, 2), 100);
  EXPECT_THAT(t.to_vector<float>(), ElementsAre(1, 101, 3, 103, 5, 105));
  // Crossing strides that do share: the inputs are read first.
  Tensor u = tensor<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3}).slice(1, 0, 2).slice(0, 0, 2);
  Tensor target = u;
  add_out(target, u.t(), 0);
  EXPECT_THAT(u.to_vector<float>(), ElementsAre(1, 4, 2, 5));
  // Not pointwise: the output is an input.
  Tensor m = tensor<float>({1, 1, 0, 1}, {2, 2});
  mm_out(m, m, m);
  EXPECT_THAT(m.to_vector<float>(), ElementsAre(1, 2, 0, 1));
  // The same where only a part of it is.
  Tensor line = tensor<float>({1, 1, 0, 1, 0, 0}), overlapping = line.slice(0, 2).view({2, 2});
  const Tensor square = line.slice(0, 0, 4).view({2, 2});
  mm_out(overlapping, square, square);
  EXPECT_THAT(line.to_vector<float>(), ElementsAre(1, 1, 1, 2, 0, 1));
  // Operators of which ATen refuses that.
  Tensor all = tensor<float>({1, 2, 3});
  EXPECT_THAT(error_of([&] { index_select_out(all, all, 0, arange(0, 3)); }),
              HasSubstr("elements of argument 'self' and the written-to tensor"));
  // An output of another type takes the rounded result.
  Tensor rounded = empty({1}, DType::Float64);
  div_out(rounded, tensor<float>({1}), 3);
  EXPECT_EQ(rounded.item<double>(), static_cast<double>(1.0f / 3));
  Tensor both = zeros({3});
  EXPECT_THAT(error_of([&] { aminmax_out(both, both, t); }), HasSubstr("share memory"));
}

TEST(Outputs, ShapesThatDependOnData) {
  const Tensor t = tensor<float>({0, 3, 0, -1, 0, 7}, {2, 3});
  const Tensor places = nonzero(t);
  EXPECT_EQ(places.size(0), 3);
  EXPECT_THAT(places.to_vector<int64_t>(), ElementsAre(0, 1, 1, 0, 1, 2));
  EXPECT_THAT(masked_select(t.t(), gt(t.t(), 0)).to_vector<float>(), ElementsAre(3, 7));
  EXPECT_EQ(nonzero(zeros({4})).numel(), 0);
  Tensor out = full({9}, 5);
  masked_select_out(out, t, ne(t, 0));
  EXPECT_THAT(out.to_vector<float>(), ElementsAre(3, -1, 7));
}

TEST(Errors, InferenceSpeaksForTheOperator) {
  EXPECT_THAT(error_of([] { mm(zeros({2, 3}), zeros({2, 3})); }), HasSubstr("mm.out"));
  EXPECT_THAT(error_of([] { add(zeros({2}), zeros({3})); }),
              HasSubstr("add.out: The size of tensor a (2) must match"));
  EXPECT_THAT(error_of([] { sum(zeros({2}), 5); }), HasSubstr("sum.IntList_out: dimension 5 is"));
  EXPECT_THAT(error_of([] { exp(Tensor()); }),
              HasSubstr("'self' must be a tensor, got an undefined tensor"));
}

TEST(Errors, FunctionsOfTensorNameThemselves) {
  const Tensor t = zeros({2, 3});
  EXPECT_THAT(error_of([&] { t.transpose(0, 5); }), HasSubstr("transpose: dimension 5 is"));
  EXPECT_THAT(error_of([&] { (void)t.size(2); }), HasSubstr("size: dimension 2 is"));
  EXPECT_THAT(error_of([&] { t.expand({3, 3}); }), HasSubstr("expand: a tensor of shape [2, 3]"));
  EXPECT_THAT(error_of([&] { t.copy_(zeros({2})); }), HasSubstr("copy_: a tensor of shape [2]"));
  EXPECT_THAT(error_of([] { (void)full({2}, 300, DType::UInt8); }),
              HasSubstr("fill_: value cannot be converted to type uint8 without overflow: 300"));
}

TEST(Errors, NamesThatAreNearAreListed) {
  const Tensor t = zeros({2});
  EXPECT_THAT(error_of([&] { call("ad.out", {t}); }), HasSubstr("'ad.out'; did you mean add.out"));
  EXPECT_THAT(error_of([&] { call("add", {t}); }), HasSubstr("did you mean add.out"));
  EXPECT_THAT(error_of([] { dtype_from_name("flaot32"); }), HasSubstr("did you mean float32"));
  for (const char* wrong : {"OCLTENSOR_ENABLE_FALBACK", "ENABLE_FALLBACK"}) {
    const auto near = HasSubstr("; did you mean OCLTENSOR_ENABLE_FALLBACK");
    EXPECT_THAT(error_of([&] { (void)get_setting(wrong); }), near);
    EXPECT_THAT(error_of([&] { set_setting(wrong, "1"); }), near);
  }
}

// The same status as where a device finds it out (tests/runtime/faults_test.cpp).
TEST(Errors, AnIndexOutOfRangeIsAnIndexError) {
  const Tensor x = ones({2, 3}), wrong = tensor<int64_t>({0, 7});
  error_of([&] { (void)x[wrong]; }, TB_E_INDEX);
  error_of([&] { (void)index_select(x, 0, wrong); }, TB_E_INDEX);
  error_of([&] { (void)gather(x, 0, tensor({{7, 0, 0}}, DType::Int64)); }, TB_E_INDEX);
  EXPECT_THAT(error_of([&] { (void)cross_entropy(x, wrong); }, TB_E_INDEX), HasSubstr("target 7"));
}

TEST(Errors, ATargetThatIsNoClassIsAnIndexError) {
  const Tensor probs = log_softmax(ones({5, 1, 4}), 2), labels = tensor({{1, 9}}, DType::Int64);
  EXPECT_THAT(error_of([&] { (void)_ctc_loss(probs, labels, {5}, {2}); }, TB_E_INDEX),
              HasSubstr("target 9 is out of range: there are 4 classes"));
  const Tensor listed = tensor({{0, 3, -1}}, DType::Int64);
  const auto margin = [&] {
    (void)multilabel_margin_loss_forward(ones({1, 3}), listed, Reduction::Mean);
  };
  EXPECT_THAT(error_of(margin, TB_E_INDEX), HasSubstr("target 3"));
}

TEST(Errors, WhatIsNoProbabilityIsRefused) {
  const Tensor half = full({3}, 0.5), beyond = tensor<float>({0, 1, 2});
  const Tensor nan = tensor<float>({0, 1, std::numeric_limits<float>::quiet_NaN()});
  for (const Tensor& wrong : {beyond, nan}) {
    EXPECT_THAT(error_of([&] { (void)binary_cross_entropy(wrong, half); }), HasSubstr("input"));
    EXPECT_THAT(error_of([&] { (void)binary_cross_entropy(half, wrong); }), HasSubstr("target"));
  }
}

// Offsets of rows that lie one after another.
TEST(Errors, OffsetsThatMakeNoSenseAreIndexErrors) {
  const auto rows = [](std::initializer_list<int64_t> offsets, bool from_start, bool to_end) {
    return _ocl_rows_of(tensor<int64_t>(offsets), 5, from_start, to_end);
  };
  EXPECT_THAT(rows({1, 1, 3}, false, false).to_vector<int64_t>(), ElementsAre(-1, 1, 1, 2, 2));
  error_of([&] { (void)rows({0, 3, 2}, false, false); }, TB_E_INDEX);
  error_of([&] { (void)rows({0, 6}, false, false); }, TB_E_INDEX);
  error_of([&] { (void)rows({1, 5}, true, false); }, TB_E_INDEX);
  error_of([&] { (void)rows({0, 4}, false, true); }, TB_E_INDEX);
}

TEST(Boxed, DefaultsNamesAndErrors) {
  const Tensor t = tensor<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_THAT(call("add.out", {t, t})[0].to_vector<float>(), ElementsAre(2, 4, 6, 8));
  const std::vector<Value> args{t, int64_t{1}};
  const std::vector<NamedValue> named{{"alpha", Value(0.5)}};
  EXPECT_THAT(call("add.out", args, named)[0].to_vector<float>(), ElementsAre(1.5, 2.5, 3.5, 4.5));
  EXPECT_EQ(call("sum.IntList_out", {t, int64_t{0}})[0].numel(), 2);
  EXPECT_EQ(call("amax.out", {t})[0].item<float>(), 4);
  EXPECT_THAT(error_of([&] { call("nothing.out", {t}); }), HasSubstr("no operator 'nothing.out'"));
  EXPECT_THAT(error_of([&] { call("add.out", {t}); }), HasSubstr("argument 'other' is missing"));
  const std::vector<NamedValue> wrong{{"beta", Value(1.0)}};
  EXPECT_THAT(error_of([&] { call("add.out", args, wrong); }), HasSubstr("no argument 'beta'"));
  EXPECT_GT(operator_schemas().size(), 200u);
}

}  // namespace
}  // namespace ocltensor
