// Direct convolution for CPU drivers, forward and data. The data direction is a forward convolution
// over flipped weights: one launch for every remainder of the position by the stride, so that no
// zero is multiplied.
#include "kernels/conv.h"
#include "rows.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kSegment = 7;                    // direct.cl
constexpr int64_t kBlock = 32;                     // output channels of a block, direct.cl
constexpr int64_t kTileBytes = 4 * kSegment * 64;  // sums of a tile
constexpr int64_t kPackedBytes = kBlock * 4;       // weights of a block for one k
constexpr int64_t kMostPacked = 768;  // k of a chunk: 96 KiB, which the second-level cache keeps
constexpr int64_t kGoodRun = 28;      // tiles over which packing weights costs about 3 %
constexpr int64_t kLongestRun = 64;
constexpr int64_t kShortestRun = 4;  // weights; fewer are gathered one by one

int64_t most_packed(const OpCall& call) {
  return std::min(kMostPacked, static_cast<int64_t>(call.caps().local_memory / 2) / kPackedBytes);
}

const char* refuse(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_rows(p)) return reason;
  const ConvParams& g = p.params;
  if (p.direction == Direction::Weight) return "the gradient of weights";
  if (g.window[1] * g.window[2] > most_packed(call)) return "a window of very many elements";
  if (p.direction == Direction::Data)
    for (size_t d = 1; d < 3; ++d)
      if (g.stride[d] > 1 && g.dilation[d] > 1) return "transposed with stride and dilation";
  return nullptr;
}

void widen(Reach& reach, const Axis& a, int64_t piece) {
  if (a.outputs == 0 || a.taps == 0) return;
  const int64_t last = divide_up(a.outputs, piece) * piece - 1;
  reach.low = std::min(reach.low, a.start);
  reach.high = std::max(reach.high, a.start + last * a.stride + (a.taps - 1) * a.dilation);
}

struct Phase {
  Axis y, x;
};

std::vector<Phase> phases_of(const Problem& p) {
  const ConvParams& g = p.params;
  if (p.direction == Direction::Forward) return {{forward_axis(g, 1), forward_axis(g, 2)}};
  std::vector<Phase> phases;
  for (int64_t y = 0; y < std::min(g.stride[1], g.in[1]); ++y)
    for (int64_t x = 0; x < std::min(g.stride[2], g.in[2]); ++x)
      phases.push_back({transposed_axis(g, 1, y), transposed_axis(g, 2, x)});
  return phases;
}

// Finds how many weights of consecutive k = (input channel, tap) are contiguous in memory, in
// rising or in falling order.
void find_runs(ConvRowsParams& q) {
  const int64_t nest[][2] = {{q.taps_x, q.w_x}, {q.taps_y, q.w_y}, {q.inputs, q.w_input}};
  for (const bool falls : {false, true}) {
    int64_t length = 1;
    for (const auto& [size, stride] : nest) {
      if (size == 1) continue;
      if (stride != (falls ? -length : length)) break;
      length *= size;
    }
    if (length < kShortestRun || length <= q.w_run) continue;
    q.w_run = length;
    q.w_falls = falls;
  }
}

// Divides the tiles into runs, one for each work-item: 12 work-items per compute unit, fewer (down
// to 4) where runs would be so short that packing weights, which each item does for itself, takes
// more than 3 % of its time.
void divide_tiles(const OpCall& call, ConvRowsParams& q, int64_t groups) {
  const int64_t tiles = divide_up(q.segments, 2);
  const int64_t total = tiles * q.blocks * groups;
  const int64_t items = work_items(call);
  const int64_t least = std::min(kGoodRun, divide_up(3 * total, items));
  const int64_t run = std::clamp<int64_t>(divide_up(total, items), least, kLongestRun);
  q.per_item = divide_up(tiles, divide_up(tiles, run));
  const int64_t taps = q.taps_y * q.taps_x;
  const int64_t fit = std::max<int64_t>(1, most_packed(call) / std::max<int64_t>(1, taps));
  q.inputs_per_chunk =
      std::max<int64_t>(1, divide_up(q.inputs, divide_up(std::max<int64_t>(1, q.inputs), fit)));
}

void run_phase(const OpCall& call, const Problem& p, const Phase& phase, const PaddedMap& map) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == Direction::Forward;
  const auto& out = forward ? g.small_strides : g.big_strides;
  ConvRowsParams q{};
  q.inputs = forward ? g.big_channels : g.small_channels;
  q.outputs = forward ? g.small_channels : g.big_channels;
  q.taps_y = phase.x.taps == 0 ? 0 : phase.y.taps;
  q.taps_x = phase.y.taps == 0 ? 0 : phase.x.taps;
  const bool empty = q.taps_y == 0 || q.taps_x == 0;
  q.x_start = empty ? 0 : map.origin + phase.y.start * map.row + phase.x.start;
  q.x_image = map.image;
  q.x_group = q.inputs * map.channel;
  q.x_channel = map.channel;
  q.x_row = map.row;
  q.y_start = phase.y.begin * out[3] + phase.x.begin * out[4];
  q.y_image = out[0];
  q.y_group = q.outputs * out[1];
  q.y_channel = out[1];
  q.y_row = out[3] * phase.y.step;
  q.y_col = out[4] * phase.x.step;
  q.dilation_y = phase.y.dilation;
  q.dilation_x = phase.x.dilation;
  q.stride_y = phase.y.stride;
  q.stride_x = phase.x.stride;
  q.height = phase.y.outputs;
  q.width = phase.x.outputs;
  const auto& w = g.weight_strides;
  q.w_start = empty ? 0 : phase.y.first * w[3] + phase.x.first * w[4];
  q.w_group = g.small_channels * w[0];
  q.w_output = forward ? w[0] : w[1];
  q.w_input = forward ? w[1] : w[0];
  q.w_y = w[3] * phase.y.weight_step;
  q.w_x = w[4] * phase.x.weight_step;
  q.w_end = extent(Dims{g.groups * g.small_channels, g.big_channels, g.window[0], g.window[1],
                        g.window[2]},
                   std::span<const int64_t>(w))
                .high;
  find_runs(q);
  q.add_bias = p.bias.has_value();
  q.bias = g.bias_stride;
  q.bias_group = q.outputs * g.bias_stride;
  q.images = g.batch;
  q.segments = g.batch * q.height * divide_up(q.width, kSegment);
  q.blocks = divide_up(q.outputs, kBlock);
  divide_tiles(call, q, g.groups);
  // The smaller operand is swept by the inner loop, so that it stays in the cache.
  q.channels_inner = g.batch * map.image > q.outputs * q.inputs * g.groups * q.taps_y * q.taps_x;

  const int64_t runs = divide_up(divide_up(q.segments, 2), q.per_item);
  const bool waits = q.inputs_per_chunk < q.inputs;
  const Scratch sums = call.scratch(
      waits ? static_cast<uint64_t>(runs * q.blocks * g.groups * q.per_item * kTileBytes) : 0);
  Defines d;
  d.type(define::TYPE, p.dtype);
  const int64_t packed = std::max<int64_t>(1, q.inputs_per_chunk * q.taps_y * q.taps_x);
  Grid grid{runs, q.blocks, g.groups};
  if (q.channels_inner) std::swap(grid[0], grid[1]);
  call.launch(kernels::conv::direct::conv_direct, d,
              {.y = forward ? memory_of_small(p) : memory_of_big(p),
               .x = map,
               .w = memory_of_weight(p),
               .bias = memory_of_bias(p),
               .sums = sums,
               .packed = LocalBytes(static_cast<size_t>(packed * kPackedBytes)),
               .p = q})
      .run(grid, {1, 1, 1});
}

void run(const OpCall& call, const Problem& p) {
  const std::vector<Phase> phases = phases_of(p);
  Reach y{INT64_MAX, INT64_MIN};
  Reach x = y;
  for (const Phase& phase : phases) {
    widen(y, phase.y, 1);
    widen(x, phase.x, kSegment);
  }
  if (y.low > y.high || x.low > x.high) y = x = {0, 0};  // no phase has a tap
  const PaddedMap map =
      pad_map(call, p, {.is_big = p.direction == Direction::Forward, .y = y, .x = x});
  for (const Phase& phase : phases)
    if (phase.y.outputs > 0 && phase.x.outputs > 0) run_phase(call, p, phase, map);
}

}  // namespace

constinit const AlgorithmFor<Problem> kDirect({.id = "conv.direct",
                                               .description = "direct tiles",
                                               .style = DeviceStyle::Cpu},
                                              Steps<refuse, run>());

}  // namespace ocltensor::opencl::conv
