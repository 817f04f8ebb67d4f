// Parameters of the convolutions on Hopper's matrix units (kernels/conv/hopper*.cl). Strides count elements
// where not said otherwise.
#ifndef OCLTENSOR_CONV_HOPPER_PARAMS_H
#define OCLTENSOR_CONV_HOPPER_PARAMS_H
#include "host_types.h"

#define CONV_MAP_WORDS 19  // of a tensor map in im2col mode; the words after them are 0

// One product. Rows of it are positions (a gradient of weights: channels of `small`), columns are channels
// (taps x blocks).
typedef struct {
  tk_i32 m, n;
  tk_i32 steps, pieces, piece_steps;  // along k, of 128 bytes; no piece is empty
  tk_i32 blocks;                      // of 128 bytes that hold the channels of the map
  tk_i32 images;                      // of one bf16 part of it
  tk_i32 positions, row_positions;    // in an image, in a row of it
  // position (i, j) has its window at (i step_y + low_y, j step_x + low_x)
  tk_i32 step_y, step_x, low_y, low_x;
  tk_i32 row_taps, delta_y, delta_x;          // taps in a row of a window; pixels from tap to tap
  // tap (r, s) is the weight's first_tap + r tap_step_y + s tap_step_x
  tk_i32 first_tap, tap_step_y, tap_step_x;
  tk_u32 map[CONV_MAP_WORDS];                 // of the map with windows; 0 and 1 are its address
  tk_u32 line_sizes[4];  // the other operand: (inner, lines, taps, bf16 parts) of a weight, or (channels,
                         // pixels, 1, bf16 parts) of `small`
  tk_u64 line_strides[3];                     // of its dimensions 1 to 3, bytes
  tk_i64 out_image, out_y, out_x, out_channel, out_piece;
  tk_i64 bias_stride;
} ConvHopperParams;

// Bf16 parts of a map, channels last: [bf16 part][image][y][x][padded], with zeros from channel `channels`
// on.
typedef struct {
  tk_i64 image_stride, channel_stride, y_stride, x_stride;  // of the map
  tk_i32 pixels;                                            // of all images; a bf16 part has that many lines
  tk_i32 channels, padded, height, width;
} ConvStageParams;

// Bf16 parts of a map in cells (nvidia_hopper/conv/cells.h): [bf16 part][image][y][x][padded]. Number (r
// columns + q) channels + c of cell (y, x) is channel c of the map's element (y step_y + low_y + r, x step_x
// + low_x + q), or zero outside of map_height x map_width.
typedef struct {
  tk_i64 image_stride, channel_stride, y_stride, x_stride;  // of the map
  tk_i32 cells;                                             // of all images
  tk_i32 rows, columns, channels, padded;                   // of a cell
  tk_i32 height, width;                                     // of an image, in cells
  tk_i32 step_y, step_x, low_y, low_x, map_height, map_width;
  tk_i32 cells_of_group;                                    // that a work-group repacks
} ConvStageCellsParams;

// Bf16 parts of a weight: [bf16 part][row][tap][padded]. For maps in cells, tap t has the numbers of the
// window's cells side by side, each of `cell` numbers with its padding: number (r cell_columns + q)
// cell_channels + c of cell x belongs to channel c at (t cell_rows + r, x cell_columns + q) of the window,
// which has an element at multiples of the dilation.
typedef struct {
  tk_i64 row_stride, inner_stride, y_stride, x_stride;  // of the weight
  tk_i32 lines;                                         // rows x taps
  tk_i32 taps, row_taps, inner, padded;
  tk_i32 rows;  // if they are neighbours in memory; else 0
  tk_i32 cell, cell_rows, cell_columns, cell_channels, window_y, window_x, dilation_y, dilation_x;
} ConvStageWeightParams;

// Sums of pieces: [piece][image][channel][position], or channels last; of a weight [piece][row][line], where
// a line has `row_sums` for each row of taps, of which each cell has `cell` (without cells a tap).
typedef struct {
  tk_i64 piece;                                   // elements of one piece
  tk_i64 out_image, out_y, out_x, out_channel;    // of the result; a weight: its row, y, x and channel
  tk_i64 bias_stride;
  tk_i32 pieces, channels, positions, row_positions;  // a weight: channels, taps, taps in a row
  tk_i32 channels_last, has_bias;
  tk_i32 row_sums, cell, cell_rows, cell_columns, dilation_y, dilation_x;  // a weight
  tk_i64 sums;                                                             // a weight: of a row
} ConvSumParams;
#endif
