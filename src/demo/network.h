// A convolutional network written out: every layer calls the forward and the backward operator by
// its ATen name and keeps what the backward needs. Parameters are float32; `compute` is the dtype
// that convolutions and products run in.
#pragma once

#include <ocltensor/ocltensor.h>

#include <vector>

namespace demo {

using ocltensor::Device;
using ocltensor::Dims;
using ocltensor::DType;
using ocltensor::Tensor;

// A trained tensor with its gradient and Adam's two moments.
struct Parameter {
  Tensor value, grad, first, second;
};

// 3x3, padding 1, no bias: a batch norm follows.
class Convolution {
 public:
  Convolution(int64_t in, int64_t out, DType compute, Device device);
  Tensor forward(const Tensor& x);
  Tensor backward(const Tensor& grad);
  Parameter weight;

 private:
  DType compute_;
  Tensor input_, used_weight_;
};

// Normalises channels, then a rectifier.
class BatchNormRelu {
 public:
  BatchNormRelu(int64_t channels, Device device);
  Tensor forward(const Tensor& x, bool training);
  Tensor backward(const Tensor& grad);
  Parameter weight, bias;

 private:
  Tensor mean_, variance_;  // running statistics
  Tensor input_, output_, save_mean_, save_invstd_;
};

class MaxPool {  // 2x2
 public:
  Tensor forward(const Tensor& x);
  Tensor backward(const Tensor& grad);

 private:
  Tensor input_, indices_;
};

class Dropout {
 public:
  explicit Dropout(double p) : p_(p) {}
  Tensor forward(const Tensor& x, bool training);
  Tensor backward(const Tensor& grad);

 private:
  double p_;
  Tensor mask_;
};

class Linear {
 public:
  Linear(int64_t in, int64_t out, DType compute, Device device);
  Tensor forward(const Tensor& x);
  Tensor backward(const Tensor& grad);
  Parameter weight, bias;

 private:
  DType compute_;
  Tensor input_, used_weight_;
};

// conv 32, conv 64, pool, conv 64, pool, dropout, linear: 8x8 pixels to ten classes.
class Network {
 public:
  Network(DType compute, Device device);
  Tensor forward(const Tensor& images,
                 bool training);  // N x 1 x 8 x 8 -> N x 10, log-probabilities
  // Loss of the last forward in training mode, and all gradients.
  Tensor backward(const Tensor& labels);
  std::vector<Parameter*> parameters();

 private:
  Convolution conv1_, conv2_, conv3_;
  BatchNormRelu norm1_, norm2_, norm3_;
  MaxPool pool1_, pool2_;
  Dropout dropout_;
  Linear linear_;
  Tensor output_;
  Dims features_;
};

// Adam (Kingma and Ba, arXiv 1412.6980) over pointwise operators.
class Adam {
 public:
  explicit Adam(std::vector<Parameter*> parameters) : parameters_(std::move(parameters)) {}
  void step(double rate);

 private:
  std::vector<Parameter*> parameters_;
  int64_t steps_ = 0;
};

}  // namespace demo
