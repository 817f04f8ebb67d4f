// The convolution that takes any type, geometry and strides: the last of the list.
#include <algorithm>
#include <array>

#include "call/divide_up.h"
#include "call/division.h"
#include "conv.h"
#include "kernels/conv.h"

namespace ocltensor::opencl::conv {
namespace {

constexpr int64_t kChannelTile = 4;
constexpr int64_t kGuardedGroups = 16;  // per compute unit; they take all tiles in turn

// The tiles of a launch: `count` tiles of positions (for Weight: of taps and channels of the big
// tensor) for each of `rows` tiles of channels in each of `images`.
struct Tiles {
  int64_t count, rows, images;
};
Tiles tiles_of(const Problem& p, int64_t positions) {
  const ConvParams& g = p.params;
  const auto of_map = [&](const tk_i64(&map)[3]) {
    return map[0] * map[1] * divide_up(map[2], positions);
  };
  const auto rows = [&](int64_t channels) { return g.groups * divide_up(channels, kChannelTile); };
  switch (p.direction) {
    case Direction::Forward: return {of_map(g.out), rows(g.small_channels), g.batch};
    case Direction::Data: return {of_map(g.in), rows(g.big_channels), g.batch};
    default:
      return {g.window[0] * g.window[1] * g.window[2] * divide_up(g.big_channels, kChannelTile),
              rows(g.small_channels), 1};
  }
}

void run_general(const OpCall& call, const Problem& p, const matmul::Guard& guard) {
  const int64_t positions = by_style<int64_t>(call, 8, 1);
  const int64_t lanes = by_style<int64_t>(call, 1, 64);
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::FLOATING, is_floating(p.dtype))
      .set(define::WIDE, 1)
      .set(define::ADD_SELF, p.bias.has_value())
      .set(define::TP, positions)
      .set(define::GUARDED, guard.word != 0);
  const Tiles tiles = tiles_of(p, positions);
  const int64_t width = divide_up(tiles.count, lanes) * lanes;
  Grid items{width, tiles.rows, tiles.images};
  if (guard.word != 0) {
    const int64_t most = kGuardedGroups * lanes * static_cast<int64_t>(call.caps().compute_units);
    items = {std::min(width * tiles.rows * tiles.images, most), 1, 1};
  }
  namespace kernel = kernels::conv::general;
  const auto& kernel_of_direction = p.direction == Direction::Forward ? kernel::forward
                                    : p.direction == Direction::Data  ? kernel::data
                                                                      : kernel::weight;
  call.launch(kernel_of_direction, d,
              {.big = memory_of_big(p),
               .small = memory_of_small(p),
               .weight = memory_of_weight(p),
               .bias = memory_of_bias(p),
               .word = guard.given(guard.memory()),
               .wanted = guard.given<Number<uint32_t>>(guard.value),
               .channel_tiles = guard.given<Number<int64_t>>(tiles.rows),
               .images = guard.given<Number<int64_t>>(tiles.images),
               .p = p.params,
               .tiles = tiles.count})
      .run(items, {lanes, 1, 1});
}
void run(const OpCall& call, const Problem& p) { run_general(call, p, {}); }

}  // namespace

void run_guarded_convolution(const OpCall& call, const Problem& p, const matmul::Guard& guard) {
  run_general(call, p, guard);
}

constinit const AlgorithmFor<Problem> kGeneral({.id = "conv.general",
                                                .description = "general",
                                                .last_resort = true},
                                               Steps<takes_all<Problem>, run>());

}  // namespace ocltensor::opencl::conv
