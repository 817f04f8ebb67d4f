// The functions of functional.h, made of operators.
#include "ocltensor/functional.h"

#include <cmath>
#include <limits>

#include "host/autograd/tape.h"

namespace ocltensor {
namespace {

// The list, or its one number as many times as there are dimensions.
Dims expanded(const IntList& list, int64_t count, const char* what) {
  if (list.span().size() == 1) return Dims(static_cast<size_t>(count), list.span()[0]);
  check(static_cast<int64_t>(list.span().size()) == count, "{} needs 1 or {} numbers, got {}", what,
        count, list.span().size());
  return list.span();
}

struct Convolution {
  const IntList &stride, &padding, &dilation;
  int64_t groups;
  const IntList* output_padding = nullptr;  // given: transposed
};

Tensor convolve(const Tensor& self, const Tensor& weight, const OptionalTensor& bias,
                int64_t spatial, const Convolution& c) {
  check(self.dim() == spatial + 2 || self.dim() == spatial + 1,
        "a convolution of {} dimensions needs an input of {} or {}, got shape {}", spatial,
        spatial + 1, spatial + 2, to_string(self.sizes()));
  const bool batched = self.dim() == spatial + 2;
  const bool transposed = c.output_padding != nullptr;
  const Tensor result =
      convolution(batched ? self : self.unsqueeze(0), weight, bias,
                  expanded(c.stride, spatial, "stride"), expanded(c.padding, spatial, "padding"),
                  expanded(c.dilation, spatial, "dilation"), transposed,
                  transposed ? expanded(*c.output_padding, spatial, "output_padding")
                             : Dims(static_cast<size_t>(spatial), 0),
                  c.groups);
  return batched ? result : result.squeeze(0);
}

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::Mean: return losses.mean();
    case Reduction::Sum: return losses.sum();
    default: return losses;
  }
}

// `t` with its dimensions before the last two broadcast to `batch`, as one.
Tensor as_batch(const Tensor& t, const Dims& batch, int64_t count) {
  Dims target = batch;
  target.push_back(t.size(-2));
  target.push_back(t.size(-1));
  return t.expand(target).reshape({count, t.size(-2), t.size(-1)});
}

Tensor batched_product(const Tensor& a, const Tensor& b) {
  const auto leading = [](const Tensor& t) {
    return std::span(t.sizes()).first(t.sizes().size() - 2);
  };
  Dims sizes = broadcast(leading(a), leading(b));
  const int64_t count = numel(sizes);
  const Tensor product = bmm(as_batch(a, sizes, count), as_batch(b, sizes, count));
  sizes.push_back(a.size(-2));
  sizes.push_back(b.size(-1));
  return product.view(sizes);
}

// What a tensor and its padded form have in common, as a view of one of them: negative widths cut
// the tensor, positive ones surround it.
Tensor padded(Tensor t, const Dims& widths, bool is_inner) {
  for (size_t i = 0; i < widths.size(); i += 2) {
    const auto d = t.dim() - 1 - static_cast<int64_t>(i / 2);
    const auto cut = [&](int64_t width) { return std::max<int64_t>(is_inner ? -width : width, 0); };
    const int64_t first = cut(widths[i]);
    t = t.slice(d, first, std::max(first, t.size(d) - cut(widths[i + 1])));
  }
  return t;
}

// Attention whose weights are dropped, by its definition.
Tensor dropped_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                         const OptionalTensor& mask, double p, bool is_causal,
                         std::optional<double> scale) {
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor scores = matmul(query * factor, key.transpose(-2, -1));
  const auto exclude = [&](const Tensor& allowed) {
    scores = scores.masked_fill(~allowed, -std::numeric_limits<double>::infinity());
  };
  if (is_causal)
    exclude(ones({query.size(-2), key.size(-2)}, {DType::Bool, query.device()}).tril());
  if (mask.tensor() != nullptr) {
    if (mask.tensor()->dtype() == DType::Bool)
      exclude(*mask.tensor());
    else
      scores = scores + *mask.tensor();
  }
  return matmul(dropout(softmax(scores, -1), p), value);
}

}  // namespace

Tensor randn(const Dims& sizes, const Options& options, const std::optional<Generator>& generator) {
  return empty(sizes, options).normal_(0, 1, generator);
}

Tensor rand(const Dims& sizes, const Options& options, const std::optional<Generator>& generator) {
  return empty(sizes, options).uniform_(0, 1, generator);
}

Tensor randint(int64_t low, int64_t high, const Dims& sizes, const Options& options,
               const std::optional<Generator>& generator) {
  Options whole = options;
  if (!whole.dtype) whole.dtype = DType::Int64;
  return empty(sizes, whole).random_(low, high, generator);
}

Tensor stack(const TensorList& tensors, int64_t dim) {
  check(!tensors.span().empty(), "stack needs at least one tensor");
  std::vector<Tensor> raised;
  for (const Tensor& t : tensors.span()) {
    check(t.sizes() == tensors.span()[0].sizes(), "stack: a tensor of shape {} beside one of {}",
          to_string(t.sizes()), to_string(tensors.span()[0].sizes()));
    raised.push_back(t.unsqueeze(dim));
  }
  return cat(raised, dim);
}

std::vector<Tensor> split(const Tensor& self, int64_t size, int64_t dim) {
  const int64_t all = self.size(dim);
  check(size > 0 || (size == 0 && all == 0), "split: the size must be positive, got {}", size);
  std::vector<Tensor> views;
  for (int64_t first = 0; first == 0 || first < all; first += std::max<int64_t>(size, 1))
    views.push_back(self.narrow(dim, first, std::min(size, all - first)));
  return views;
}

std::vector<Tensor> split(const Tensor& self, const Dims& sizes, int64_t dim) {
  int64_t first = 0;
  for (const int64_t size : sizes) {
    check(size >= 0, "split: a size must not be negative, got {}", to_string(sizes));
    first += size;
  }
  check(first == self.size(dim),
        "split: the sizes {} do not add up to {}, the size of dimension {}", to_string(sizes),
        self.size(dim), dim);
  std::vector<Tensor> views;
  first = 0;
  for (const int64_t size : sizes) {
    views.push_back(self.narrow(dim, first, size));
    first += size;
  }
  return views;
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  check(chunks > 0, "chunk: the number of chunks must be positive, got {}", chunks);
  const int64_t all = self.size(dim);
  if (all == 0) return std::vector<Tensor>(static_cast<size_t>(chunks), self);
  return split(self, (all + chunks - 1) / chunks, dim);
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  std::vector<Tensor> views;
  for (int64_t i = 0; i < self.size(dim); ++i) views.push_back(self.select(dim, i));
  return views;
}

Tensor pad(const Tensor& self, const Dims& widths, const Scalar& value) {
  check(widths.size() % 2 == 0 && static_cast<int64_t>(widths.size()) / 2 <= self.dim(),
        "pad: {} widths for a tensor of {} dimensions", widths.size(), self.dim());
  Dims sizes = self.sizes();
  for (size_t i = 0; i < widths.size(); i += 2) {
    const size_t d = sizes.size() - 1 - i / 2;
    sizes[d] += widths[i] + widths[i + 1];
    check(sizes[d] >= 0, "pad: nothing is left of dimension {} of size {}", d, self.sizes()[d]);
  }
  Tensor result = full(sizes, value, {self.dtype(), self.device()});
  {
    const NoGrad off;
    padded(result, widths, false).copy_(padded(self, widths, true));
  }
  if (detail::may_record() && detail::needs_gradient(self))
    detail::record_function("pad", self, result, [shape = self.sizes(), widths](const Tensor& g) {
      Tensor whole = zeros(shape, {g.dtype(), g.device()});
      padded(whole, widths, true).copy_(padded(g, widths, false));
      return whole;
    });
  return result;
}

Tensor one_hot(const Tensor& self, int64_t classes) {
  check(self.dtype() == DType::Int64, "one_hot needs int64 classes, got {}", name(self.dtype()));
  if (classes == -1) {
    check(self.numel() > 0, "one_hot: no classes can be counted in an empty tensor");
    classes = self.max().item<int64_t>() + 1;
  }
  check(classes > 0, "one_hot: the number of classes must be positive, got {}", classes);
  const Tensor numbers = arange(0, classes, 1, {DType::Int64, self.device()});
  return (self.unsqueeze(-1) == numbers).to(DType::Int64);
}

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a = self.dim(), b = other.dim();
  check(a > 0 && b > 0, "matmul needs tensors of at least one dimension, got shapes {} and {}",
        to_string(self.sizes()), to_string(other.sizes()));
  if (a == 1 && b == 1) return dot(self, other);
  if (a == 2 && b == 1) return mv(self, other);
  if (a == 1 && b == 2) return mv(other.t(), self);
  if (a == 2 && b == 2) return mm(self, other);
  if (b == 1) return matmul(self, other.unsqueeze(1)).squeeze(-1);
  if (a == 1) return matmul(self.unsqueeze(0), other).squeeze(-2);
  if (b == 2) {  // one product instead of a batch
    Dims sizes = self.sizes();
    const Tensor product = mm(self.reshape({-1, sizes.back()}), other);
    sizes.back() = other.size(1);
    return product.view(sizes);
  }
  return batched_product(self, other);
}

Tensor outer(const Tensor& self, const Tensor& other) {
  check(self.dim() == 1 && other.dim() == 1, "outer needs two vectors, got shapes {} and {}",
        to_string(self.sizes()), to_string(other.sizes()));
  return self.unsqueeze(1) * other;
}

Tensor linear(const Tensor& self, const Tensor& weight, const OptionalTensor& bias) {
  check(self.dim() > 0 && weight.dim() == 2 && self.size(-1) == weight.size(1),
        "linear: an input of shape {} and weights of shape {} cannot be multiplied",
        to_string(self.sizes()), to_string(weight.sizes()));
  if (bias.tensor() == nullptr) return matmul(self, weight.t());
  if (self.dim() == 2) return addmm(*bias.tensor(), self, weight.t());
  Dims sizes = self.sizes();
  const Tensor rows = addmm(*bias.tensor(), self.reshape({-1, sizes.back()}), weight.t());
  sizes.back() = weight.size(0);
  return rows.view(sizes);
}

Tensor conv1d(const Tensor& self, const Tensor& weight, const OptionalTensor& bias,
              const IntList& stride, const IntList& padding, const IntList& dilation,
              int64_t groups) {
  return convolve(self, weight, bias, 1, {stride, padding, dilation, groups});
}
Tensor conv2d(const Tensor& self, const Tensor& weight, const OptionalTensor& bias,
              const IntList& stride, const IntList& padding, const IntList& dilation,
              int64_t groups) {
  return convolve(self, weight, bias, 2, {stride, padding, dilation, groups});
}
Tensor conv3d(const Tensor& self, const Tensor& weight, const OptionalTensor& bias,
              const IntList& stride, const IntList& padding, const IntList& dilation,
              int64_t groups) {
  return convolve(self, weight, bias, 3, {stride, padding, dilation, groups});
}
Tensor conv_transpose2d(const Tensor& self, const Tensor& weight, const OptionalTensor& bias,
                        const IntList& stride, const IntList& padding,
                        const IntList& output_padding, int64_t groups, const IntList& dilation) {
  return convolve(self, weight, bias, 2, {stride, padding, dilation, groups, &output_padding});
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const OptionalTensor& mask, double dropout, bool is_causal,
                                    std::optional<double> scale) {
  for (const Tensor* t : {&query, &key, &value})
    check(t->dim() == query.dim() && (t->dim() == 3 || t->dim() == 4),
          "attention needs queries, keys and values of three or four dimensions each, got shape {}",
          to_string(t->sizes()));
  if (query.dim() == 3) {
    std::optional<Tensor> raised;
    if (mask.tensor() != nullptr)
      raised = mask.tensor()->dim() > 2 ? mask.tensor()->unsqueeze(-3) : *mask.tensor();
    return scaled_dot_product_attention(query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1),
                                        raised, dropout, is_causal, scale)
        .squeeze(1);
  }
  if (dropout > 0) return dropped_attention(query, key, value, mask, dropout, is_causal, scale);
  return std::get<0>(_scaled_dot_product_fused_attention_overrideable(query, key, value, mask, 0,
                                                                      is_causal, scale));
}

Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return _softmax(dtype ? self.to(*dtype) : self, dim, false);
}

Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return _log_softmax(dtype ? self.to(*dtype) : self, dim, false);
}

Tensor layer_norm(const Tensor& self, const Dims& normalized_shape, const OptionalTensor& weight,
                  const OptionalTensor& bias, double eps) {
  return std::get<0>(native_layer_norm(self, normalized_shape, weight, bias, eps));
}

namespace {

// The mean of one value is the value: all results would be 0.
void check_more_than_one(const char* name, int64_t values, const Tensor& self) {
  check(values != 1, "{}: expected more than 1 value per channel when training, got input size {}",
        name, to_string(self.sizes()));
}

}  // namespace

Tensor group_norm(const Tensor& self, int64_t groups, const OptionalTensor& weight,
                  const OptionalTensor& bias, double eps) {
  check(self.dim() >= 2, "group_norm needs at least two dimensions, got shape {}",
        to_string(self.sizes()));
  const int64_t items = self.size(0), channels = self.size(1);
  const int64_t rest = numel(std::span(self.sizes()).subspan(2));
  if (groups > 0) check_more_than_one("group_norm", items * channels / groups * rest, self);
  return std::get<0>(
      native_group_norm(self.contiguous(), weight, bias, items, channels, rest, groups, eps));
}

Tensor batch_norm(const Tensor& self, const OptionalTensor& running_mean,
                  const OptionalTensor& running_var, const OptionalTensor& weight,
                  const OptionalTensor& bias, bool training, double momentum, double eps) {
  check(training || (running_mean.tensor() != nullptr && running_var.tensor() != nullptr),
        "batch_norm: running_mean and running_var are needed unless it is training");
  if (training && self.dim() >= 2)
    check_more_than_one("batch_norm", self.size(0) * numel(std::span(self.sizes()).subspan(2)),
                        self);
  return std::get<0>(
      native_batch_norm(self, weight, bias, running_mean, running_var, training, momentum, eps));
}

Tensor dropout(const Tensor& self, double p, bool training) {
  check(p >= 0 && p <= 1, "dropout: the probability must be in [0, 1], got {}", p);
  return training && p > 0 ? std::get<0>(native_dropout(self, p, true)) : self;
}

Tensor max_pool2d(const Tensor& self, const IntList& kernel_size, const IntList& stride,
                  const IntList& padding, const IntList& dilation, bool ceil_mode) {
  return std::get<0>(
      max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode));
}

Tensor adaptive_avg_pool2d(const Tensor& self, const IntList& output_size) {
  return _adaptive_avg_pool2d(self, output_size);
}

Tensor nll_loss(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                int64_t ignore_index, Reduction reduction) {
  if (self.dim() <= 2)
    return std::get<0>(nll_loss_forward(self, target, weight, reduction, ignore_index));
  if (self.dim() == 4)
    return std::get<0>(nll_loss2d_forward(self, target, weight, reduction, ignore_index));
  const int64_t items = self.size(0), classes = self.size(1);
  const Tensor rows = self.reshape({items, classes, 1, -1});
  const Tensor loss = std::get<0>(
      nll_loss2d_forward(rows, target.reshape({items, 1, -1}), weight, reduction, ignore_index));
  return reduction == Reduction::None ? loss.view(target.sizes()) : loss;
}

Tensor cross_entropy(const Tensor& self, const Tensor& target, const OptionalTensor& weight,
                     int64_t ignore_index, Reduction reduction) {
  return nll_loss(log_softmax(self, self.dim() == 1 ? 0 : 1), target, weight, ignore_index,
                  reduction);
}

Tensor l1_loss(const Tensor& self, const Tensor& target, Reduction reduction) {
  return reduced((self - target).abs(), reduction);
}

Tensor binary_cross_entropy_with_logits(const Tensor& self, const Tensor& target,
                                        const OptionalTensor& weight,
                                        const OptionalTensor& pos_weight, Reduction reduction) {
  const Tensor log_positive = log_sigmoid(self);  // log(1 - sigmoid(x)) = log sigmoid(x) - x
  Tensor losses = (1 - target) * self;
  if (pos_weight.tensor() != nullptr)
    losses -= ((*pos_weight.tensor() - 1) * target + 1) * log_positive;
  else
    losses -= log_positive;
  if (weight.tensor() != nullptr) losses = losses * *weight.tensor();
  return reduced(losses, reduction);
}

}  // namespace ocltensor
