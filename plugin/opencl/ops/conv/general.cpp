// The convolution that takes any type, geometry and strides: the last of the list.
#include <algorithm>
#include <array>

#include "call/divide_up.h"
#include "call/division.h"
#include "conv.h"
#include "kernels/conv.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kChannelTile = 4;
constexpr int64_t kGuardedGroups = 16;  // of a core, that take all tiles in turn

void run_general(const OpCall& call, const ConvProblem& p, const Guard& guard) {
  const ConvParams& g = p.params;
  const int64_t positions = by_style<int64_t>(call, 8, 1);
  const int64_t lanes = by_style<int64_t>(call, 1, 64);
  Defines d;
  d.type(define::TYPE, p.dtype)
      .set(define::FLOATING, is_floating(p.dtype))
      .set(define::WIDE, 1)
      .set(define::HAS_BIAS, p.bias.has_value())
      .set(define::TP, positions)
      .set(define::GUARDED, guard.word != 0);
  Launch launch = call.launch(kernel_sources::conv_general,
                              kConvDirectionNames[static_cast<int>(p.direction)], d);
  int64_t tiles = 0;
  int64_t channels = 0;
  int64_t images = g.batch;
  const auto tiles_of = [&](const tk_i64(&map)[3]) {
    return map[0] * map[1] * divide_up(map[2], positions);
  };
  if (p.direction == ConvDirection::Forward) {
    bind_small(launch, p);
    bind_big(launch, p);
    tiles = tiles_of(g.out);
    channels = g.small_channels;
  } else if (p.direction == ConvDirection::Data) {
    bind_big(launch, p);
    bind_small(launch, p);
    tiles = tiles_of(g.in);
    channels = g.big_channels;
  } else {
    bind_weight(launch, p);
    bind_big(launch, p);
    bind_small(launch, p);
    tiles = g.window[0] * g.window[1] * g.window[2] * divide_up(g.big_channels, kChannelTile);
    channels = g.small_channels;
    images = 1;
  }
  if (p.direction != ConvDirection::Weight) {
    bind_weight(launch, p);
    bind_bias(launch, p);
  }
  const int64_t rows_of_tiles = g.groups * divide_up(channels, kChannelTile);
  const int64_t width = divide_up(tiles, lanes) * lanes;
  const bool guarded = guard.word != 0;
  if (guarded)
    launch.memory(guard.word, 0, guard.bytes())
        .value(guard.value)
        .value(rows_of_tiles)
        .value(images);
  launch.bytes(&g, sizeof g).value(tiles);
  std::array<size_t, 3> items{static_cast<size_t>(width), static_cast<size_t>(rows_of_tiles),
                              static_cast<size_t>(images)};
  if (guarded) {
    const int64_t most = kGuardedGroups * lanes * static_cast<int64_t>(call.caps().compute_units);
    items = {static_cast<size_t>(std::min(width * rows_of_tiles * images, most)), 1, 1};
  }
  launch.run(items, {static_cast<size_t>(lanes), 1, 1});
}
void run(const OpCall& call, const ConvProblem& p) { run_general(call, p, {}); }

}  // namespace

void run_guarded_convolution(const OpCall& call, const ConvProblem& p, const Guard& guard) {
  run_general(call, p, guard);
}

constinit const ConvAlgorithm kConvGeneral({.id = "conv.general",
                                            .description = "general",
                                            .last_resort = true},
                                           Steps<takes_all<ConvProblem>, run>());

}  // namespace ocltensor::opencl
