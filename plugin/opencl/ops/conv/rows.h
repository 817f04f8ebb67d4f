// What the convolutions for CPU drivers share: padded float copies of maps, axes of taps, work
// division.
#pragma once

#include <algorithm>
#include <vector>

#include "call/divide_up.h"
#include "conv.h"
#include "conv_rows_params.h"

namespace ocltensor::opencl::conv {

// One dimension of a convolution as the kernels see it: output i of `outputs`, which lies at begin
// + i * step, is the sum over t < taps of x[start + i * stride + t * dilation] * weight[first + t *
// weight_step].
struct Axis {
  int64_t outputs, begin, step, stride, taps, first, weight_step, start, dilation;
};
// The forward axis of dimension d; the transposed one for outputs begin, begin + stride, ...
// (stride or dilation is 1).
Axis forward_axis(const ConvParams& g, size_t d);
Axis transposed_axis(const ConvParams& g, size_t d, int64_t begin);

// A float map whose columns are neighbours, with a border.
struct PaddedMap {
  std::vector<Scratch> memory;  // none where the map itself serves
  tb_address address;
  int64_t low, high;            // bytes around the address
  int64_t origin;               // elements from the address to element (0, 0), border not counted
  int64_t image, channel, row;  // strides
  operator MemoryRange() const { return {address, low, high}; }  // NOLINT: implicit on purpose
};
// Rows or columns [low, high] of a map; outside the map there are zeros.
struct Reach {
  int64_t low, high;
};
struct PadRequest {
  bool is_big;  // the problem's big tensor, else the small one
  Reach y, x;
  int64_t overrun = 0;                 // elements past the end that may be read, whatever they are
  int64_t spread_y = 1, spread_x = 1;  // distance of elements; zeros lie between
};
PaddedMap pad_map(const OpCall& call, const Problem& p, const PadRequest& request);

// Reasons that hold for all of them, or nullptr.
const char* refuse_rows(const Problem& p);
inline int64_t work_items(const OpCall& call) {
  return 12 * static_cast<int64_t>(call.caps().compute_units);
}

}  // namespace ocltensor::opencl::conv
