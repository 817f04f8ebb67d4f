// Modules, layers and optimizers.
#include "ocltensor/nn.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "host/core/storage.h"
#include "ocltensor/call.h"

namespace ocltensor::nn {
namespace {

constexpr const char* kBatches = "num_batches_tracked";

// Gives a tensor that others hold another memory: all handles see it.
void replace(const Tensor& held, const Tensor& by) {
  detail::TensorImpl& t = *held.impl();
  detail::reset_tensor(t, by.impl()->storage, by.sizes(), by.strides(), by.offset(), by.dtype());
}

Tensor uniform_parameter(const Dims& sizes, int64_t inputs) {
  const double bound = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(inputs, 1)));
  return empty(sizes).uniform_(-bound, bound);
}

OptionalTensor optional(const Tensor& t) {
  return t.defined() ? OptionalTensor(t) : OptionalTensor();
}

}  // namespace

struct Module::State {
  bool training = true;
  NamedTensors parameters, buffers;
  std::vector<std::pair<std::string, Module>> inner;

  // Visits this module and those inside, with what their names begin with.
  void visit(const std::string& prefix,
             const std::function<void(const std::string&, State&)>& seen) {
    seen(prefix, *this);
    for (const auto& [name, module] : inner) module.state_->visit(prefix + name + ".", seen);
  }
  NamedTensors collect(NamedTensors State::*list) {
    NamedTensors found;
    visit("", [&](const std::string& prefix, State& state) {
      for (const auto& [name, tensor] : state.*list) found.emplace_back(prefix + name, tensor);
    });
    return found;
  }
  void check_new(const std::string& name) const {
    const auto has = [&](const auto& list) {
      return std::ranges::any_of(list, [&](const auto& entry) { return entry.first == name; });
    };
    check(!name.empty() && name.find('.') == std::string::npos,
          "'{}' is no name of a parameter, buffer or module: it must not be empty or have dots",
          name);
    check(!has(parameters) && !has(buffers) && !has(inner), "the module has a '{}' already", name);
  }
};

Module::Module() : state_(std::make_shared<State>()) {}

NamedTensors Module::named_parameters() const { return state_->collect(&State::parameters); }
NamedTensors Module::named_buffers() const { return state_->collect(&State::buffers); }

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> found;
  for (const auto& [name, tensor] : named_parameters()) found.push_back(tensor);
  return found;
}

int64_t Module::parameter_count() const {
  int64_t count = 0;
  for (const Tensor& t : parameters()) count += t.numel();
  return count;
}

void Module::train(bool on) const {
  state_->visit("", [&](const std::string&, State& state) { state.training = on; });
}

bool Module::is_training() const { return state_->training; }

void Module::to(Device device) const {
  const NoGrad off;
  for (const auto& [name, tensor] : state()) replace(tensor, tensor.to(device));
}

void Module::to(DType dtype) const {
  const NoGrad off;
  for (const auto& [name, tensor] : state())
    if (is_floating(tensor.dtype())) replace(tensor, tensor.to(dtype));
}

void Module::zero_grad() const {
  for (const Tensor& t : parameters()) t.set_grad(Tensor());
}

NamedTensors Module::state() const {
  NamedTensors found = named_parameters();
  for (auto& entry : named_buffers()) found.push_back(std::move(entry));
  return found;
}

void Module::load_state(const NamedTensors& given) const {
  const NamedTensors mine = state();
  std::map<std::string, Tensor> by_name(given.begin(), given.end());
  for (const auto& [name, tensor] : mine) {
    const auto at = by_name.find(name);
    if (at == by_name.end() && name.ends_with(kBatches)) continue;
    check(at != by_name.end(), "load_state: there is no '{}' among the {} tensors", name,
          given.size());
    check(at->second.sizes() == tensor.sizes(), "load_state: '{}' has shape {}, and {} was given",
          name, to_string(tensor.sizes()), to_string(at->second.sizes()));
  }
  for (const auto& one : given)
    check(std::ranges::any_of(mine, [&](const auto& m) { return m.first == one.first; }),
          "load_state: the module has no '{}'", one.first);
  const NoGrad off;
  for (const auto& [name, tensor] : mine)
    if (const auto at = by_name.find(name); at != by_name.end()) tensor.copy_(at->second);
}

Tensor Module::add_parameter(std::string name, const Tensor& value) const {
  state_->check_new(name);
  state_->parameters.emplace_back(std::move(name), value);
  return value.requires_grad_();
}

Tensor Module::add_buffer(std::string name, const Tensor& value) const {
  state_->check_new(name);
  state_->buffers.emplace_back(std::move(name), value);
  return value;
}

void Module::add(std::string name, const Module& inner) const {
  state_->check_new(name);
  state_->inner.emplace_back(std::move(name), inner);
}

Linear::Linear(int64_t in, int64_t out, const Options& options)
    : weight(add_parameter("weight", uniform_parameter({out, in}, in))), compute_(options.compute) {
  if (options.bias) bias = add_parameter("bias", uniform_parameter({out}, in));
}

Tensor Linear::operator()(const Tensor& x) const {
  if (!compute_) return linear(x, weight, optional(bias));
  const Tensor cast = bias.defined() ? bias.to(*compute_) : Tensor();
  return linear(x.to(*compute_), weight.to(*compute_), optional(cast)).to(x.dtype());
}

Conv2d::Conv2d(int64_t in, int64_t out, const Dims& kernel, const Options& options)
    : options_(options) {
  check(kernel.size() == 1 || kernel.size() == 2, "Conv2d: the kernel needs one or two sizes");
  check(options.groups > 0 && in % options.groups == 0 && out % options.groups == 0,
        "Conv2d: {} and {} channels cannot be divided into {} groups", in, out, options.groups);
  const int64_t height = kernel[0], width = kernel.back();
  const int64_t inputs = in / options.groups * height * width;
  weight =
      add_parameter("weight", uniform_parameter({out, in / options.groups, height, width}, inputs));
  if (options.bias) bias = add_parameter("bias", uniform_parameter({out}, inputs));
}

Tensor Conv2d::operator()(const Tensor& x) const {
  const auto convolve = [&](const Tensor& input, const Tensor& w, const Tensor& b) {
    return conv2d(input, w, optional(b), options_.stride, options_.padding, options_.dilation,
                  options_.groups);
  };
  if (!options_.compute) return convolve(x, weight, bias);
  const DType type = *options_.compute;
  return convolve(x.to(type), weight.to(type), bias.defined() ? bias.to(type) : bias).to(x.dtype());
}

BatchNorm::BatchNorm(int64_t channels, double momentum, double eps)
    : weight(add_parameter("weight", ones({channels}))),
      bias(add_parameter("bias", zeros({channels}))),
      running_mean(add_buffer("running_mean", zeros({channels}))),
      running_var(add_buffer("running_var", ones({channels}))),
      num_batches_tracked(add_buffer(kBatches, zeros({}, DType::Int64))),
      momentum_(momentum),
      eps_(eps) {}

Tensor BatchNorm::operator()(const Tensor& x) const {
  Tensor result =
      batch_norm(x, running_mean, running_var, weight, bias, is_training(), momentum_, eps_);
  if (is_training()) num_batches_tracked.add_(1);
  return result;
}

LayerNorm::LayerNorm(const Dims& shape, double eps)
    : weight(add_parameter("weight", ones(shape))),
      bias(add_parameter("bias", zeros(shape))),
      shape_(shape),
      eps_(eps) {}

Tensor LayerNorm::operator()(const Tensor& x) const {
  return layer_norm(x, shape_, weight, bias, eps_);
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double eps)
    : weight(add_parameter("weight", ones({channels}))),
      bias(add_parameter("bias", zeros({channels}))),
      groups_(groups),
      eps_(eps) {}

Tensor GroupNorm::operator()(const Tensor& x) const {
  return group_norm(x, groups_, weight, bias, eps_);
}

Embedding::Embedding(int64_t count, int64_t size)
    : weight(add_parameter("weight", randn({count, size}))) {}

SelfAttention::SelfAttention(int64_t size, int64_t heads, double dropout)
    : qkv(size, 3 * size), out(size, size), heads_(heads), dropout_(dropout) {
  check(heads > 0 && size % heads == 0, "SelfAttention: {} cannot be divided into {} heads", size,
        heads);
  add("qkv", qkv);
  add("out", out);
}

Tensor SelfAttention::operator()(const Tensor& x, const OptionalTensor& mask,
                                 bool is_causal) const {
  const int64_t items = x.size(0), length = x.size(1), size = x.size(2);
  const auto heads =
      qkv(x).view({items, length, 3, heads_, size / heads_}).permute({2, 0, 3, 1, 4});
  const Tensor mixed = scaled_dot_product_attention(heads[0].contiguous(), heads[1].contiguous(),
                                                    heads[2].contiguous(), mask,
                                                    is_training() ? dropout_ : 0, is_causal);
  return out(mixed.transpose(1, 2).reshape({items, length, size}));
}

Tensor Sequential::operator()(const Tensor& x) const {
  Tensor y = x;
  for (const Function& f : functions_) y = f(y);
  return y;
}

Optimizer::Optimizer(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {
  check(!parameters_.empty(), "an optimizer needs at least one parameter");
  for (const Tensor& p : parameters_)
    check(p.is_leaf() && is_floating(p.dtype()),
          "a parameter of shape {} and type {} is no floating leaf", to_string(p.sizes()),
          name(p.dtype()));
}

void Optimizer::zero_grad() const {
  for (const Tensor& p : parameters_) p.set_grad(Tensor());
}

Optimizer::Lists Optimizer::gather(std::vector<std::vector<Tensor>>& states) const {
  Lists lists;
  lists.states.resize(states.size());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor& p = parameters_[i];
    const Tensor gradient = p.grad();
    if (!gradient.defined()) continue;
    check(p.device() == parameters_[0].device() && p.dtype() == parameters_[0].dtype(),
          "the optimizer's parameters are on {} in {} and on {} in {}: use one optimizer for each",
          parameters_[0].device().text(), name(parameters_[0].dtype()), p.device().text(),
          name(p.dtype()));
    lists.positions.push_back(i);
    lists.parameters.push_back(p);
    lists.gradients.push_back(gradient);
    for (size_t k = 0; k < states.size(); ++k) {
      states[k].resize(parameters_.size());
      if (!states[k][i].defined()) states[k][i] = zeros_like(p);
      lists.states[k].push_back(states[k][i]);
    }
  }
  return lists;
}

SGD::SGD(std::vector<Tensor> parameters, const Options& options)
    : Optimizer(std::move(parameters)), options_(options) {
  lr_ = options.lr;
}

void SGD::step() {
  const NoGrad off;
  const Options& o = options_;
  if (o.momentum != 0) momenta_.resize(1);
  const Lists lists = gather(momenta_);
  if (lists.parameters.empty()) return;
  call(
      "_fused_sgd_.tensor_lr",
      {lists.parameters, lists.gradients, o.momentum != 0 ? lists.states[0] : std::vector<Tensor>(),
       o.weight_decay, o.momentum, lr_, o.dampening, o.nesterov, false, first_});
  first_ = false;
}

Adam::Adam(std::vector<Tensor> parameters, const Options& options, const char* name)
    : Optimizer(std::move(parameters)), options_(options), name_(name) {
  lr_ = options.lr;
}

std::vector<Tensor> Adam::count_steps(const std::vector<size_t>& positions) {
  steps_.resize(parameters_.size());
  std::map<const void*, Tensor> counted;  // by the tensor that counted before
  for (const size_t i : positions) {
    const void* before = steps_[i].impl().get();
    if (counted.contains(before)) continue;
    bool is_shared_with_others = false;
    for (size_t k = 0; k < steps_.size(); ++k)
      is_shared_with_others = is_shared_with_others || (steps_[k].impl().get() == before &&
                                                        !std::ranges::binary_search(positions, k));
    Tensor now = steps_[i];
    if (!now.defined())
      now = zeros({}, {DType::Float32, parameters_[i].device()});
    else if (is_shared_with_others)
      now = now.clone();
    counted[before] = now.add_(1);
  }
  std::vector<Tensor> listed;
  listed.reserve(positions.size());
  for (const size_t i : positions) listed.push_back(steps_[i] = counted.at(steps_[i].impl().get()));
  return listed;
}

void Adam::step() {
  const NoGrad off;
  const Options& o = options_;
  const Lists lists = gather(moments_);
  if (lists.parameters.empty()) return;
  call(name_,
       {lists.parameters, lists.gradients, lists.states[0], lists.states[1], std::vector<Tensor>(),
        count_steps(lists.positions), lr_, o.beta1, o.beta2, o.weight_decay, o.eps, false, false});
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double most) {
  const NoGrad off;
  std::vector<Tensor> norms, gradients;
  for (const Tensor& p : parameters)
    if (const Tensor g = p.grad(); g.defined()) {
      gradients.push_back(g);
      norms.push_back(linalg_vector_norm(g).to(DType::Float32));
    }
  if (gradients.empty()) return zeros({});
  Tensor norm = linalg_vector_norm(stack(norms));
  const Tensor factor = (most / (norm + 1e-6)).clamp_max(1.0);
  for (const Tensor& g : gradients) g.mul_(factor);
  return norm;
}

}  // namespace ocltensor::nn
