// Forward and backward passes.
#include "network.h"

#include <cmath>

namespace demo {
namespace {

namespace ot = ocltensor;

constexpr double kMomentum = 0.1;  // of the running statistics
constexpr double kEpsilon = 1e-5;

Parameter parameter(const Tensor& value) {
  return {value, ot::zeros_like(value), ot::zeros_like(value), ot::zeros_like(value)};
}

// He initialisation: normal with variance 2 / fan-in.
Parameter random_parameter(std::initializer_list<int64_t> sizes, int64_t fan_in, Device device) {
  const Tensor blank = ot::empty(sizes, {DType::Float32, device});
  return parameter(ot::normal(blank, 0.0, std::sqrt(2.0 / static_cast<double>(fan_in))));
}

}  // namespace

Convolution::Convolution(int64_t in, int64_t out, DType compute, Device device)
    : weight(random_parameter({out, in, 3, 3}, in * 9, device)), compute_(compute) {}

Tensor Convolution::forward(const Tensor& x) {
  input_ = x.to(compute_);
  used_weight_ = weight.value.to(compute_);
  return ot::convolution(input_, used_weight_, std::nullopt, {1, 1}, {1, 1}, {1, 1}, false, {0, 0},
                         1)
      .to(DType::Float32);
}

Tensor Convolution::backward(const Tensor& grad) {
  auto [to_input, to_weight, to_bias] =
      ot::convolution_backward(grad.to(compute_), input_, used_weight_, std::nullopt, {1, 1},
                               {1, 1}, {1, 1}, false, {0, 0}, 1, {true, true, false});
  weight.grad = to_weight.to(DType::Float32);
  return to_input.to(DType::Float32);
}

BatchNormRelu::BatchNormRelu(int64_t channels, Device device)
    : weight(parameter(ot::ones({channels}, {DType::Float32, device}))),
      bias(parameter(ot::zeros({channels}, {DType::Float32, device}))),
      mean_(ot::zeros({channels}, {DType::Float32, device})),
      variance_(ot::ones({channels}, {DType::Float32, device})) {}

Tensor BatchNormRelu::forward(const Tensor& x, bool training) {
  input_ = x;
  auto [normal, mean, invstd] = ot::native_batch_norm(x, weight.value, bias.value, mean_, variance_,
                                                      training, kMomentum, kEpsilon);
  save_mean_ = mean;
  save_invstd_ = invstd;
  output_ = ot::relu(normal);
  return output_;
}

Tensor BatchNormRelu::backward(const Tensor& grad) {
  const Tensor through_relu = ot::threshold_backward(grad, output_, 0);
  auto [to_input, to_weight, to_bias] =
      ot::native_batch_norm_backward(through_relu, input_, weight.value, mean_, variance_,
                                     save_mean_, save_invstd_, true, kEpsilon, {true, true, true});
  weight.grad = to_weight;
  bias.grad = to_bias;
  return to_input;
}

Tensor MaxPool::forward(const Tensor& x) {
  input_ = x;
  auto [out, indices] = ot::max_pool2d_with_indices(x, {2, 2}, {2, 2});
  indices_ = indices;
  return out;
}

Tensor MaxPool::backward(const Tensor& grad) {
  return ot::max_pool2d_with_indices_backward(grad, input_, {2, 2}, {2, 2}, {0, 0}, {1, 1}, false,
                                              indices_);
}

Tensor Dropout::forward(const Tensor& x, bool training) {
  if (!training) return x;
  auto [out, mask] = ot::native_dropout(x, p_, true);
  mask_ = mask;
  return out;
}

Tensor Dropout::backward(const Tensor& grad) {
  return ot::native_dropout_backward(grad, mask_, 1.0 / (1.0 - p_));
}

Linear::Linear(int64_t in, int64_t out, DType compute, Device device)
    : weight(random_parameter({out, in}, in, device)),
      bias(parameter(ot::zeros({out}, {DType::Float32, device}))),
      compute_(compute) {}

Tensor Linear::forward(const Tensor& x) {
  input_ = x.to(compute_);
  used_weight_ = weight.value.to(compute_);
  return ot::addmm(bias.value.to(compute_), input_, used_weight_.t()).to(DType::Float32);
}

Tensor Linear::backward(const Tensor& grad) {
  const Tensor g = grad.to(compute_);
  weight.grad = ot::mm(g.t(), input_).to(DType::Float32);
  bias.grad = ot::sum(grad, {0});
  return ot::mm(g, used_weight_).to(DType::Float32);
}

Network::Network(DType compute, Device device)
    : conv1_(1, 32, compute, device),
      conv2_(32, 64, compute, device),
      conv3_(64, 64, compute, device),
      norm1_(32, device),
      norm2_(64, device),
      norm3_(64, device),
      dropout_(0.25),
      linear_(64 * 2 * 2, 10, compute, device) {}

Tensor Network::forward(const Tensor& images, bool training) {
  Tensor x = norm1_.forward(conv1_.forward(images), training);
  x = pool1_.forward(norm2_.forward(conv2_.forward(x), training));
  x = pool2_.forward(norm3_.forward(conv3_.forward(x), training));
  features_ = Dims(x.sizes());
  x = dropout_.forward(x.flatten(1), training);
  output_ = ot::_log_softmax(linear_.forward(x), 1, false);
  return output_;
}

Tensor Network::backward(const Tensor& labels) {
  constexpr auto kMean = ot::Reduction::Mean;
  constexpr int64_t kIgnored = -100;
  auto [loss, total] = ot::nll_loss_forward(output_, labels, std::nullopt, kMean, kIgnored);
  Tensor g = ot::nll_loss_backward(ot::ones_like(loss), output_, labels, std::nullopt, kMean,
                                   kIgnored, total);
  g = linear_.backward(ot::_log_softmax_backward_data(g, output_, 1, DType::Float32));
  g = dropout_.backward(g).view(features_);
  g = conv3_.backward(norm3_.backward(pool2_.backward(g)));
  g = conv2_.backward(norm2_.backward(pool1_.backward(g)));
  conv1_.backward(norm1_.backward(g));
  return loss;
}

std::vector<Parameter*> Network::parameters() {
  return {&conv1_.weight, &norm1_.weight,  &norm1_.bias,   &conv2_.weight,
          &norm2_.weight, &norm2_.bias,    &conv3_.weight, &norm3_.weight,
          &norm3_.bias,   &linear_.weight, &linear_.bias};
}

void Adam::step(double rate) {
  constexpr double kBeta1 = 0.9;
  constexpr double kBeta2 = 0.999;
  ++steps_;
  const double correction1 = 1 - std::pow(kBeta1, static_cast<double>(steps_));
  const double correction2 = std::sqrt(1 - std::pow(kBeta2, static_cast<double>(steps_)));
  for (Parameter* p : parameters_) {
    ot::lerp_(p->first, p->grad, ot::Scalar(1 - kBeta1));
    ot::mul_(p->second, kBeta2);
    ot::addcmul_(p->second, p->grad, p->grad, 1 - kBeta2);
    Tensor denominator = ot::sqrt(p->second);
    ot::add_(denominator, 1e-8 * correction2);
    ot::addcdiv_(p->value, p->first, denominator, -rate * correction2 / correction1);
  }
}

}  // namespace demo
