// Convolutions with a window of one element: matrix products of the weights with each image (any
// device, any type).
#include "call/division.h"
#include "conv.h"
#include "ops/matmul/matmul.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kMostGroups = 8;  // each is a product of its own
constexpr int64_t kSmallMap = 64;   // positions; on CPU drivers direct tiles are faster up to here

// The stride between consecutive positions if one stride that is not 0 fits all of them, else 0.
int64_t line(const tk_i64 (&map)[3], const tk_i64 (&strides)[5]) {
  const Dims sizes{map[0], map[1], map[2]};
  std::optional<int64_t> step;  // none: there is one position
  int64_t expected = 0;
  for (size_t d = 3; d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (!step) step = expected = strides[d + 2];
    if (strides[d + 2] != expected) return 0;
    expected *= sizes[d];
  }
  return step.value_or(1);
}

const char* refuse(const OpCall&, const Problem& p) {
  const ConvParams& g = p.params;
  if (p.direction == Direction::Weight) return "the gradient of weights";
  for (size_t d = 0; d < 3; ++d)
    if (g.window[d] != 1 || g.padding[d] != 0 || g.stride[d] != 1 || g.in[d] != g.out[d])
      return "the window is not one element";
  if (g.groups > kMostGroups) return "many groups";
  if (line(g.in, g.big_strides) == 0 || line(g.out, g.small_strides) == 0)
    return "positions do not lie in a line";
  return nullptr;
}

const char* pass_over(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const bool has_direct = by_style(call, true, false) && compute_type(p.dtype) == DType::Float32;
  if (has_direct && g.in[0] == 1 && g.in[1] * g.in[2] <= kSmallMap) return "a small map";
  return nullptr;
}

void run(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == Direction::Forward;
  const int64_t item = size_of(p.dtype);
  const auto moved = [&](tb_address address, int64_t elements) {
    return address + static_cast<uint64_t>(elements * item);
  };
  int64_t positions = g.in[0] * g.in[1] * g.in[2], images = g.batch;
  if (g.big_strides[0] == positions * line(g.in, g.big_strides) &&
      g.small_strides[0] == positions * line(g.out, g.small_strides)) {
    positions *= images;  // channels_last: the images are one product
    images = 1;
  }
  for (int64_t i = 0; i < g.groups; ++i) {
    const matmul::Matrix big{moved(p.big, i * g.big_channels * g.big_strides[1]), g.big_strides[0],
                             g.big_strides[1], line(g.in, g.big_strides)};
    const matmul::Matrix small{moved(p.small, i * g.small_channels * g.small_strides[1]),
                               g.small_strides[0], g.small_strides[1],
                               line(g.out, g.small_strides)};
    const tb_address weights = moved(p.weight, i * g.small_channels * g.weight_strides[0]);
    matmul::Problem m{
        .dtype = p.dtype,
        .batch = images,
        .m = forward ? g.small_channels : g.big_channels,
        .n = positions,
        .k = forward ? g.big_channels : g.small_channels,
        .a = {weights, 0, g.weight_strides[forward ? 0 : 1], g.weight_strides[forward ? 1 : 0]},
        .b = forward ? big : small,
        .c = forward ? small : big,
        .self = std::nullopt};
    if (p.bias) {
      m.self = matmul::Matrix{moved(*p.bias, i * m.m * g.bias_stride), 0, g.bias_stride, 0};
      m.beta = 1;
    }
    matmul::run_matmul(call, m);
  }
}

}  // namespace

constinit const AlgorithmFor<Problem> kPointwise({.id = "conv.pointwise",
                                                  .description = "products of matrices"},
                                                 Steps<refuse, run>(), pass_over);

}  // namespace ocltensor::opencl::conv
