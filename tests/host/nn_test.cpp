// Modules, layers and optimizers.
#include "ocltensor/nn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_text.h"

namespace ocltensor::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

Floats floats(const Tensor& t) { return t.to_vector<float>(); }
struct Net : Module {
  Linear hidden{4, 8}, out{8, 3};
  BatchNorm norm{8};
  Dropout drop{0.5};
  Net() {
    add("hidden", hidden);
    add("norm", norm);
    add("drop", drop);
    add("out", out);
  }
  Tensor operator()(const Tensor& x) const { return out(drop(norm(hidden(x)).relu())); }
};

TEST(Modules, NameWhatTheyHold) {
  const Net net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.state()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("hidden.weight", "hidden.bias", "norm.weight", "norm.bias",
                                 "out.weight", "out.bias", "norm.running_mean", "norm.running_var",
                                 "norm.num_batches_tracked"));
  EXPECT_EQ(net.parameter_count(), 4 * 8 + 8 + 8 + 8 + 8 * 3 + 3);
  for (const Tensor& p : net.parameters()) EXPECT_TRUE(p.requires_grad());
  for (const auto& [name, tensor] : net.named_buffers()) EXPECT_FALSE(tensor.requires_grad());
  struct Wrong : Module {
    Wrong() {
      add_parameter("a", zeros({1}));
      add_buffer("a", zeros({1}));
    }
  };
  EXPECT_THAT(error_of([] { Wrong(); }), HasSubstr("'a' already"));
}

TEST(Modules, TrainAndEvaluate) {
  const Net net;
  const Tensor x = randn({16, 4});
  EXPECT_TRUE(net.drop.is_training());
  EXPECT_NE(floats(net(x)), floats(net(x)));  // dropout
  const Floats mean = floats(net.norm.running_mean);
  EXPECT_NE(mean, Floats(8, 0));
  net.eval();
  EXPECT_FALSE(net.drop.is_training());
  EXPECT_EQ(floats(net(x)), floats(net(x)));
  EXPECT_EQ(floats(net.norm.running_mean), mean);
}

TEST(Modules, MoveAndConvertInPlace) {
  const Net net;
  const Tensor held = net.hidden.weight;
  const Floats before = floats(held);
  net.to(DType::Float64);
  EXPECT_EQ(held.dtype(), DType::Float64);
  EXPECT_EQ(net.hidden.weight.dtype(), DType::Float64);
  EXPECT_EQ(floats(net.hidden.weight), before);
  EXPECT_TRUE(held.requires_grad());
  net.eval();
  EXPECT_EQ(net(randn({2, 4}, DType::Float64)).dtype(), DType::Float64);
}

TEST(Modules, KeepTheirState) {
  const Net a, b;
  a.eval(), b.eval();
  const Tensor x = randn({3, 4});
  EXPECT_NE(floats(a(x)), floats(b(x)));
  b.load_state(a.state());
  EXPECT_EQ(floats(a(x)), floats(b(x)));
  auto state = a.state();
  state.emplace_back("extra", zeros({1}));
  EXPECT_THAT(error_of([&] { b.load_state(state); }), HasSubstr("no 'extra'"));
  state = a.state();
  state.erase(state.begin());
  EXPECT_THAT(error_of([&] { b.load_state(state); }), HasSubstr("no 'hidden.weight'"));
  state = a.state();
  state[0].second = zeros({2, 2});
  EXPECT_THAT(error_of([&] { b.load_state(state); }), HasSubstr("shape [8, 4]"));
}

TEST(Modules, CountBatchesAsPyTorchDoes) {
  const BatchNorm norm(2);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 0);
  for (int i = 0; i < 3; ++i) (void)norm(randn({4, 2}));
  norm.eval();
  (void)norm(randn({4, 2}));
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 3);
  // The names of torch.nn.BatchNorm1d(2).state_dict(), and those of files without the number.
  NamedTensors state{{"weight", ones({2})},
                     {"bias", zeros({2})},
                     {"running_mean", full({2}, 5)},
                     {"running_var", ones({2})},
                     {"num_batches_tracked", tensor(int64_t{41})}};
  norm.load_state(state);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 41);
  state.pop_back();
  state[2].second = full({2}, 6);
  norm.load_state(state);
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 41);
  EXPECT_EQ(floats(norm.running_mean), Floats(2, 6));
}

// As torch.nn.functional's _verify_batch_size: what is refused there, and what is not.
TEST(Layers, RefuseToNormaliseOneValue) {
  const auto batch = [](const Dims& sizes, bool training) {
    return error_of([&] {
      (void)batch_norm(rand(sizes), zeros({3}), ones({3}), std::nullopt, std::nullopt, training);
    });
  };
  for (const Dims& sizes : {Dims{1, 3}, Dims{1, 3, 1}, Dims{1, 3, 1, 1}, Dims{1, 3, 1, 1, 1}}) {
    EXPECT_THAT(batch(sizes, true), HasSubstr("more than 1 value per channel when training"));
    EXPECT_EQ(batch(sizes, false), "no error");
    Dims larger = sizes;
    larger[0] = 2;
    EXPECT_EQ(batch(larger, true), "no error");
    if (sizes.size() == 2) continue;
    larger[0] = 1, larger.back() = 2;
    EXPECT_EQ(batch(larger, true), "no error");
  }
  EXPECT_THAT(error_of([] { (void)BatchNorm(3)(rand({1, 3})); }), HasSubstr("input size [1, 3]"));
  const auto group = [](const Dims& sizes, int64_t groups) {
    return error_of([&] { (void)group_norm(rand(sizes), groups); });
  };
  EXPECT_THAT(group({1, 3}, 3), HasSubstr("group_norm: expected more than 1 value"));
  EXPECT_THAT(group({1, 3, 1}, 3), HasSubstr("more than 1 value"));
  EXPECT_EQ(group({1, 3}, 1), "no error");
  EXPECT_EQ(group({2, 3}, 3), "no error");
  EXPECT_EQ(group({1, 3, 2}, 3), "no error");
  EXPECT_EQ(error_of([] { (void)layer_norm(rand({3, 1}), {1}); }), "no error");
}

TEST(Layers, StartAsPyTorchDoes) {
  const Linear linear(100, 50);
  const Conv2d conv(8, 4, {3, 5}, {.groups = 2});
  EXPECT_EQ(conv.weight.sizes(), (Dims{4, 4, 3, 5}));
  for (const auto& [t, inputs] : {std::pair(linear.weight, 100), std::pair(linear.bias, 100),
                                  std::pair(conv.weight, 60), std::pair(conv.bias, 60)}) {
    const double bound = 1 / std::sqrt(inputs);
    EXPECT_LE(t.abs().max().item<double>(), bound);
    if (t.numel() < 200) continue;
    // All of them under half the bound would be a chance of 2^-200.
    EXPECT_GE(t.abs().max().item<double>(), bound / 2);
  }
  EXPECT_FALSE(Linear(2, 2, {.bias = false}).bias.defined());
  EXPECT_THROW(Conv2d(3, 4, {3}, {.groups = 2}), Error);
}

TEST(Layers, ComputeInAnotherType) {
  const Tensor x = randn({2, 3, 8, 8});
  const Conv2d conv(3, 4, {3}, {.padding = {1}, .compute = DType::BFloat16});
  const Tensor y = conv(x);
  EXPECT_EQ(y.dtype(), DType::Float32);
  const Tensor exact = conv2d(x, conv.weight, conv.bias, 1, 1);
  EXPECT_NE(floats(y), floats(exact));
  // 28 products of numbers under 4, each rounded to 2^-9 of itself
  EXPECT_LT((y - exact).abs().max().item<double>(), 28 * 4 * std::ldexp(1, -9));
  y.sum().backward();
  EXPECT_EQ(conv.weight.grad().dtype(), DType::Float32);
}

TEST(Layers, SequentialAndAttention) {
  const Sequential net(
      Linear(4, 6), [](const Tensor& x) { return x.tanh(); }, LayerNorm({6}), Linear(6, 2));
  EXPECT_EQ(net.named_parameters()[2].first, "2.weight");
  EXPECT_EQ(net(randn({5, 4})).sizes(), (Dims{5, 2}));
  const SelfAttention attention(8, 2);
  const Tensor x = randn({2, 5, 8}).requires_grad_();
  const Tensor y = attention(x, std::nullopt, true);
  EXPECT_EQ(y.sizes(), x.sizes());
  const Tensor g = grad({y[{0, 1}].sum()}, {x})[0].abs().sum(2);
  const Floats depends = floats(g);  // on positions 0 and 1 of its own sequence
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(depends[i] != 0, i < 2) << i;
}

// One parameter x with gradient 2 x, step by step, against the formulas in double.
class Optimizers : public ::testing::Test {
 protected:
  Tensor x = tensor({1.f, -2.f}).requires_grad_();
  void backward() {
    x.set_grad(Tensor());
    (x * x).sum().backward();
  }
};

TEST_F(Optimizers, Sgd) {
  SGD sgd({x}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  double value = 1, velocity = 0;
  for (int i = 0; i < 5; ++i) {
    backward();
    sgd.step();
    velocity = 0.9 * velocity + 2 * value + 0.01 * value;
    value -= 0.1 * velocity;
    EXPECT_NEAR(x[0].item<double>(), value, 1e-6);
  }
  SGD plain({x}, {.lr = 0.5});
  backward();
  plain.step();
  EXPECT_NEAR(x[0].item<double>(), 0, 1e-6);
}

TEST_F(Optimizers, AdamAndItsRelative) {
  for (const bool decoupled : {false, true}) {
    x = tensor({1.f, -2.f}).requires_grad_();
    std::unique_ptr<Optimizer> adam;
    const Adam::Options options{.lr = 0.1, .weight_decay = 0.1};
    if (decoupled)
      adam = std::make_unique<AdamW>(std::vector<Tensor>{x}, options);
    else
      adam = std::make_unique<Adam>(std::vector<Tensor>{x}, options);
    double value = 1, m = 0, v = 0;
    for (int i = 1; i <= 5; ++i) {
      backward();
      adam->step();
      const double g = 2 * value + (decoupled ? 0 : 0.1 * value);
      if (decoupled) value *= 1 - 0.1 * 0.1;
      m = 0.9 * m + 0.1 * g;
      v = 0.999 * v + 0.001 * g * g;
      value -=
          0.1 * (m / (1 - std::pow(0.9, i))) / (std::sqrt(v / (1 - std::pow(0.999, i))) + 1e-8);
      EXPECT_NEAR(x[0].item<double>(), value, 1e-5) << i;
    }
  }
}

TEST_F(Optimizers, CountTheStepsOfEachParameter) {
  const Tensor y = tensor({1.f, -2.f}).requires_grad_();
  const Tensor alone = tensor({1.f, -2.f}).requires_grad_();
  Adam both({x, y}, {.lr = 0.1}), one({alone}, {.lr = 0.1});
  const auto step = [](const Tensor& t) {
    t.set_grad(Tensor());
    (t * t).sum().backward();
  };
  step(x), step(y), step(alone);
  both.step(), one.step();
  y.set_grad(Tensor());  // y rests
  step(x);
  both.step();
  step(x), step(y), step(alone);
  both.step(), one.step();
  EXPECT_EQ(floats(y), floats(alone));
  EXPECT_NE(floats(x), floats(y));
}

TEST_F(Optimizers, ClipTheCommonNorm) {
  const Tensor y = tensor({2.f}).requires_grad_();
  ((x * x).sum() + (y * y).sum()).backward();  // gradients 2, -4 and 4: norm 6
  EXPECT_NEAR(clip_grad_norm_({x, y}, 3).item<double>(), 6, 1e-5);
  EXPECT_NEAR(x.grad()[1].item<double>(), -2, 1e-5);
  EXPECT_NEAR(clip_grad_norm_({x, y}, 30).item<double>(), 3, 1e-5);
  EXPECT_NEAR(y.grad()[0].item<double>(), 2, 1e-5);
}

TEST(Training, LearnsAFunction) {
  manual_seed(1);
  const Tensor x = rand({256, 2}) * 2 - 1;
  const Tensor inside = ((x * x).sum(1) < 0.5).to(DType::Int64);
  const Sequential net(
      Linear(2, 32), [](const Tensor& t) { return t.tanh(); }, Linear(32, 2));
  AdamW adam(net.parameters(), {.lr = 0.02});
  for (int i = 0; i < 200; ++i) {
    net.zero_grad();
    cross_entropy(net(x), inside).backward();
    adam.step();
  }
  const NoGrad off;
  EXPECT_GT((net(x).argmax(1) == inside).to(DType::Float32).mean().item<double>(), 0.97);
}

}  // namespace
}  // namespace ocltensor::nn
