// For proofs and tests: a convolution's parameters from its sizes, and the terms of its sums one by
// one.
#pragma once

#include "conv_params.h"

namespace ocltensor::opencl::conv {

// A convolution's geometry; the tensors are contiguous or channels last.
struct ConvShape {
  int64_t batch, big, small, y, x, window_y, window_x;
  int64_t stride_y = 1, stride_x = 1, pad_y = 0, pad_x = 0, dilation_y = 1, dilation_x = 1;
  int64_t extra_y = 0, extra_x = 0;  // a transposed convolution's output padding
  bool channels_last = false;
  int64_t groups = 1;  // of `big` and `small` channels each
};
inline ConvParams conv_params_of(const ConvShape& s) {
  ConvParams g{};
  g.batch = s.batch;
  g.groups = s.groups;
  g.big_channels = s.big;
  g.small_channels = s.small;
  const int64_t in[3] = {1, s.y, s.x}, window[3] = {1, s.window_y, s.window_x};
  const int64_t stride[3] = {1, s.stride_y, s.stride_x}, padding[3] = {0, s.pad_y, s.pad_x};
  const int64_t dilation[3] = {1, s.dilation_y, s.dilation_x}, extra[3] = {0, s.extra_y, s.extra_x};
  for (size_t d = 0; d < 3; ++d) {
    g.in[d] = in[d];
    g.window[d] = window[d];
    g.stride[d] = stride[d];
    g.padding[d] = padding[d];
    g.dilation[d] = dilation[d];
    g.out[d] =
        (in[d] - extra[d] + 2 * padding[d] - (window[d] - 1) * dilation[d] - 1) / stride[d] + 1;
  }
  const auto lay = [&](tk_i64(&strides)[5], int64_t c, const tk_i64(&map)[3]) {
    const int64_t y = map[1], x = map[2];
    const int64_t near[5] = {c * y * x, y * x, y * x, x, 1}, last[5] = {c * y * x, 1, 0, x * c, c};
    for (size_t d = 0; d < 5; ++d) strides[d] = s.channels_last ? last[d] : near[d];
  };
  lay(g.big_strides, s.groups * s.big, g.in);
  lay(g.small_strides, s.groups * s.small, g.out);
  lay(g.weight_strides, s.big, g.window);
  g.bias_stride = 1;
  return g;
}

// Calls body(offset in big, small, weight) for every term of the sums.
template <typename Body>
void for_each_conv_term(const ConvParams& g, Body&& body) {
  for (int64_t n = 0; n < g.batch; ++n)
    for (int64_t i = 0; i < g.out[1]; ++i)
      for (int64_t j = 0; j < g.out[2]; ++j)
        for (int64_t r = 0; r < g.window[1]; ++r)
          for (int64_t s = 0; s < g.window[2]; ++s) {
            const int64_t y = i * g.stride[1] - g.padding[1] + r * g.dilation[1];
            const int64_t x = j * g.stride[2] - g.padding[2] + s * g.dilation[2];
            if (y < 0 || y >= g.in[1] || x < 0 || x >= g.in[2]) continue;
            for (int64_t k = 0; k < g.groups * g.small_channels; ++k)
              for (int64_t c = 0; c < g.big_channels; ++c)
                body(n * g.big_strides[0] +
                         (k / g.small_channels * g.big_channels + c) * g.big_strides[1] +
                         y * g.big_strides[3] + x * g.big_strides[4],
                     n * g.small_strides[0] + k * g.small_strides[1] + i * g.small_strides[3] +
                         j * g.small_strides[4],
                     k * g.weight_strides[0] + c * g.weight_strides[1] + r * g.weight_strides[3] +
                         s * g.weight_strides[4]);
          }
}

}  // namespace ocltensor::opencl::conv
