// Cells of maps with few channels: their sizes by what copying costs.
#include "cells.h"

#include <algorithm>

namespace ocltensor::opencl::nvidia_hopper {
namespace {

constexpr int64_t kFew = 16;    // channels
constexpr int64_t kBlock = 64;  // 16-bit numbers of a copy

int64_t reach(const ConvParams& g, size_t d) { return (g.window[d] - 1) * g.dilation[d] + 1; }
int64_t taps_of(const ConvHopperCells& c, const ConvParams& g) {
  return divide_up(reach(g, 1), c.rows);
}

// Of a position, in numbers: copies into local memory, and cells that are written to memory and
// read again at about half of the speed.
int64_t cost(int64_t copies, int64_t staged) { return copies * kBlock + 4 * staged; }

}  // namespace

ConvHopperCells ConvHopperCells::each_pixel(const ConvParams& g) {
  return {.rows = 1,
          .columns = 1,
          .channels = g.big_channels,
          .run = 1,
          .step_y = 1,
          .step_x = 1,
          .low_y = 0,
          .low_x = 0,
          .height = g.in[1],
          .width = g.in[2],
          .window_y = g.window[1],
          .window_x = g.window[2],
          .dilation_y = 1,
          .dilation_x = 1};
}

std::optional<ConvHopperCells> cells_of(const ConvParams& g) {
  if (g.big_channels >= kFew || g.groups != 1 || g.window[1] * g.window[2] <= 1)
    return std::nullopt;
  ConvHopperCells cells = ConvHopperCells::each_pixel(g);
  int64_t least = cost(g.window[1] * g.window[2], cells.padded() * g.stride[1] * g.stride[2]);
  cells.step_y = g.stride[1];
  cells.step_x = g.stride[2];
  cells.low_y = -g.padding[1];
  cells.low_x = -g.padding[2];
  cells.dilation_y = g.dilation[1];
  cells.dilation_x = g.dilation[2];
  cells.columns = std::min(g.stride[2], reach(g, 2));
  cells.run = divide_up(reach(g, 2), cells.columns);
  std::optional<ConvHopperCells> best;
  // Rows of cells overlap if they are higher than their step.
  for (int64_t rows = g.stride[1]; rows < reach(g, 1) + g.stride[1]; rows += g.stride[1]) {
    cells.rows = std::min(rows, reach(g, 1));
    const int64_t copies = taps_of(cells, g) * divide_up(cells.run * cells.padded(), kBlock);
    if (cost(copies, cells.padded()) >= least) continue;
    least = cost(copies, cells.padded());
    best = cells;
  }
  return best;
}

ConvParams params_of_cells(const ConvHopperCells& cells, const ConvParams& g) {
  const int64_t taps = taps_of(cells, g), apart = divide_up(cells.rows, cells.step_y);
  ConvParams to = g;
  to.big_channels = cells.run * cells.padded();
  to.in[1] = g.out[1] + (taps - 1) * apart;
  to.in[2] = g.out[2];
  to.window[1] = taps;
  to.window[2] = 1;
  to.dilation[1] = apart;
  to.dilation[2] = 1;
  to.stride[1] = to.stride[2] = 1;
  to.padding[1] = to.padding[2] = 0;
  return to;
}

}  // namespace ocltensor::opencl::nvidia_hopper
