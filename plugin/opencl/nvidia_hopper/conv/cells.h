// Maps of few channels in cells: several of their pixels, so that copies are full of numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "call/divide_up.h"
#include "conv_params.h"

namespace ocltensor::opencl::nvidia_hopper {

// With few channels most of a copy would be zeros. Then the map is staged in cells of `rows` x
// `columns` pixels, padded to whole vectors; cell (y, x) begins at pixel (y * step_y + low_y, x *
// step_x + low_x). A row of a window is `run` cells in a row, which the copy engine reads as one
// pixel of many channels whose neighbour overlaps it; the next row of cells is the next tap.
// The first layer of ResNet (7 x 7, stride 2, three channels): cells of 2 x 2 pixels, 12 numbers
// and four of padding; four cells are a line of 64 numbers, four lines a window.
struct ConvHopperCells {
  int64_t rows, columns, channels;  // of the big tensor's pixels
  int64_t run;
  int64_t step_y, step_x, low_y, low_x;
  int64_t height, width;  // of the big tensor
  int64_t window_y, window_x, dilation_y, dilation_x;

  int64_t numbers() const { return rows * columns * channels; }
  int64_t padded() const {
    constexpr int64_t kVector = 8;
    return divide_up(numbers(), kVector) * kVector;
  }
  // The cells of a map that is not staged in cells: its pixels.
  static ConvHopperCells each_pixel(const ConvParams& g);
};

// The cells by which the problem is computed, or none: there are enough channels, or one pixel
// after the other is no more work.
std::optional<ConvHopperCells> cells_of(const ConvParams& g);
// The problem whose pixels are the runs of cells.
ConvParams params_of_cells(const ConvHopperCells& cells, const ConvParams& g);

}  // namespace ocltensor::opencl::nvidia_hopper
