// The tape: what is recorded, added up, refused and freed. The operators' formulas have their own
// test (tests/gradients).
#include "ocltensor/autograd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "ocltensor/ocltensor.h"
#include "support/error_text.h"

namespace ocltensor {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;

Floats floats(const Tensor& t) { return t.to_vector<float>(); }
Tensor leaf(std::initializer_list<float> values) {
  return tensor(std::vector<float>(values)).requires_grad_();
}
// Gradients of the classes' weights have no formula.
void backward_to_weights(const Tensor& weight) {
  nll_loss(zeros({1, 2}), tensor<int64_t>({1}), weight).backward();
}

TEST(Tape, FollowsTheChainRule) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 5});
  const Tensor z = (x * y + x.exp() / y).sum();
  EXPECT_TRUE(z.requires_grad());
  EXPECT_FALSE(z.is_leaf());
  EXPECT_FALSE(x.grad().defined());
  z.backward();
  const auto e1 = std::exp(1.f), e2 = std::exp(2.f);
  EXPECT_THAT(floats(x.grad()),
              ::testing::Pointwise(::testing::FloatNear(1e-5f), Floats{3 + e1 / 3, 5 + e2 / 5}));
  EXPECT_THAT(floats(y.grad()),
              ::testing::Pointwise(::testing::FloatNear(1e-5f), Floats{1 - e1 / 9, 2 - e2 / 25}));
}

TEST(Tape, AddsUpWhatIsUsedTwice) {
  const Tensor x = leaf({2, 3});
  const Tensor square = x * x;
  (square + square * x).sum().backward();  // x^2 + x^3
  EXPECT_EQ(floats(x.grad()), (Floats{4 + 12, 6 + 27}));
  (x * 10).sum().backward();  // to what is there
  EXPECT_EQ(floats(x.grad()), (Floats{26, 43}));
  x.set_grad(Tensor());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Tape, GradientsOfLeavesAreTheirOwn) {
  const Tensor a = leaf({1, 2}), b = leaf({3, 4});
  (a + b).backward(tensor({1.f, 1.f}));
  a.grad().mul_(5);
  EXPECT_EQ(floats(b.grad()), (Floats{1, 1}));
  const Tensor c = leaf({1, 2, 3});
  c.sum().backward();  // an expanded tensor is no place to write
  c.grad().add_(tensor({0.f, 1.f, 2.f}));
  EXPECT_EQ(floats(c.grad()), (Floats{1, 2, 3}));
}

TEST(Tape, SumsOverWhatWasBroadcast) {
  const Tensor row = leaf({1, 2, 3});
  const Tensor column = tensor({{1.f}, {2.f}}).requires_grad_();
  const Tensor number = tensor(2.f).requires_grad_();
  (row * column * number).sum().backward();
  EXPECT_EQ(floats(row.grad()), (Floats{6, 6, 6}));
  EXPECT_EQ(floats(column.grad()), (Floats{12, 12}));
  EXPECT_EQ(column.grad().sizes(), (Dims{2, 1}));
  EXPECT_EQ(floats(number.grad()), Floats{18});
}

TEST(Tape, GoesThroughViewsAndConversions) {
  const Tensor x = arange(0, 12, 1, DType::Float32).view({3, 4}).detach().requires_grad_();
  const Tensor weights = arange(1, 13, 1, DType::Float32).view({3, 4});
  const auto gradient = [&](const Tensor& y, const Tensor& w) {
    x.set_grad(Tensor());
    (y * w).sum().backward();
    return floats(x.grad());
  };
  const Floats all = floats(weights);
  EXPECT_EQ(gradient(x.t(), weights.t()), all);
  EXPECT_EQ(gradient(x.permute({1, 0}).unsqueeze(1).squeeze(), weights.t()), all);
  EXPECT_EQ(gradient(x.view({2, 6}).reshape({12}), weights.view({12})), all);
  EXPECT_EQ(gradient(x.t().flatten().contiguous(), weights.t().reshape({12})), all);
  EXPECT_EQ(gradient(x.to(DType::Float64), weights), all);
  EXPECT_EQ(x.grad().dtype(), DType::Float32);
  EXPECT_EQ(gradient(x.clone().cpu(), weights), all);
  EXPECT_EQ(gradient(x[1], weights[1]), (Floats{0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0}));
  EXPECT_EQ(gradient(x.slice(1, 1, 4, 2), weights.slice(1, 1, 4, 2)),
            (Floats{0, 2, 0, 4, 0, 6, 0, 8, 0, 10, 0, 12}));
  EXPECT_EQ(gradient(x[{0}].expand({2, 4}), weights.narrow(0, 0, 2)),
            (Floats{6, 8, 10, 12, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(gradient(x[x > 9.5], tensor({3.f, 4.f})), (Floats{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4}));
  EXPECT_EQ(gradient(pad(x, {1, -1}), pad(weights, {1, -1})),
            (Floats{1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11, 0}));
  EXPECT_EQ(gradient(stack({x, x}, 1).sum(1), weights),
            (Floats{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24}));
  EXPECT_EQ(gradient(split(x, 2, 1)[1], weights.narrow(1, 2, 2)),
            (Floats{0, 0, 3, 4, 0, 0, 7, 8, 0, 0, 11, 12}));
}

TEST(Tape, RecordsOnlyWhereItIsAsked) {
  const Tensor x = leaf({1, 2});
  EXPECT_TRUE(grad_enabled());
  {
    const NoGrad off;
    EXPECT_FALSE(grad_enabled());
    EXPECT_FALSE((x * 2).requires_grad());
    std::thread([] { EXPECT_TRUE(grad_enabled()); }).join();
  }
  EXPECT_TRUE(grad_enabled());
  EXPECT_FALSE((x.detach() * 2).requires_grad());
  EXPECT_FALSE((x > 1).requires_grad());
  EXPECT_FALSE(x.argmax().requires_grad());
  EXPECT_FALSE((tensor({1.f}) * 2).requires_grad());
  EXPECT_FALSE(x.uniform().requires_grad());
  EXPECT_TRUE(call("mul.out", {x, 2.0})[0].requires_grad());
  EXPECT_FALSE(x.requires_grad_(false).requires_grad());
}

TEST(Tape, RecordsResultsWhoseGradientIsRead) {
  const Tensor x = tensor({{1.f, 2.f}, {3.f, 5.f}}).requires_grad_();
  const auto [y, mean, rstd] = native_layer_norm(x, {2}, {}, {}, 0);
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(mean.requires_grad());
  EXPECT_FALSE(rstd.requires_grad());
  const auto [q, r] = linalg_qr(x);
  EXPECT_TRUE(q.requires_grad());
  EXPECT_TRUE(r.requires_grad());
  const auto [p, l, u] = lu_unpack(x, tensor<int32_t>({1, 2}));
  EXPECT_FALSE(p.requires_grad());
  EXPECT_TRUE(l.requires_grad());
}

TEST(Tape, RefusesWhatIsNotUnique) {
  const Tensor x = tensor({{1.f}, {2.f}}).requires_grad_();
  const auto message = [](const Tensor& t) {
    return error_of([&] { t.sum().backward(); }, TB_UNSUPPORTED);
  };
  EXPECT_THAT(message(std::get<0>(linalg_qr(x, "complete"))), HasSubstr("use 'reduced'"));
  EXPECT_THAT(message(std::get<1>(linalg_qr(x, "r"))), HasSubstr("use 'reduced'"));
  EXPECT_THAT(message(std::get<0>(_linalg_svd(x, true))), HasSubstr("full_matrices=false"));
}

TEST(Tape, CarriesComplexNumbers) {
  const Tensor x = leaf({1, 2, 3, 4});
  const Tensor spectrum = _fft_r2c(x, {0}, FftNorm::None, true);
  EXPECT_EQ(spectrum.dtype(), DType::Complex64);
  const Tensor filter = tensor({1.f, 0.5f, 0.25f}).to(DType::Complex64).requires_grad_();
  const Tensor y = _fft_c2r(spectrum * filter, {0}, FftNorm::ByN, 4);
  (y * y).sum().backward();
  // By Parseval's theorem the sum is (|10 f0|^2 + 2 |(-2 + 2i) f1|^2 + |-2 f2|^2) / 4.
  EXPECT_EQ(filter.grad().dtype(), DType::Complex64);
  EXPECT_THAT(floats(filter.grad().abs()),
              ::testing::Pointwise(::testing::FloatNear(1e-5f), Floats{50, 4, 0.5f}));
  EXPECT_EQ(x.grad().dtype(), DType::Float32);
  EXPECT_NEAR(x.grad().sum().item<double>(), 4 * 5, 1e-5);  // that of the mean, times 4
}

TEST(Tape, ConjugatesComplexNumbersOfACall) {
  const Tensor z = ones({2}, DType::Complex64).requires_grad_();
  const Tensor direction = ones({2}, DType::Complex64);
  const auto gradient = [&](const Tensor& y) { return grad({y}, {z}, {direction})[0][0].item(); };
  const Scalar number(std::complex<double>(2, 3));
  EXPECT_EQ(gradient(add(direction, z, number)).as_complex(), std::complex<double>(2, -3));
  EXPECT_EQ(gradient(z * number).as_complex(), std::complex<double>(2, -3));
}

TEST(Tape, TellsWhereComplexNumbersHaveNoDerivative) {
  const Tensor z = leaf({1, 2}).detach().to(DType::Complex64).requires_grad_();
  EXPECT_THAT(error_of([&] { z.sum().backward(); }), HasSubstr("take abs()"));
  EXPECT_THAT(error_of([&] { z.prod().abs().backward(); }, TB_UNSUPPORTED),
              HasSubstr("prod.out is not known for complex numbers"));
  z.sum().backward(tensor(1.f).to(DType::Complex64).reshape({}));
  EXPECT_EQ(floats(z.grad().abs()), (Floats{1, 1}));
}

TEST(Tape, ComputesInTheTypeOfTheResult) {
  const Tensor x = tensor(3.0).requires_grad_();
  const Tensor y = tensor(1.0).to(DType::BFloat16);
  (x.reshape({1}).atan2((y + 0.0078125f).reshape({1}))).sum().backward();
  const double other = 1.0078125;
  EXPECT_NEAR(x.grad().item<double>(), other / (9 + other * other), 1e-15);
}

TEST(Tape, GivesGradientsOfInnerTensors) {
  const Tensor x = leaf({1, 2}), y = leaf({3, 4}), unused = leaf({1});
  const Tensor inner = x * y;
  const auto found = grad({(inner * inner).sum()}, {inner, x, unused});
  EXPECT_EQ(floats(found[0]), (Floats{6, 16}));
  EXPECT_EQ(floats(found[1]), (Floats{18, 64}));
  EXPECT_FALSE(found[2].defined());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Tape, TakesFunctionsOfOnesOwn) {
  const auto cube = [](const Tensor& x) {
    const Tensor y = [&] {
      const NoGrad off;
      return x * x * x;
    }();
    return record("cube", {x}, {y}, [x](const std::vector<Tensor>& g) {
      return std::vector<Tensor>{g[0] * 3 * x * x};
    })[0];
  };
  const Tensor x = leaf({2, 3});
  (cube(x) * 2).sum().backward();
  EXPECT_EQ(floats(x.grad()), (Floats{24, 54}));
  EXPECT_FALSE(cube(x.detach()).requires_grad());
}

TEST(Tape, DropsWithTheMaskOfTheForward) {
  const Tensor x = ones({200}).requires_grad_();
  const Tensor y = dropout(x, 0.5);
  y.sum().backward();
  EXPECT_EQ(floats(x.grad()), floats(y));
}

TEST(InPlace, IsRecorded) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  y.add_(x).mul_(2);  // 2 (3 x + x)
  y += 1;
  y.sum().backward();
  EXPECT_EQ(floats(x.grad()), (Floats{8, 8}));
  const Tensor buffer = zeros({2});
  buffer.copy_(x);
  EXPECT_TRUE(buffer.requires_grad());
  (buffer * buffer).sum().backward();
  EXPECT_EQ(floats(x.grad()), (Floats{10, 12}));
  Tensor z = x * 2;
  z.fill_(7);
  EXPECT_EQ(floats(grad({(z * x).sum()}, {x})[0]), (Floats{7, 7}));
}

TEST(InPlace, IsRefusedWhereAGradientWouldBeWrong) {
  const Tensor x = leaf({1, 2});
  EXPECT_THAT(error_of([&] { x.add_(1); }), HasSubstr("leaf"));
  EXPECT_THAT(error_of([&] { x[0] = 3; }), HasSubstr("share its memory"));
  const Tensor y = x * 2;
  const Tensor view = y[0];
  EXPECT_THAT(error_of([&] { view.add_(1); }), HasSubstr("share its memory"));
  EXPECT_THAT(error_of([&] { y.add_(1); }), HasSubstr("share its memory"));
  const Tensor target = zeros({2, 2});
  EXPECT_THAT(error_of([&] { target[0] = x; }), HasSubstr("share its memory"));
  Tensor out = zeros({2});
  EXPECT_THAT(error_of([&] { mul_out(out, x, x); }), HasSubstr("out argument"));
  EXPECT_EQ(floats(out), (Floats{0, 0}));
}

TEST(InPlace, ChangesOfWhatWasSavedAreNoticed) {
  const Tensor x = leaf({1, 2}), factor = tensor({3.f, 4.f});
  const Tensor y = (x * factor).sum();
  factor.add_(1);
  EXPECT_THAT(error_of([&] { y.backward(); }), HasSubstr("changed in place since"));
  const Tensor z = (x * x).sum();
  {
    const NoGrad off;
    x.mul_(2);  // a step of an optimizer
  }
  EXPECT_THAT(error_of([&] { z.backward(); }), HasSubstr("mul.out"));
  (x * 5).sum().backward();  // and the next iteration
  EXPECT_EQ(floats(x.grad()), (Floats{5, 5}));
  const Tensor inner = x * 2;
  {
    const NoGrad off;
    inner[0] = 3;
  }
  EXPECT_THAT(error_of([&] { (void)(inner * 2); }), HasSubstr("another tensor of the same memory"));
}

TEST(Errors, SayWhatToDo) {
  const Tensor x = leaf({1, 2});
  EXPECT_THAT(error_of([&] { (x * 2).backward(); }), HasSubstr("to start with"));
  EXPECT_THAT(error_of([&] { (x * 2).backward(tensor({1.f})); }), HasSubstr("shape [1]"));
  EXPECT_THAT(error_of([] { tensor({1.f}).backward(); }), HasSubstr("does not depend"));
  EXPECT_THAT(error_of([] {
                tensor({1, 2}).requires_grad_();
              }),
              HasSubstr("floating or complex type"));
  EXPECT_THAT(error_of([&] { (x * 2).requires_grad_(); }), HasSubstr("mul.out"));
  const Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_THAT(error_of([&] { y.backward(); }), HasSubstr("retain"));
  EXPECT_THAT(error_of(
                  [&] {
                    std::get<1>(geqrf(x.view({1, 2}))).sum().backward();
                  },
                  TB_UNSUPPORTED),
              HasSubstr("derivative of geqrf.a is not known"));
  EXPECT_THAT(error_of([&] { backward_to_weights(x); }, TB_UNSUPPORTED),
              HasSubstr("'weight' is not known"));
}

TEST(Tape, IsFreedWithoutRecursion) {
  const Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = y + 1;
  y = Tensor();  // 200,000 nodes, one behind the other
  Tensor z = x;
  for (int i = 0; i < 50000; ++i) z = z * 1;
  z.backward();
  EXPECT_EQ(floats(x.grad()), Floats{1});
}

}  // namespace
}  // namespace ocltensor
