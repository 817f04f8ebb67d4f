// Where products of convolutions on Hopper's matrix units write their results, and sums of pieces
// (sum.cl).
#include "call/divide_up.h"
#include "convolution.h"
#include "kernels/nvidia_hopper/conv.h"

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kGroup = 128;

bool is_weight(const ConvHopperProblem& p) { return p.direction == conv::Direction::Weight; }
// The output's strides as launches use them: image (row of a weight), channel, y, x at 0, 1, 3, 4.
const tk_i64* out_strides(const ConvHopperProblem& p) {
  const ConvParams& g = p.params;
  return p.direction == conv::Direction::Forward ? g.small_strides
         : p.direction == conv::Direction::Data  ? g.big_strides
                                                 : g.weight_strides;
}

}  // namespace

ConvHopperResult::ConvHopperResult(const OpCall& call, const ConvHopperProblem& p,
                                   ConvHopperKind kind, const ConvHopperProduct& product)
    : problem_(p), product_(product) {
  const bool half = kind == ConvHopperKind::Half || kind == ConvHopperKind::BFloat;
  const bool near_channels = out_strides(p)[1] == 1;
  channels_last_ = near_channels || (half && !is_weight(p));
  const int64_t pieces = product.tiles.pieces;
  if (pieces > 1 || is_weight(p))
    memory_.push_back(call.scratch(static_cast<uint64_t>(pieces * product.m * product.n * 4)));
}

MemoryRange ConvHopperResult::first() const {
  const tk_i64* strides = out_strides(problem_);
  const int64_t elements =
      product_.y.result_begin * strides[3] + product_.x.result_begin * strides[4];
  const tb_address out = is_weight(problem_)                           ? problem_.weight
                         : problem_.direction == conv::Direction::Data ? problem_.big
                                                                       : problem_.small;
  const int64_t item = size_of(problem_.dtype);
  return {out + static_cast<uint64_t>((is_weight(problem_) ? 0 : elements) * item), 0, item};
}

void ConvHopperResult::describe(ConvHopperParams& params) const {
  const int64_t n = product_.n, row = product_.x.positions, positions = product_.y.positions * row;
  if (in_pieces()) {
    params.out_piece = product_.m * n;
    params.out_image = positions * n;
    params.out_channel = channels_last_ ? 1 : positions;
    params.out_x = channels_last_ ? n : 1;
    params.out_y = params.out_x * row;
    return;
  }
  const tk_i64* strides = out_strides(problem_);
  params.out_image = strides[0];
  params.out_channel = strides[1];
  params.out_y = strides[3] * product_.y.result_step;
  params.out_x = strides[4] * product_.x.result_step;
  params.bias_stride = problem_.params.bias_stride;
}

void ConvHopperResult::finish(const OpCall& call, const matmul::Guard& guard) const {
  if (!in_pieces()) return;
  const ConvParams& g = problem_.params;
  const tk_i64* strides = out_strides(problem_);
  const bool weight = is_weight(problem_);
  const auto i32 = [](int64_t v) { return static_cast<tk_i32>(v); };
  ConvSumParams params{};
  params.piece = product_.m * product_.n;
  params.out_image = strides[0];
  params.out_channel = strides[1];
  params.out_y = strides[3] * (weight ? 1 : product_.y.result_step);
  params.out_x = strides[4] * (weight ? 1 : product_.x.result_step);
  params.bias_stride = g.bias_stride;
  params.pieces = i32(product_.tiles.pieces);
  params.channels = i32(product_.n);
  const ConvHopperAxis &y = product_.y, &x = product_.x;
  params.positions = i32(y.positions * x.positions);
  params.row_positions = i32(x.positions);
  if (weight) {
    const ConvHopperCells cells = problem_.cells.value_or(ConvHopperCells::each_pixel(g));
    const int64_t line = product_.n / (y.taps * x.taps);  // of a tap
    params.channels = i32(cells.channels);
    params.positions = i32(cells.window_y * cells.window_x);
    params.row_positions = i32(cells.window_x);
    params.sums = product_.n;
    params.row_sums = i32(line * x.taps);
    params.cell = i32(problem_.cells ? cells.padded() : line);
    params.cell_rows = i32(cells.rows);
    params.cell_columns = i32(cells.columns);
    params.dilation_y = i32(cells.dilation_y);
    params.dilation_x = i32(cells.dilation_x);
  }
  params.channels_last = channels_last_;
  params.has_bias = !weight && problem_.bias.has_value();
  Defines d;
  d.type(define::TYPE, problem_.dtype).set(define::GUARDED, guard.word != 0);
  const int64_t near_count = weight           ? int64_t{params.positions} * params.channels
                             : channels_last_ ? params.channels
                                              : params.positions;
  const int64_t other = weight ? product_.m : channels_last_ ? params.positions : params.channels;
  namespace kernel = kernels::nvidia_hopper::conv::sum;
  call.launch(weight ? kernel::sum_weight : kernel::sum_map, d,
              {.out = first(),
               .pieces = memory_[0],
               .bias = conv::memory_of_bias(problem_),
               .word = guard.memory(),
               .stop = guard.value,
               .p = params})
      .run({divide_up(near_count, kGroup) * kGroup, other, weight ? 1 : g.batch}, {kGroup, 1, 1});
}

}  // namespace ocltensor::opencl::nvidia_hopper
