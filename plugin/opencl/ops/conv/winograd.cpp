// Winograd's F(4 x 4, 3 x 3) for CPU drivers: forward and data of windows of 3 x 3 with stride 1.
// The direct tiles are enqueued behind it, for the case that something is not finite.
#include "kernels/conv.h"
#include "rows.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kTile = 4;       // outputs, in each dimension
constexpr int64_t kPoints = 36;    // winograd.cl
constexpr int64_t kTiles = 32;     // of a block
constexpr int64_t kChannels = 32;  // output channels of a block
constexpr int64_t kInputs = 16;    // whose windows are transformed at a time
constexpr int64_t kLine = 16;      // between points, so that they are in other sets of a cache
constexpr int64_t kOverrun = 2;    // columns that are read but not used
// Below these the direct tiles are faster, or as fast (measured with PoCL and AVX-512).
constexpr int64_t kFewInputs = 8;
constexpr int64_t kFewTiles = 16;
constexpr int64_t kManyWindows = 1 << 17;  // transformed, they leave the caches
constexpr int64_t kLittleWork = 350'000;   // positions x channels x channels
// Transformed inputs of a pass, per compute unit: they stay in its cache.
constexpr int64_t kPassBytes = 1 << 20;
constexpr size_t kLocalBytes = static_cast<size_t>(kChannels * kPoints * kTiles) * sizeof(float);

int64_t tiles_of(const Problem& p) {
  const auto& out = p.direction == Direction::Forward ? p.params.out : p.params.in;
  return p.params.batch * divide_up(out[1], kTile) * divide_up(out[2], kTile);
}

const char* refuse(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_phases(p)) return reason;
  const ConvParams& g = p.params;
  if (p.direction == Direction::Weight) return "the gradient of weights";
  if (g.groups != 1) return "several groups";
  for (size_t d = 1; d < 3; ++d)
    if (g.window[d] != 3 || g.stride[d] != 1 || g.dilation[d] != 1)
      return "not a window of 3 x 3 with stride 1";
  if (g.big_channels == 0 || g.small_channels == 0 || tiles_of(p) == 0) return "nothing to sum";
  if (call.caps().local_memory < kLocalBytes) return "little local memory";
  return nullptr;
}

const char* pass_over(const OpCall&, const Problem& p) {
  const ConvParams& g = p.params;
  const bool forward = p.direction == Direction::Forward;
  const auto& out = forward ? g.out : g.in;
  const int64_t inputs = forward ? g.big_channels : g.small_channels;
  const int64_t outputs = forward ? g.small_channels : g.big_channels;
  if (inputs < kFewInputs) return "few input channels";
  if (tiles_of(p) < kFewTiles) return "few tiles";
  if (inputs * outputs >= kManyWindows && tiles_of(p) < 2 * kFewTiles)
    return "few tiles for so many windows to transform";
  const int64_t positions = g.batch * out[1] * out[2];
  if (positions * inputs * divide_up(outputs, kChannels) * kChannels < kLittleWork)
    return "little work";
  return nullptr;
}

int64_t window_bytes(const ConvRowsParams& q) {
  return kPoints * (q.blocks * kChannels * q.inputs + kLine) * static_cast<int64_t>(sizeof(float));
}

// The windows, transformed.
Scratch transform_windows(const OpCall& call, const Problem& p, const ConvRowsParams& q) {
  Scratch u = call.scratch(static_cast<uint64_t>(window_bytes(q)));
  Defines d;
  d.type(define::TYPE, p.dtype);
  call.launch(kernels::conv::winograd::transform_windows, d,
              {.u = u, .w = memory_of_weight(p), .p = q})
      .run({q.blocks, divide_up(q.inputs, kInputs), 1}, {1, 1, 1});
  return u;
}

void run(const OpCall& call, const Problem& p) {
  const bool forward = p.direction == Direction::Forward;
  const Phase phase = phases_of(p).front();
  Reach y{INT64_MAX, INT64_MIN};
  Reach x = y;
  widen(y, phase.y, kTile);
  widen(x, phase.x, kTile);
  widen(x, phase.x, kDirectColumns);
  const PaddedMap map = pad_map(call, p, {.is_big = forward, .y = y, .x = x, .overrun = kOverrun});
  ConvRowsParams q = rows_params(p, phase, map);
  q.blocks = divide_up(q.outputs, kChannels);
  q.segments = tiles_of(p);
  q.channels_inner = q.segments > q.outputs;  // sweeps the smaller operand
  const Scratch u = transform_windows(call, p, q);
  const Scratch word = call.scratch(sizeof(uint32_t));
  const matmul::Guard guard{word.address(), matmul::next_guard_value()};

  const int64_t block_bytes =
      kPoints * (kTiles * q.inputs + kLine) * static_cast<int64_t>(sizeof(float));
  const int64_t all = divide_up(q.segments, kTiles);
  // A pass reads all windows: it has no fewer bytes of inputs.
  const int64_t pass =
      std::max(kPassBytes * static_cast<int64_t>(call.caps().compute_units), window_bytes(q));
  const int64_t most = std::max<int64_t>(1, pass / block_bytes);
  const int64_t blocks = divide_up(all, divide_up(all, most));
  const Scratch v = call.scratch(static_cast<uint64_t>(blocks * block_bytes));
  Defines d;
  d.type(define::TYPE, p.dtype);
  for (int64_t first = 0; first < all; first += blocks) {
    const int64_t now = std::min(blocks, all - first);
    q.first_tile = first * kTiles;
    q.per_item = std::max<int64_t>(4, divide_up(q.inputs * now, work_items(call)));
    call.launch(kernels::conv::winograd::transform_inputs, d,
                {.v = v, .word = guard.memory(), .x = map, .p = q})
        .run({now, divide_up(q.inputs, q.per_item), 1}, {1, 1, 1});
    Grid grid{now, q.blocks, 1};
    if (q.channels_inner) std::swap(grid[0], grid[1]);
    call.launch(kernels::conv::winograd::multiply, d,
                {.y = forward ? memory_of_small(p) : memory_of_big(p),
                 .word = guard.memory(),
                 .u = u,
                 .v = v,
                 .bias = memory_of_bias(p),
                 .value = guard.value,
                 .p = q})
        .run(grid, {1, 1, 1});
  }
  run_direct(call, p, phase, map, guard);
}

}  // namespace

constinit const AlgorithmFor<Problem> kWinograd({.id = "conv.winograd",
                                                 .description = "Winograd's tiles",
                                                 .style = DeviceStyle::Cpu},
                                                Steps<refuse, run>(), pass_over);

}  // namespace ocltensor::opencl::conv
