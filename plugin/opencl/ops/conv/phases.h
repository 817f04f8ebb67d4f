// Two-dimensional convolutions as sums over taps: what one launch of the forward or data direction
// computes.
#pragma once

#include <span>
#include <vector>

#include "conv.h"
#include "conv_implicit_params.h"

namespace ocltensor::opencl::conv {

// One dimension of a convolution as the kernels see it: output i of `outputs`, which lies at begin
// + i * step, is the sum over t < taps of x[start + i * stride + t * dilation] * weight[first + t *
// weight_step].
struct Axis {
  int64_t outputs, begin, step, stride, taps, first, weight_step, start, dilation;
};
// The axis of dimension d for Forward; for a transposed convolution that of outputs begin, begin +
// stride, ...
Axis forward_axis(const ConvParams& g, size_t d);
Axis transposed_axis(const ConvParams& g, size_t d, int64_t begin);

// What one launch computes. The data direction has one for every remainder of the position by the
// stride, so that no zero is multiplied.
struct Phase {
  Axis y, x;
};
std::vector<Phase> phases_of(const Problem& p);

// The phases that have something to add up. Where the window is smaller than the stride, others
// have nothing: the target is filled with zeros, unless a bias is added, and they are left out.
std::vector<Phase> phases_after_zeros(const OpCall& call, const Problem& p);

// Why algorithms that compute two dimensions in float32 cannot run, or nullptr.
const char* refuse_phases(const Problem& p);

// Forward and data as products: the three tensors by their parts.
struct Roles {
  explicit Roles(const Problem& p)
      : forward(p.direction == Direction::Forward),
        channels(forward ? p.params.big_channels : p.params.small_channels),
        m(forward ? p.params.small_channels : p.params.big_channels),
        source(forward ? p.big : p.small),
        target(forward ? p.small : p.big),
        source_sizes(forward ? p.params.in : p.params.out),
        target_sizes(forward ? p.params.out : p.params.in),
        source_strides(forward ? p.params.big_strides : p.params.small_strides),
        target_strides(forward ? p.params.small_strides : p.params.big_strides) {}
  bool forward;
  int64_t channels, m;
  tb_address source, target;
  const tk_i64 *source_sizes, *target_sizes, *source_strides, *target_strides;
};

// One to CONV_PHASES phases as such a product, with source and weights as they lie in memory: those
// that copy them change channels, strides of the source, taps and weights.
ConvImplicitParams product_of(const Problem& p, std::span<const Phase> phases);

// The phases in runs of as many as one launch computes: those with the most terms first, so that a
// device's last work-groups are short.
std::vector<std::vector<Phase>> launches_of(std::vector<Phase> phases);
// Of the phase that has most.
int64_t most_pixels(std::span<const ConvPhase> phases);

// Why a product that gathers its operands tile by tile, one group, cannot run, or nullptr.
const char* refuse_gathering(const Problem& p);

}  // namespace ocltensor::opencl::conv
