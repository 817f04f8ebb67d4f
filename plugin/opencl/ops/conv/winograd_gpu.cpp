// Winograd's F(4 x 4, 3 x 3) for GPUs, and F(3 x 3, 4 x 4) for the gradient of the windows: windows
// of 3 x 3 with stride 1. The operands' tiles become 36 points, each point is a product of
// matrices, and the products' points become tiles of the result. The general kernel is enqueued
// behind it, for the case that something is not finite.
#include <algorithm>

#include "call/divide_up.h"
#include "conv.h"
#include "conv_winograd_params.h"
#include "kernels/conv.h"
#include "ops/matmul/matmul.h"
#include "phases.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kTile = 4;                 // outputs, in each dimension
constexpr int64_t kWindow = 3;               // of a window
constexpr int64_t kPoints = 36;              // (kTile + kWindow - 1) squared
constexpr int64_t kGroup = 128;              // work-items
constexpr int64_t kLine = 4;                 // elements: lines of points begin at multiples of it
constexpr int64_t kPassBytes = 256ll << 20;  // of the points of an operand at a time

// Points of tiles x channels numbers in memory.
struct Points {
  Points(const OpCall& call, int64_t all_tiles, int64_t all_channels, bool has_channels_inner)
      : tiles(all_tiles),
        channels(all_channels),
        channels_inner(has_channels_inner),
        line(divide_up(channels_inner ? channels : tiles, kLine) * kLine),
        point(line * (channels_inner ? tiles : channels)),
        memory(call.scratch(static_cast<uint64_t>(kPoints * point) * sizeof(float))) {}
  int64_t tile_stride() const { return channels_inner ? line : 1; }
  int64_t channel_stride() const { return channels_inner ? 1 : line; }
  matmul::Matrix by_channel() const {
    return {memory.address(), point, channel_stride(), tile_stride()};
  }
  matmul::Matrix by_tile() const { return matmul::transposed(by_channel()); }

  int64_t tiles, channels;
  bool channels_inner;
  int64_t line, point;
  Scratch memory;
};

// A tensor whose tiles are transformed.
struct Tiled {
  MemoryRange memory;
  int64_t edge;      // of a tile
  int64_t first[2];  // row and column of the first tile's first element
  int64_t channels, images, rows, columns;
  int64_t across, down;  // tiles of an image
  int64_t start, image, channel, row, column;
  int64_t tiles() const { return images * across * down; }
  bool has_channels_inner() const { return channel == 1; }
  ConvWinogradParams params(const Points& points) const {
    return {.channels = channels,
            .tiles = tiles(),
            .image_tiles = across * down,
            .row_tiles = across,
            .start = start,
            .image = image,
            .channel = channel,
            .row = row,
            .column = column,
            .rows = rows,
            .columns = columns,
            .first = {first[0], first[1]},
            .step = kTile,
            .point = points.point,
            .point_tile = points.tile_stride(),
            .point_channel = points.channel_stride(),
            .bias_stride = 0};
  }
};

enum class Side : uint8_t { Big, Small };

// Images [first, first + count) of one of the maps, in tiles of the convolution's result: of the
// side that is written (for Weight: of the gradient of the output).
Tiled map_of(const Problem& p, Side side, Side tiled, int64_t first, int64_t count) {
  const ConvParams& g = p.params;
  const bool big = side == Side::Big, same = side == tiled;
  const tk_i64* s = big ? g.big_strides : g.small_strides;
  const tk_i64* sizes = big ? g.in : g.out;
  const tk_i64* of = tiled == Side::Big ? g.in : g.out;
  // Where the first window begins: that of a transposed convolution is turned.
  const auto begin = [&](size_t d) {
    return same ? 0 : big ? -g.padding[d] : g.padding[d] - (kWindow - 1);
  };
  return {.memory = big ? memory_of_big(p) : memory_of_small(p),
          .edge = same ? kTile : kTile + kWindow - 1,
          .first = {begin(1), begin(2)},
          .channels = big ? g.big_channels : g.small_channels,
          .images = count,
          .rows = sizes[1],
          .columns = sizes[2],
          .across = divide_up(of[2], kTile),
          .down = divide_up(of[1], kTile),
          .start = first * s[0],
          .image = s[0],
          .channel = s[1],
          .row = s[3],
          .column = s[4]};
}

// The windows: an image for each channel of the small map (data: of the big one, and turned).
Tiled windows_of(const Problem& p) {
  const ConvParams& g = p.params;
  const tk_i64* s = g.weight_strides;
  const bool of_data = p.direction == Direction::Data;
  return {.memory = memory_of_weight(p),
          .edge = kWindow,
          .first = {0, 0},
          .channels = of_data ? g.small_channels : g.big_channels,
          .images = of_data ? g.big_channels : g.small_channels,
          .rows = kWindow,
          .columns = kWindow,
          .across = 1,
          .down = 1,
          .start = of_data ? (kWindow - 1) * (s[3] + s[4]) : 0,
          .image = of_data ? s[1] : s[0],
          .channel = of_data ? s[0] : s[1],
          .row = of_data ? -s[3] : s[3],
          .column = of_data ? -s[4] : s[4]};
}

Grid items_of(const Tiled& t) { return {divide_up(t.tiles() * t.channels, kGroup) * kGroup, 1, 1}; }

Defines defines_of(const Problem& p, const Tiled& t, const Points& points) {
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::TILE, t.edge)
      .set(define::CHANNELS_INNER, points.channels_inner);
  return d;
}

Points to_points(const OpCall& call, const Problem& p, const Tiled& from) {
  Points points(call, from.tiles(), from.channels, from.has_channels_inner());
  call.launch(kernels::conv::winograd_gpu_to_points::to_points, defines_of(p, from, points),
              {.points = points.memory, .map = from.memory, .p = from.params(points)})
      .run(items_of(from), {kGroup, 1, 1});
  return points;
}

// The widest vectors that rows of the tensor can be stored by.
int64_t vector_of(const Problem& p, const Tiled& to) {
  if (to.edge != kTile || to.column != 1) return 1;
  int64_t width = kTile;
  const auto fits = [&](int64_t w) {
    const auto whole = [w](int64_t n) { return n % w == 0; };
    return to.memory.address % static_cast<uint64_t>(w * size_of(p.dtype)) == 0 &&
           whole(to.start) && whole(to.image) && whole(to.channel) && whole(to.row) &&
           whole(to.columns);
  };
  while (width > 1 && !fits(width)) width /= 2;
  return width;
}

void from_points(const OpCall& call, const Problem& p, const Points& points, const Tiled& to,
                 const matmul::Guard& guard) {
  ConvWinogradParams k = to.params(points);
  k.bias_stride = p.params.bias_stride;
  Defines d = defines_of(p, to, points);
  d.set(define::VEC, vector_of(p, to)).set(define::ADD_SELF, p.bias.has_value());
  call.launch(kernels::conv::winograd_gpu_from_points::from_points, d,
              {.map = to.memory,
               .word = guard.memory(),
               .points = points.memory,
               .bias = memory_of_bias(p),
               .value = guard.value,
               .p = k})
      .run(items_of(to), {kGroup, 1, 1});
}

matmul::Problem products(int64_t m, int64_t n, int64_t k) {
  return {
      .types = DType::Float32, .batch = kPoints, .m = m, .n = n, .k = k, .a = {}, .b = {}, .c = {}};
}

// Forward and data: of each point, the windows' matrix times that of the tiles. The result's rows
// are what its points have outside.
void multiply(const OpCall& call, const Points& windows, const Points& tiles, const Points& sums) {
  matmul::Problem product =
      products(sums.channels_inner ? sums.tiles : sums.channels,
               sums.channels_inner ? sums.channels : sums.tiles, tiles.channels);
  product.a = sums.channels_inner ? tiles.by_tile() : windows.by_tile();
  product.b = sums.channels_inner ? windows.by_channel() : tiles.by_channel();
  product.c = sums.channels_inner ? sums.by_tile() : sums.by_channel();
  matmul::run_matmul(call, product);
}

// Adds the sums over a pass's tiles: small channels x big channels.
void add_gradient(const OpCall& call, const Points& small, const Points& big, const Points& sums,
                  bool is_first) {
  matmul::Problem product = products(small.channels, big.channels, small.tiles);
  product.a = small.by_channel();
  product.b = big.by_tile();
  product.c = sums.by_tile();
  if (!is_first) product.end.add(product.c);
  matmul::run_matmul(call, product);
}

Side tiled_side(const Problem& p) {
  return p.direction == Direction::Data ? Side::Big : Side::Small;
}
int64_t tiles_of_image(const Problem& p) {
  const Tiled t = map_of(p, tiled_side(p), tiled_side(p), 0, 1);
  return t.across * t.down;
}
int64_t most_channels(const Problem& p) {
  return std::max(p.params.big_channels, p.params.small_channels);
}
int64_t images_of_pass(const Problem& p) {
  const int64_t bytes =
      tiles_of_image(p) * most_channels(p) * kPoints * static_cast<int64_t>(sizeof(float));
  return std::clamp<int64_t>(kPassBytes / bytes, 1, p.params.batch);
}

const char* refuse(const OpCall& call, const Problem& p) {
  if (const char* reason = refuse_phases(p)) return reason;
  if (!call.caps().register_tiles()) return "the device keeps no tiles in registers";
  const ConvParams& g = p.params;
  if (g.groups != 1) return "several groups";
  for (size_t d = 1; d < 3; ++d)
    if (g.window[d] != kWindow || g.stride[d] != 1 || g.dilation[d] != 1)
      return "not a window of 3 x 3 with stride 1";
  if (g.big_channels * g.small_channels * g.batch * g.out[1] * g.out[2] == 0)
    return "nothing to sum";
  constexpr int64_t kMost = INT32_MAX / 2;
  for (const tk_i64* sizes : {g.in, g.out})
    if (sizes[1] > kMost / 2 || sizes[2] > kMost / 2) return "the sizes need 64 bits";
  if (std::max(tiles_of_image(p) * images_of_pass(p), g.small_channels) * most_channels(p) > kMost)
    return "the sizes need 64 bits";
  constexpr int64_t kMostWindows = kPassBytes / (kPoints * static_cast<int64_t>(sizeof(float)));
  if (g.big_channels * g.small_channels > kMostWindows)
    return "the windows' points would take too much memory";
  return call.caps().max_work_group_size < kGroup ? "work-groups are too small" : nullptr;
}

// A model of the time in multiply-adds: points are written and read once, a byte takes as long as
// some of them, and so do launches on a device of so many units (measured on an H100, whose bytes
// are as dear as those of most GPUs). Implicit products lose more where channels are neighbours,
// and as gradients of windows.
const char* pass_over(const OpCall& call, const Problem& p) {
  constexpr double kLaunches = 1e6;
  const ConvParams& g = p.params;
  const bool neighbours = g.big_strides[1] == 1 && g.small_strides[1] == 1;
  const double per_byte = neighbours || p.direction == Direction::Weight ? 3 : 6;
  const tk_i64* out = p.direction == Direction::Data ? g.in : g.out;
  const auto big = static_cast<double>(g.big_channels);
  const auto small = static_cast<double>(g.small_channels);
  const auto tiles = static_cast<double>(tiles_of_image(p) * g.batch);
  const auto pixels = static_cast<double>(g.batch * out[1] * out[2]);
  const double direct = kWindow * kWindow * pixels * big * small;
  const double bytes = 2 * sizeof(float) * kPoints * (tiles * big + tiles * small + big * small);
  const double points = kPoints * tiles * big * small + per_byte * bytes +
                        kLaunches * static_cast<double>(call.caps().compute_units);
  return points > direct ? "moving its points takes longer than it saves" : nullptr;
}

void run_map(const OpCall& call, const Problem& p, const matmul::Guard& guard) {
  const bool forward = p.direction == Direction::Forward;
  const Side to = tiled_side(p), from = forward ? Side::Big : Side::Small;
  const Points windows = to_points(call, p, windows_of(p));
  const int64_t images = images_of_pass(p);
  for (int64_t first = 0; first < p.params.batch; first += images) {
    const int64_t count = std::min(images, p.params.batch - first);
    const Tiled target = map_of(p, to, to, first, count);
    const Points tiles = to_points(call, p, map_of(p, from, to, first, count));
    const Points sums(call, target.tiles(), target.channels, target.has_channels_inner());
    multiply(call, windows, tiles, sums);
    from_points(call, p, sums, target, guard);
  }
}

void run_weight(const OpCall& call, const Problem& p, const matmul::Guard& guard) {
  const Tiled windows = windows_of(p);
  const Points sums(call, windows.tiles(), windows.channels, true);
  const int64_t images = images_of_pass(p);
  for (int64_t first = 0; first < p.params.batch; first += images) {
    const int64_t count = std::min(images, p.params.batch - first);
    const Points small = to_points(call, p, map_of(p, Side::Small, Side::Small, first, count));
    const Points big = to_points(call, p, map_of(p, Side::Big, Side::Small, first, count));
    add_gradient(call, small, big, sums, first == 0);
  }
  from_points(call, p, sums, windows, guard);
}

void run(const OpCall& call, const Problem& p) {
  const Scratch word = call.scratch(sizeof(uint32_t));
  const matmul::Guard guard{word.address(), matmul::next_guard_value()};
  if (p.direction == Direction::Weight)
    run_weight(call, p, guard);
  else
    run_map(call, p, guard);
  run_guarded_convolution(call, p, guard);
}

}  // namespace

constinit const AlgorithmFor<Problem> kWinogradGpu({.id = "conv.winograd_gpu",
                                                    .description = "Winograd's tiles",
                                                    .style = DeviceStyle::Gpu},
                                                   Steps<refuse, run>(), pass_over);

}  // namespace ocltensor::opencl::conv
