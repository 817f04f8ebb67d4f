// Parameters of the convolution kernels for CPU drivers. The input x is a padded float map with contiguous
// columns; strides count elements. Channels are those of one group.
#ifndef OCLTENSOR_CONV_ROWS_PARAMS_H
#define OCLTENSOR_CONV_ROWS_PARAMS_H
#include "host_types.h"

// A copy with borders: target row r, column c holds source ((r + top) / spread_y, (c + left) / spread_x), or
// zero if that is not a whole number or is outside.
typedef struct {
  tk_i64 planes, channels, height, width;         // of the source
  tk_i64 image, channel, row, col;                // its strides
  tk_i64 padded_height, padded_width, top, left;  // top and left are negative for a border
  tk_i64 spread_y, spread_x, planes_per_item, rows_per_item;
} PadParams;

// y = x convolved with weights; also the gradient of weights, where y is the packed gradient of the output.
typedef struct {
  tk_i64 x_start, x_image, x_group, x_channel, x_row;  // x_start: of the first tap of the first output
  tk_i64 y_start;
  tk_i64 y_image, y_group, y_channel, y_row, y_col;
  tk_i64 w_start, w_group, w_output, w_input, w_y, w_x;  // w_start: of tap 0 of channel 0
  // direct.cl: elements from the weights' address to their end; see conv_weights.h
  tk_i64 w_end, w_run, w_falls;
  tk_i64 images, inputs, outputs, taps_y, taps_x, dilation_y, dilation_x, stride_y, stride_x, height, width;
  tk_i64 segments, per_item, blocks, bias, add_bias, channels_inner;
  tk_i64 inputs_per_chunk;  // direct.cl: input channels whose weights are packed at a time
  tk_i64 first_tile;        // winograd.cl: the launch's
} ConvRowsParams;
#endif
