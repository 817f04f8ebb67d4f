// The convolution that takes any type, geometry and strides: the last of the list.
#include "conv.h"
#include "kernel_sources.h"
#include "ops/divide_up.h"

namespace ocltensor::opencl {
namespace {

constexpr int64_t kChannelTile = 4;

const char* refuse(const OpCall&, const ConvProblem&) { return nullptr; }

void run(const OpCall& call, const ConvProblem& p) {
  const ConvParams& g = p.params;
  const bool rows = call.caps().style == KernelStyle::Rows;
  const int64_t positions = rows ? 8 : 1;
  const int64_t lanes = rows ? 1 : 64;
  Defines d;
  d.type("TYPE", p.dtype)
      .set("FLOATING", is_floating(p.dtype))
      .set("WIDE", 1)
      .set("HAS_BIAS", p.bias.has_value())
      .set("TP", positions);
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
  launch.bytes(&g, sizeof g).value(tiles);
  launch.run({static_cast<size_t>(divide_up(tiles, lanes) * lanes),
              static_cast<size_t>(g.groups * divide_up(channels, kChannelTile)),
              static_cast<size_t>(images)},
             {static_cast<size_t>(lanes), 1, 1});
}

}  // namespace

const ConvImplementation kConvGeneral{{"conv.general", "general", true}, refuse, run};

}  // namespace ocltensor::opencl
