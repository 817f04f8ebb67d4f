// The functions that people type, against loops over the elements.
#include "ocltensor/functional.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace ocltensor {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

Floats floats(const Tensor& t) { return t.to_vector<float>(); }
Ints ints(const Tensor& t) { return t.to_vector<int64_t>(); }
Ints sizes(const Tensor& t) { return {t.sizes().begin(), t.sizes().end()}; }
Tensor random(const Dims& shape, uint64_t seed) {
  return randn(shape, {}, Generator(Device(), seed));
}
// float32 sums of under 100 terms of size 1: 100 roundings of 6e-8.
constexpr double kClose = 1e-5;

void expect_close(const Tensor& got, const std::vector<double>& wanted) {
  const auto values = got.to_vector<double>();
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], wanted[i], kClose) << i;
}

// Element [b..., i, j] of a product with broadcast batches, by its definition.
std::vector<double> product(const Tensor& a, const Tensor& b, const Dims& batch) {
  Dims left = batch, right = batch;
  for (const int64_t d : {-2, -1}) left.push_back(a.size(d)), right.push_back(b.size(d));
  const auto x = a.expand(left).to_vector<double>(), y = b.expand(right).to_vector<double>();
  const auto m = static_cast<size_t>(a.size(-2)), k = static_cast<size_t>(a.size(-1)),
             n = static_cast<size_t>(b.size(-1));
  std::vector<double> result;
  for (size_t at = 0; at < x.size() / (m * k); ++at)
    for (size_t i = 0; i < m; ++i)
      for (size_t j = 0; j < n; ++j) {
        double sum = 0;
        for (size_t l = 0; l < k; ++l) sum += x[(at * m + i) * k + l] * y[(at * k + l) * n + j];
        result.push_back(sum);
      }
  return result;
}

TEST(Functional, Matmul) {
  const Tensor v = random({4}, 1), w = random({4}, 2), a = random({3, 4}, 3), b = random({4, 5}, 4);
  expect_close(matmul(v, w), product(v.unsqueeze(0), w.unsqueeze(1), {}));
  expect_close(matmul(a, v), product(a, v.unsqueeze(1), {}));
  expect_close(matmul(v, b), product(v.unsqueeze(0), b, {}));
  expect_close(matmul(a, b), product(a, b, {}));
  const Tensor p = random({2, 1, 3, 4}, 5), q = random({7, 4, 5}, 6);
  EXPECT_EQ(sizes(matmul(p, q)), (Ints{2, 7, 3, 5}));
  expect_close(matmul(p, q), product(p, q, {2, 7}));
  expect_close(matmul(p, b), product(p, b, {2, 1}));
  EXPECT_EQ(sizes(matmul(p, v)), (Ints{2, 1, 3}));
  expect_close(matmul(p, v), product(p, v.unsqueeze(1), {2, 1}));
  EXPECT_EQ(sizes(matmul(v, q)), (Ints{7, 5}));
  expect_close(matmul(v, q), product(v.unsqueeze(0), q, {7}));
  EXPECT_EQ(matmul(zeros({0, 3}), zeros({3, 2})).numel(), 0);
  EXPECT_EQ(floats(matmul(zeros({2, 0}), zeros({0, 2}))), (Floats{0, 0, 0, 0}));
  EXPECT_THROW(matmul(a, a), Error);
  EXPECT_THROW(matmul(tensor(1.f), a), Error);
}

TEST(Functional, LinearAndOuter) {
  const Tensor x = random({2, 3, 4}, 7), w = random({5, 4}, 8), b = random({5}, 9);
  auto wanted = product(x, w.t(), {2});
  expect_close(linear(x, w), wanted);
  const auto bias = b.to_vector<double>();
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] += bias[i % 5];
  expect_close(linear(x, w, b), wanted);
  expect_close(linear(x.view({6, 4}), w, b), wanted);
  EXPECT_EQ(floats(outer(tensor({1.f, 2.f}), tensor({3.f, 4.f}))), (Floats{3, 4, 6, 8}));
  EXPECT_THROW(linear(x, w.t()), Error);
}

TEST(Functional, Convolutions) {
  const Tensor x = random({2, 3, 6, 5}, 10), w = random({4, 3, 3, 3}, 11), b = random({4}, 12);
  const Tensor y = conv2d(x, w, b, 2, 1);
  ASSERT_EQ(sizes(y), (Ints{2, 4, 3, 3}));
  std::vector<double> wanted;
  for (int64_t n = 0; n < 2; ++n)
    for (int64_t o = 0; o < 4; ++o)
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t c = 0; c < 3; ++c) {
          double sum = b[o].item<double>();
          for (int64_t i = 0; i < 3; ++i)
            for (int64_t kr = 0; kr < 3; ++kr)
              for (int64_t kc = 0; kc < 3; ++kc) {
                const int64_t row = 2 * r + kr - 1, column = 2 * c + kc - 1;
                if (row < 0 || row >= 6 || column < 0 || column >= 5) continue;
                sum += x[{n, i, row, column}].item<double>() * w[{o, i, kr, kc}].item<double>();
              }
          wanted.push_back(sum);
        }
  expect_close(y, wanted);
  expect_close(conv2d(x[0], w, b, {2, 2}, {1, 1}), {wanted.begin(), wanted.begin() + 36});
  // One-dimensional as an image of one row, and the shape of a transposed one.
  expect_close(
      conv1d(x[0].select(1, 0), w.select(2, 1), std::nullopt, 1, 1),
      conv2d(x[0].narrow(1, 0, 1), w.narrow(2, 1, 1), std::nullopt, 1, {0, 1}).to_vector<double>());
  const Tensor back = conv_transpose2d(y, w.narrow(1, 0, 3), std::nullopt, 2, 1, {1, 0});
  EXPECT_EQ(sizes(back), sizes(x));
  EXPECT_EQ(sizes(conv3d(random({1, 2, 4, 4, 4}, 1), random({3, 2, 2, 2, 2}, 2))),
            (Ints{1, 3, 3, 3, 3}));
  EXPECT_THROW(conv2d(random({3}, 1), w), Error);
  EXPECT_THROW(conv2d(x, w, b, {1, 1, 1}), Error);
}

TEST(Functional, CrossEntropy) {
  const Tensor x = random({4, 3}, 13);
  const Tensor target = tensor<int64_t>({2, 0, -100, 1});
  const Tensor weight = tensor({1.f, 2.f, 4.f});
  std::vector<double> each;
  double sum = 0, weights = 0;
  for (int64_t n = 0; n < 4; ++n) {
    const auto t = target[n].item<int64_t>();
    if (t < 0) {
      each.push_back(0);
      continue;
    }
    double total = 0;
    for (int64_t c = 0; c < 3; ++c) total += std::exp(x[{n, c}].item<double>());
    const double w = weight[t].item<double>();
    each.push_back(w * (std::log(total) - x[{n, t}].item<double>()));
    sum += each.back();
    weights += w;
  }
  expect_close(cross_entropy(x, target, weight), {sum / weights});
  expect_close(cross_entropy(x, target, weight, -100, Reduction::Sum), {sum});
  expect_close(cross_entropy(x, target, weight, -100, Reduction::None), each);
  // The same samples as positions of an image and of a line.
  const Tensor line = x.t().contiguous().view({1, 3, 4}), image = line.view({1, 3, 2, 2});
  expect_close(cross_entropy(line, target.view({1, 4}), weight), {sum / weights});
  expect_close(cross_entropy(line, target.view({1, 4}), weight, -100, Reduction::None), each);
  expect_close(cross_entropy(image, target.view({1, 2, 2}), weight), {sum / weights});
}

TEST(Functional, OtherLosses) {
  const Tensor x = tensor({0.5f, -2.f, 30.f}), t = tensor({1.f, 0.f, 0.25f});
  EXPECT_NEAR(l1_loss(x, t).item<double>(), (0.5 + 2 + 29.75) / 3, kClose);
  const Tensor positive = tensor({3.f, 1.f, 2.f});
  const auto loss = [](double v, double target, double p) {
    const double s = 1 / (1 + std::exp(-v));
    return -(p * target * std::log(s) + (1 - target) * (-v - std::log1p(std::exp(-v))));
  };
  expect_close(binary_cross_entropy_with_logits(x, t, std::nullopt, positive, Reduction::None),
               {loss(0.5, 1, 3), loss(-2, 0, 1), loss(30, 0.25, 2)});
  expect_close(
      binary_cross_entropy_with_logits(x, t, tensor({2.f, 0.f, 1.f}), std::nullopt, Reduction::Sum),
      {2 * loss(0.5, 1, 1) + loss(30, 0.25, 1)});
}

TEST(Functional, SoftmaxAndNorms) {
  const Tensor x = random({2, 6}, 14);
  const auto v = x.to_vector<double>();
  std::vector<double> probabilities, normal;
  for (size_t r = 0; r < 2; ++r) {
    double total = 0, mean = 0, square = 0;
    for (size_t c = 0; c < 6; ++c) {
      total += std::exp(v[6 * r + c]);
      mean += v[6 * r + c] / 6;
    }
    for (size_t c = 0; c < 6; ++c) square += (v[6 * r + c] - mean) * (v[6 * r + c] - mean) / 6;
    for (size_t c = 0; c < 6; ++c) {
      probabilities.push_back(std::exp(v[6 * r + c]) / total);
      normal.push_back((v[6 * r + c] - mean) / std::sqrt(square + 1e-5));
    }
  }
  expect_close(softmax(x, 1), probabilities);
  expect_close(log_softmax(x, 1).exp(), probabilities);
  EXPECT_EQ(softmax(x, 1, DType::Float64).dtype(), DType::Float64);
  expect_close(layer_norm(x, {6}), normal);
  expect_close(group_norm(x.view({2, 2, 3}), 1), normal);
  expect_close(
      batch_norm(x.view({1, 2, 6}), std::nullopt, std::nullopt, std::nullopt, std::nullopt, true),
      normal);
  EXPECT_THROW(batch_norm(x, std::nullopt, std::nullopt), Error);
}

TEST(Functional, Attention) {
  const Tensor q = random({2, 3, 5, 4}, 15), k = random({2, 3, 6, 4}, 16),
               v = random({2, 3, 6, 7}, 17);
  const auto expected = [&](const Tensor& bias) {
    return matmul(softmax(matmul(q, k.transpose(2, 3)) / 2 + bias, -1), v).to_vector<double>();
  };
  expect_close(scaled_dot_product_attention(q, k, v), expected(zeros({1})));
  const Tensor mask = random({5, 6}, 18);
  expect_close(scaled_dot_product_attention(q, k, v, mask), expected(mask));
  const Tensor allowed = ones({5, 6}, DType::Bool).tril(1);
  const Tensor bias = zeros({5, 6}).masked_fill(~allowed, -INFINITY);
  expect_close(scaled_dot_product_attention(q, k, v, allowed), expected(bias));
  const auto all = expected(zeros({1}));
  expect_close(scaled_dot_product_attention(q[0], k[0], v[0]), {all.begin(), all.begin() + 105});
  EXPECT_EQ(sizes(scaled_dot_product_attention(q, k, v, std::nullopt, 0.5)), (Ints{2, 3, 5, 7}));
}

TEST(Functional, JoiningAndDividing) {
  const Tensor a = arange(6).view({2, 3});
  EXPECT_EQ(sizes(stack({a, a, a}, 1)), (Ints{2, 3, 3}));
  EXPECT_EQ(ints(stack({a[0], a[1]}, -1)), (Ints{0, 3, 1, 4, 2, 5}));
  EXPECT_THROW(stack({a, a[0]}), Error);
  const auto ranges = split(arange(7), 3);
  ASSERT_EQ(ranges.size(), 3u);
  EXPECT_EQ(ints(ranges[2]), Ints{6});
  EXPECT_EQ(ints(split(a, {1, 2}, 1)[1]), (Ints{1, 2, 4, 5}));
  EXPECT_THROW(split(a, {1, 1}, 1), Error);
  EXPECT_EQ(chunk(arange(7), 3)[0].numel(), 3);
  EXPECT_EQ(unbind(a, 1).size(), 3u);
  EXPECT_EQ(ints(pad(a, {1, 2, 0, 1}, 9)),
            (Ints{9, 0, 1, 2, 9, 9, 9, 3, 4, 5, 9, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(ints(pad(a, {-1, 0})), (Ints{1, 2, 4, 5}));
  EXPECT_EQ(ints(one_hot(tensor<int64_t>({1, 0}), 3)), (Ints{0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(sizes(one_hot(tensor<int64_t>({{4, 0}}))), (Ints{1, 2, 5}));
}

TEST(Functional, RandomNumbers) {
  const Tensor normal = random({10000}, 19);
  // Mean and variance of 10,000 normal numbers: five standard errors are 0.05 and 0.07.
  EXPECT_NEAR(normal.mean().item<double>(), 0, 0.05);
  EXPECT_NEAR(normal.var().item<double>(), 1, 0.07);
  EXPECT_EQ(floats(random({4}, 3)), floats(random({4}, 3)));
  const Tensor whole = randint(-2, 3, {1000}, {}, Generator(Device(), 4));
  EXPECT_EQ(whole.dtype(), DType::Int64);
  const Ints drawn = ints(whole);
  EXPECT_EQ(std::set<int64_t>(drawn.begin(), drawn.end()), (std::set<int64_t>{-2, -1, 0, 1, 2}));
  Ints order = ints(randperm(50));
  std::sort(order.begin(), order.end());
  EXPECT_EQ(order, ints(arange(50)));
  const Tensor dropped = dropout(ones({1000}), 0.25);
  for (const float v : floats(dropped)) EXPECT_TRUE(v == 0 || std::abs(v - 4.f / 3) < 1e-6) << v;
  EXPECT_EQ(floats(dropout(ones({3}), 0.5, false)), (Floats{1, 1, 1}));
}

}  // namespace
}  // namespace ocltensor
