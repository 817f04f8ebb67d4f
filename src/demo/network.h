// The network: conv 32, conv 64, pool, conv 64, pool, dropout, linear: 8x8 pixels to ten classes.
// Parameters are float32; `compute` is the dtype that convolutions and products run in.
#pragma once

#include <ocltensor/ocltensor.h>

namespace demo {

namespace nn = ocltensor::nn;
using ocltensor::Device;
using ocltensor::Dims;
using ocltensor::DType;
using ocltensor::Tensor;

struct Network : nn::Module {
  nn::Conv2d conv1, conv2, conv3;
  nn::BatchNorm norm1{32}, norm2{64}, norm3{64};
  nn::Dropout dropout{0.25};
  nn::Linear linear;

  explicit Network(DType compute)
      : conv1(1, 32, {3}, {.padding = {1}, .bias = false, .compute = compute}),
        conv2(32, 64, {3}, {.padding = {1}, .bias = false, .compute = compute}),
        conv3(64, 64, {3}, {.padding = {1}, .bias = false, .compute = compute}),
        linear(64 * 2 * 2, 10, {.compute = compute}) {
    add("conv1", conv1), add("norm1", norm1);
    add("conv2", conv2), add("norm2", norm2);
    add("conv3", conv3), add("norm3", norm3);
    add("dropout", dropout), add("linear", linear);
  }

  // N x 1 x 8 x 8 -> N x 10
  Tensor operator()(const Tensor& images) const {
    Tensor x = norm1(conv1(images)).relu();
    x = norm2(conv2(x)).relu().max_pool2d(2);
    x = norm3(conv3(x)).relu().max_pool2d(2);
    return linear(dropout(x.flatten(1)));
  }
};

}  // namespace demo
