// Gradient of weights for CPU drivers: packed gradient of the output, register tiles of 9 taps x 32
// channels.
#include "kernels/conv.h"
#include "rows.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kBlock = 32;  // weight_rows.cl
constexpr int64_t kRows = 9;
constexpr int64_t kChunk = 512;

const char* refuse(const OpCall&, const Problem& p) {
  if (const char* reason = refuse_phases(p)) return reason;
  if (p.direction != Direction::Weight) return "not the gradient of weights";
  if (p.params.batch == 0 || p.params.out[1] * p.params.out[2] == 0) return "nothing to sum";
  return nullptr;
}

void run(const OpCall& call, const Problem& p) {
  const ConvParams& g = p.params;
  const Axis y = forward_axis(g, 1);
  const Axis x = forward_axis(g, 2);
  const PaddedMap map = pad_map(call, p, {.is_big = true, .y = reach(y), .x = reach(x)});
  ConvRowsParams q = gradient_params(g, map, y, x);
  q.blocks = divide_up(q.outputs, kBlock);
  const int64_t rows = q.inputs * q.taps_y * q.taps_x;
  const int64_t tiles = divide_up(rows, kRows);
  q.per_item = divide_up(tiles, divide_up(work_items(call), q.blocks * g.groups)) * kRows;

  const int64_t positions = q.height * q.width;
  const auto floats = static_cast<uint64_t>(g.groups * q.blocks * kBlock) * sizeof(float);
  const Scratch packed = call.scratch(floats * static_cast<uint64_t>(g.batch * positions));
  const Scratch sums = call.scratch(floats * static_cast<uint64_t>(rows));
  const int64_t blocks = q.blocks;
  const int64_t groups = g.groups;
  Defines d;
  d.type(define::TYPE, p.dtype);
  namespace kernel = kernels::conv::weight_rows;
  call.launch(kernel::pack_gradient, d, {.packed = packed, .y = memory_of_small(p), .p = q})
      .run({blocks, g.batch * divide_up(positions, kChunk), groups}, {1, 1, 1});
  call.launch(kernel::conv_weight, d, {.sums = sums, .x = map, .packed = packed, .p = q})
      .run({divide_up(rows, q.per_item), blocks, groups}, {1, 1, 1});
  call.launch(kernel::unpack_weight, d, {.w = memory_of_weight(p), .sums = sums, .p = q})
      .run({blocks, divide_up(rows, 256), groups}, {1, 1, 1});
}

}  // namespace

constinit const AlgorithmFor<Problem> kWeightTiles({.id = "conv.weight_tiles",
                                                    .description = "gradient tiles",
                                                    .style = DeviceStyle::Cpu},
                                                   Steps<refuse, run>());

}  // namespace ocltensor::opencl::conv
