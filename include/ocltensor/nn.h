// Neural networks: layers with parameters, and optimizers that step them.
//
//   struct Net : nn::Module {
//     nn::Linear hidden{64, 32}, out{32, 10};
//     Net() { add("hidden", hidden), add("out", out); }
//     Tensor operator()(const Tensor& x) const { return out(hidden(x).relu()); }
//   };
//   Net net;
//   net.to("ocl");
//   nn::AdamW adam(net.parameters(), {.lr = 1e-3});
//   cross_entropy(net(x), labels).backward();
//   adam.step();
//   adam.zero_grad();
//
// A module is a handle, like a tensor: copies share their parameters. Layers start as PyTorch's do:
// weights and biases uniform in +-1 / sqrt(inputs), norms 1 and 0, embeddings normal. They are made
// on the thread's default device in float32; to() moves them. A module is used by one thread at a
// time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ocltensor/autograd.h"
#include "ocltensor/functional.h"

namespace ocltensor::nn {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Parameters, buffers and modules by name.
class OCLTENSOR_API Module {
 public:
  Module();
  // In the order in which they were added; those of inner modules as "inner.weight".
  NamedTensors named_parameters() const;
  NamedTensors named_buffers() const;
  std::vector<Tensor> parameters() const;
  int64_t parameter_count() const;  // elements of all parameters

  // Batch norm and dropout behave differently in training, which is how a module starts.
  void train(bool on = true) const;
  void eval() const { train(false); }
  bool is_training() const;
  // Moves or converts parameters and buffers in place; whole numbers keep their type.
  void to(Device device) const;
  void to(DType dtype) const;
  void zero_grad() const;  // no parameter has a gradient then

  // Parameters and buffers by name, as PyTorch's layers have them. Loading copies into them:
  // TB_E_INVALID for a name that is missing or unknown, and for another shape; nothing has changed
  // then. As in PyTorch only "num_batches_tracked" may be missing: older files do not have it.
  NamedTensors state() const;
  void load_state(const NamedTensors& state) const;

 protected:
  Tensor add_parameter(std::string name,
                       const Tensor& value) const;  // needs a gradient from now on
  Tensor add_buffer(std::string name, const Tensor& value) const;
  void add(std::string name, const Module& inner) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// ---- layers

// x [..., in] -> [..., out]
class OCLTENSOR_API Linear : public Module {
 public:
  struct Options {
    bool bias = true;
    std::optional<DType> compute = {};  // products in this type, results in that of the input
  };
  Linear(int64_t in, int64_t out) : Linear(in, out, Options()) {}
  Linear(int64_t in, int64_t out, const Options& options);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;  // [out, in], [out] or undefined

 private:
  std::optional<DType> compute_;
};

// x [N, in, h, w] -> [N, out, ...]
class OCLTENSOR_API Conv2d : public Module {
 public:
  struct Options {
    Dims stride{1}, padding{0}, dilation{1};  // one number, or one a dimension
    int64_t groups = 1;
    bool bias = true;
    std::optional<DType> compute = {};  // as of Linear
  };
  Conv2d(int64_t in, int64_t out, const Dims& kernel) : Conv2d(in, out, kernel, Options()) {}
  Conv2d(int64_t in, int64_t out, const Dims& kernel, const Options& options);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;

 private:
  Options options_;
};

// x [N, channels, ...]: normalised over all but the channels; in evaluation by running statistics.
// In training TB_E_INVALID for a single value a channel. num_batches_tracked, of int64, counts the
// calls in training.
class OCLTENSOR_API BatchNorm : public Module {
 public:
  explicit BatchNorm(int64_t channels, double momentum = 0.1, double eps = 1e-5);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;

 private:
  double momentum_, eps_;
};

class OCLTENSOR_API LayerNorm : public Module {
 public:
  explicit LayerNorm(const Dims& shape, double eps = 1e-5);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;

 private:
  Dims shape_;
  double eps_;
};

class OCLTENSOR_API GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5);
  Tensor operator()(const Tensor& x) const;
  Tensor weight, bias;

 private:
  int64_t groups_;
  double eps_;
};

class OCLTENSOR_API Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5) : p_(p) {}
  Tensor operator()(const Tensor& x) const { return dropout(x, p_, is_training()); }

 private:
  double p_;
};

// Whole numbers [...] -> rows [..., size]
class OCLTENSOR_API Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t size);
  Tensor operator()(const Tensor& indices) const { return embedding(weight, indices); }
  Tensor weight;
};

// Self-attention of `heads` heads over x [N, length, size].
class OCLTENSOR_API SelfAttention : public Module {
 public:
  SelfAttention(int64_t size, int64_t heads, double dropout = 0);
  Tensor operator()(const Tensor& x, const OptionalTensor& mask = std::nullopt,
                    bool is_causal = false) const;
  Linear qkv, out;

 private:
  int64_t heads_;
  double dropout_;
};

// Layers and functions of one tensor, one after the other:
//   Sequential net(Linear(64, 32), [](const Tensor& x) { return x.relu(); }, Linear(32, 10));
class OCLTENSOR_API Sequential : public Module {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  template <typename... Layers>
  explicit Sequential(const Layers&... layers) {
    (append(layers), ...);
  }
  template <typename Layer>
  void append(const Layer& layer) {
    if constexpr (std::is_base_of_v<Module, Layer>) add(std::to_string(functions_.size()), layer);
    functions_.emplace_back(layer);
  }
  Tensor operator()(const Tensor& x) const;

 private:
  std::vector<Function> functions_;
};

// ---- optimizers: each changes parameters that have a gradient, in one launch for all of a device

class OCLTENSOR_API Optimizer {
 public:
  explicit Optimizer(std::vector<Tensor> parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  virtual void step() = 0;
  void zero_grad() const;
  double lr() const { return lr_; }
  void set_lr(double lr) { lr_ = lr; }

 protected:
  // Parameters with a gradient, their gradients, and for each of them a tensor of each state.
  struct Lists {
    std::vector<size_t> positions;
    std::vector<Tensor> parameters, gradients;
    std::vector<std::vector<Tensor>> states;
  };
  // `states`: [state][parameter], zeros at first.
  Lists gather(std::vector<std::vector<Tensor>>& states) const;

  std::vector<Tensor> parameters_;
  double lr_ = 0;
};

class OCLTENSOR_API SGD final : public Optimizer {
 public:
  struct Options {
    double lr = 1e-2, momentum = 0, dampening = 0, weight_decay = 0;
    bool nesterov = false;
  };
  SGD(std::vector<Tensor> parameters, const Options& options);
  void step() override;

 private:
  Options options_;
  std::vector<std::vector<Tensor>> momenta_;
  bool first_ = true;
};

// Adam (Kingma and Ba, arXiv 1412.6980).
class OCLTENSOR_API Adam : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  };
  Adam(std::vector<Tensor> parameters, const Options& options)
      : Adam(std::move(parameters), options, "_fused_adam_.tensor_lr") {}
  void step() override;

 protected:
  Adam(std::vector<Tensor> parameters, const Options& options, const char* name);

 private:
  // The number of steps of each listed parameter, one more than before. Parameters that have made
  // the same steps share a tensor.
  std::vector<Tensor> count_steps(const std::vector<size_t>& positions);

  Options options_;
  const char* name_;
  std::vector<std::vector<Tensor>> moments_{2};
  std::vector<Tensor> steps_;
};

// With decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101).
class OCLTENSOR_API AdamW final : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, const Options& options)
      : Adam(std::move(parameters), options, "_fused_adamw_.tensor_lr") {}
};

// Divides all gradients by one number so that their common norm is at most `most`; returns the norm
// from before, as a tensor that nothing has waited for.
OCLTENSOR_API Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double most);

}  // namespace ocltensor::nn
