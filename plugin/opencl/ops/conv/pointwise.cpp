// Convolutions with a window of one element: matrix products of the weights with each image (any
// device, any type); gradients of weights as products of each image's maps.
#include "call/division.h"
#include "conv.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/split_k_sum.h"

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

const char* refuse_window(const Problem& p) {
  const ConvParams& g = p.params;
  for (size_t d = 0; d < 3; ++d)
    if (g.window[d] != 1 || g.padding[d] != 0 || g.stride[d] != 1 || g.in[d] != g.out[d])
      return "the window is not one element";
  if (g.groups > kMostGroups) return "many groups";
  if (line(g.in, g.big_strides) == 0 || line(g.out, g.small_strides) == 0)
    return "positions do not lie in a line";
  return nullptr;
}
const char* refuse(const OpCall&, const Problem& p) {
  return p.direction == Direction::Weight ? "the gradient of weights" : refuse_window(p);
}

const char* pass_over(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const bool has_direct = by_style(call, true, false) && compute_type(p.dtype) == DType::Float32;
  if (has_direct && g.in[0] == 1 && g.in[1] * g.in[2] <= kSmallMap) return "a small map";
  return nullptr;
}

tb_address moved(tb_address address, DType type, int64_t elements) {
  return address + static_cast<uint64_t>(elements * size_of(type));
}
// The maps of a group as matrices of channels x positions, one for each image.
matmul::Matrix big_matrix(const Problem& p, int64_t group) {
  const ConvParams& g = p.params;
  return {moved(p.big, p.dtype, group * g.big_channels * g.big_strides[1]), g.big_strides[0],
          g.big_strides[1], line(g.in, g.big_strides)};
}
matmul::Matrix small_matrix(const Problem& p, int64_t group) {
  const ConvParams& g = p.params;
  return {moved(p.small, p.dtype, group * g.small_channels * g.small_strides[1]),
          g.small_strides[0], g.small_strides[1], line(g.out, g.small_strides)};
}

void run(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == Direction::Forward;
  int64_t positions = g.in[0] * g.in[1] * g.in[2], images = g.batch;
  if (g.big_strides[0] == positions * line(g.in, g.big_strides) &&
      g.small_strides[0] == positions * line(g.out, g.small_strides)) {
    positions *= images;  // channels_last: the images are one product
    images = 1;
  }
  for (int64_t i = 0; i < g.groups; ++i) {
    const matmul::Matrix big = big_matrix(p, i), small = small_matrix(p, i);
    const tb_address weights = moved(p.weight, p.dtype, i * g.small_channels * g.weight_strides[0]);
    matmul::Problem m{
        .types = p.dtype,
        .batch = images,
        .m = forward ? g.small_channels : g.big_channels,
        .n = positions,
        .k = forward ? g.big_channels : g.small_channels,
        .a = {weights, 0, g.weight_strides[forward ? 0 : 1], g.weight_strides[forward ? 1 : 0]},
        .b = forward ? big : small,
        .c = forward ? small : big};
    if (p.bias) {
      m.end.add({moved(*p.bias, p.dtype, i * m.m * g.bias_stride), 0, g.bias_stride, 0});
    }
    matmul::run_matmul(call, m);
  }
}

// ---- Gradients of weights: products of each image's maps, whose float32 sums are added in a fixed
// order. Other types would be rounded before they are added.

const char* refuse_weight(const OpCall&, const Problem& p) {
  const ConvParams& g = p.params;
  if (p.direction != Direction::Weight) return "not the gradient of weights";
  if (p.dtype != DType::Float32) return "not float32";
  if (const char* reason = refuse_window(p)) return reason;
  if (g.groups != 1) return "several groups";
  if (g.batch * g.in[0] * g.in[1] * g.in[2] == 0) return "nothing to sum";
  return nullptr;
}

// Maps in channels_last are one product for the other algorithms. The sums of images are written
// and read again, which must be little beside reading the maps.
const char* pass_over_weight(const OpCall&, const Problem& p) {
  const ConvParams& g = p.params;
  if (g.big_strides[1] == 1 || g.small_strides[1] == 1) return "the channels are neighbours";
  const int64_t positions = g.in[0] * g.in[1] * g.in[2];
  const int64_t sums = g.small_channels * g.big_channels;
  return sums > 2 * positions * (g.small_channels + g.big_channels)
             ? "the sums of images would take longer than they save"
             : nullptr;
}

void run_weight(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const matmul::Matrix weight{p.weight, 0, g.weight_strides[0], g.weight_strides[1]};
  matmul::Problem m{.types = p.dtype,
                    .batch = g.batch,
                    .m = g.small_channels,
                    .n = g.big_channels,
                    .k = g.in[0] * g.in[1] * g.in[2],
                    .a = small_matrix(p, 0),
                    .b = matmul::transposed(big_matrix(p, 0)),
                    .c = weight};
  if (g.batch == 1) return matmul::run_matmul(call, m);
  const Scratch sums =
      call.scratch(static_cast<uint64_t>(g.batch * m.m * m.n * size_of(DType::Float32)));
  m.c = {sums.address(), m.m * m.n, m.n, 1};
  matmul::run_matmul(call, m);
  m.batch = 1;
  m.c = weight;
  matmul::sum_pieces(call, matmul::results_of(m), g.batch, sums.address());
}

}  // namespace

constinit const AlgorithmFor<Problem> kPointwise({.id = "conv.pointwise",
                                                  .description = "products of matrices"},
                                                 Steps<refuse, run>(), pass_over);
constinit const AlgorithmFor<Problem> kPointwiseWeight(
    {.id = "conv.pointwise_weight",
     .description = "products of each image's maps",
     .style = DeviceStyle::Gpu},
    Steps<refuse_weight, run_weight>(), pass_over_weight);

}  // namespace ocltensor::opencl::conv
