// The proofs of the convolution kernels on the driver at hand, before their first use.
#include <algorithm>

#include "call/proof_numbers.h"
#include "convolution.h"
#include "nvidia_mma/matmul/product.h"
#include "ops/conv/conv_shape.h"
#include "weight.h"

namespace ocltensor::opencl::nvidia_mma {
namespace {

// Sizes that are odd in every respect: maps, windows, channels across chunks and tiles, tiles
// across images; the strides of pixels and of taps; both orders of maps.
constexpr conv::ConvShape kSamples[] = {{.batch = 3,
                                         .big = 20,
                                         .small = 70,
                                         .y = 9,
                                         .x = 11,
                                         .window_y = 3,
                                         .window_x = 2,
                                         .stride_y = 2,
                                         .pad_y = 1,
                                         .pad_x = 1,
                                         .dilation_x = 2,
                                         .channels_last = true},
                                        {.batch = 2,
                                         .big = 40,
                                         .small = 24,
                                         .y = 10,
                                         .x = 9,
                                         .window_y = 2,
                                         .window_x = 3,
                                         .stride_x = 3,
                                         .pad_x = 2}};

std::string wrong_sums(const OpCall& call, const conv::ConvShape& sample, conv::Direction direction,
                       const ConvMma& v) {
  constexpr float kOld = 7;
  const ConvParams g = conv::conv_params_of(sample);
  const bool forward = direction == conv::Direction::Forward;
  const DType type = type_of(v.kind);
  const int64_t big_count = g.batch * g.big_channels * g.in[1] * g.in[2];
  const int64_t small_count = g.batch * g.small_channels * g.out[1] * g.out[2];
  const int64_t count = forward ? small_count : big_count;
  ProofNumbers numbers(call);
  const std::vector<float> source = numbers.draw(forward ? big_count : small_count, 1);
  const std::vector<float> weight =
      numbers.draw(g.small_channels * g.big_channels * g.window[1] * g.window[2], 1);
  const tb_address from = numbers.upload(source, type);
  const tb_address to = numbers.upload(std::vector<float>(static_cast<size_t>(count), kOld), type);
  conv::Problem p{
      direction,    type, forward ? from : to, forward ? to : from, numbers.upload(weight, type),
      std::nullopt, g};
  std::vector<float> want(static_cast<size_t>(count), 0.0f);
  if (v.bias) {
    const int64_t channels = forward ? g.small_channels : g.big_channels;
    const int64_t stride = forward ? g.small_strides[1] : g.big_strides[1];
    const std::vector<float> bias = numbers.draw(channels, 3);
    p.bias = numbers.upload(bias, type);
    for (size_t i = 0; i < want.size(); ++i)
      want[i] = bias[static_cast<size_t>(static_cast<int64_t>(i) / stride % channels)];
  }
  run_convolution(call, p, v);

  conv::for_each_conv_term(g, [&](int64_t b, int64_t s, int64_t w) {
    const auto at = static_cast<size_t>(forward ? b : s);
    want[static_cast<size_t>(forward ? s : b)] += source[at] * weight[static_cast<size_t>(w)];
  });
  const std::vector<float> got = numbers.download(to, type, count);
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[i])
      return fmt::format("{} of channels {} and {}: element {} is {} instead of {}",
                         conv::kDirectionNames[static_cast<int>(direction)], g.big_channels,
                         g.small_channels, i, got[i], want[i]);
  return {};
}

// As above, of gradients of weights, in both orders of their memory.
std::string wrong_gradients(const OpCall& call, const conv::ConvShape& sample, const WeightMma& v) {
  constexpr float kOld = 7;
  const ConvParams g = conv::conv_params_of(sample);
  const DType type = type_of(v.kind);
  ProofNumbers numbers(call);
  const auto count = [](int64_t channels, const tk_i64* sizes) {
    return channels * sizes[1] * sizes[2];
  };
  const std::vector<float> big = numbers.draw(g.batch * count(g.big_channels, g.in), 1);
  const std::vector<float> small = numbers.draw(g.batch * count(g.small_channels, g.out), 1);
  const int64_t weights = g.small_channels * count(g.big_channels, g.window);
  const std::vector<float> old(static_cast<size_t>(weights), kOld);
  const conv::Problem p{conv::Direction::Weight,
                        type,
                        numbers.upload(big, type),
                        numbers.upload(small, type),
                        numbers.upload(old, type),
                        std::nullopt,
                        g};
  run_weight(call, p, v);

  std::vector<float> want(static_cast<size_t>(weights), 0.0f);
  conv::for_each_conv_term(g, [&](int64_t b, int64_t s, int64_t w) {
    want[static_cast<size_t>(w)] += big[static_cast<size_t>(b)] * small[static_cast<size_t>(s)];
  });
  const std::vector<float> got = numbers.download(p.weight, type, weights);
  for (size_t i = 0; i < got.size(); ++i)
    if (got[i] != want[i])
      return fmt::format(
          "the gradient of weights, of channels {} and {}: element {} is {} instead of {}",
          g.big_channels, g.small_channels, i, got[i], want[i]);
  return {};
}

}  // namespace

// Compares convolutions of small integers, whose sums are exact in every kind, with the host's.
std::string wrong_mma_convolution(const OpCall& call, const void* what) {
  ConvMma v = *static_cast<const ConvMma*>(what);
  v.pieces = std::min<int64_t>(v.pieces, 3);
  for (const conv::ConvShape& sample : kSamples)
    for (const conv::Direction direction : {conv::Direction::Forward, conv::Direction::Data}) {
      std::string wrong = wrong_sums(call, sample, direction, v);
      if (!wrong.empty()) return wrong;
    }
  return {};
}

// Likewise of gradients of weights.
std::string wrong_mma_weight(const OpCall& call, const void* what) {
  WeightMma v = *static_cast<const WeightMma*>(what);
  v.pieces = std::min<int64_t>(v.pieces, 3);
  for (const conv::ConvShape& sample : kSamples) {
    std::string wrong = wrong_gradients(call, sample, v);
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace ocltensor::opencl::nvidia_mma
