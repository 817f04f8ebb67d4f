// The rules of layouts.h. They must agree with PyTorch's meta functions, by which tracers predict
// strides that compiled code asserts.
#include "layouts.h"

#include <ATen/native/Resize.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/iteration.h"

namespace torch_ocl {
namespace {

using Inputs = c10::ArrayRef<const at::Tensor*>;
using Specs = std::span<ocltensor::TensorSpec>;

at::IntArrayRef sizes_of(const ocltensor::TensorSpec& out) {
  return {out.sizes.data(), out.sizes.size()};
}
ocltensor::Strided strided(const at::Tensor& t) {
  return {{t.sizes().data(), t.sizes().size()}, {t.strides().data(), t.strides().size()}};
}

// A result of the first input's shape has the strides of an elementwise result: normalised numbers.
void like_input(Inputs inputs, Specs outs) {
  outs[0].strides = strides_like(*inputs[0], inputs[0]->sizes());
}

// The same for two inputs: losses of each element, and gradients made of the result's gradient and
// the input.
void like_two_inputs(Inputs inputs, Specs outs) {
  outs[0].strides = strides_of_both(*inputs[0], *inputs[1], sizes_of(outs[0]));
}

// Sets the strides of a format that the number of dimensions allows.
void set_format(ocltensor::TensorSpec& out, at::MemoryFormat format) {
  const at::IntArrayRef sizes = sizes_of(out);
  if (format == at::MemoryFormat::ChannelsLast && sizes.size() == 4)
    out.strides = ocltensor::Dims(at::IntArrayRef(c10::get_channels_last_strides_2d(sizes)));
  if (format == at::MemoryFormat::ChannelsLast3d && sizes.size() == 5)
    out.strides = ocltensor::Dims(at::IntArrayRef(c10::get_channels_last_strides_3d(sizes)));
}

// Gradients of normalisation by channels: as for two inputs, but where their formats differ, that
// of the input counts.
void like_normalized(Inputs inputs, Specs outs) {
  const at::MemoryFormat format = inputs[1]->suggest_memory_format();
  if (format == inputs[0]->suggest_memory_format()) return like_two_inputs(inputs, outs);
  outs[0].strides.clear();
  set_format(outs[0], format);
}

// The result is in channels_last if the input is, else contiguous.
template <size_t input>
void in_format_of(Inputs inputs, Specs outs) {
  set_format(outs[0], inputs[input]->suggest_memory_format());
}

// Results of convolutions, and gradients of input and weight, are in channels_last if the input or
// the weight is, as with ATen's backends for CPUs and CUDA.
template <size_t input>
void in_format_of_convolution(Inputs inputs, Specs outs) {
  for (ocltensor::TensorSpec& out : outs)
    for (const size_t operand : {input, input + 1})
      set_format(out, inputs[operand]->suggest_memory_format());
}

// A query of [batch, heads, length, size] in the memory of [batch, length, heads, size], which
// projections make, has a result of the same layout, so that joining the heads copies nothing.
void like_query(Inputs inputs, Specs outs) {
  outs[0].strides = strides_like(*inputs[0], sizes_of(outs[0]));
}

// The inputs are the gradient of the result, query, key and value.
void like_query_key_value(Inputs inputs, Specs outs) {
  for (size_t i = 0; i < outs.size(); ++i)
    outs[i].strides = strides_like(*inputs[i + 1], inputs[i + 1]->sizes());
}

struct Rule {
  std::string_view name;
  Layout layout;
};
constexpr std::array kRules = {
    Rule{"_scaled_dot_product_fused_attention_overrideable.out", like_query},
    Rule{"_scaled_dot_product_fused_attention_overrideable_backward.out", like_query_key_value},
    Rule{"native_batch_norm.out", like_input},
    Rule{"native_batch_norm_backward.out", like_normalized},
    Rule{"native_group_norm.out", in_format_of<0>},
    Rule{"native_group_norm_backward.out", in_format_of<1>},
    Rule{"huber_loss.out", like_two_inputs},
    Rule{"_adaptive_avg_pool2d.out", in_format_of<0>},
    Rule{"_adaptive_avg_pool2d_backward.out", in_format_of<1>},
    Rule{"native_dropout_backward.out", in_format_of<0>},
    Rule{"convolution.out", in_format_of_convolution<0>},
    Rule{"convolution_backward.out", in_format_of_convolution<1>},
};

}  // namespace

Layout layout_of(std::string_view name) {
  const auto* const rule = std::ranges::find(kRules, name, &Rule::name);
  return rule == kRules.end() ? nullptr : rule->layout;
}

bool has_columns(std::string_view name) { return name == "nonzero.out"; }

ocltensor::Dims strides_like(const at::Tensor& like, at::IntArrayRef sizes) {
  if (like.sizes() == sizes) {
    const ocltensor::Strided operand = strided(like);
    return ocltensor::elementwise_strides(operand.sizes, std::span(&operand, 1));
  }
  std::vector<size_t> order(sizes.size());  // outermost first
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater{}, [&](size_t d) { return like.strides()[d]; });
  ocltensor::Dims strides(sizes.size(), 1);
  int64_t step = 1;
  for (size_t i = order.size(); i-- > 0; step *= std::max<int64_t>(sizes[order[i]], 1))
    strides[order[i]] = step;
  return strides;
}

ocltensor::Dims strides_of_both(const at::Tensor& a, const at::Tensor& b, at::IntArrayRef sizes) {
  const std::array operands{strided(a), strided(b)};
  return ocltensor::elementwise_strides({sizes.data(), sizes.size()}, operands);
}

void resize_given(const at::Tensor& out, at::IntArrayRef sizes, const ocltensor::Dims& strides) {
  if (at::native::resize_output(out, sizes) && !strides.empty())
    out.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, {strides.data(), strides.size()});
}

}  // namespace torch_ocl
