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
  tk_i32 has_bias;
  tk_u32 map[CONV_MAP_WORDS];                 // of the map with windows; 0 and 1 are its address
  tk_u32 line_sizes[4];  // the other operand: (inner, lines, taps, bf16 parts) of a weight, or (channels,
  tk_u32 unused;                              // pixels, 1, bf16 parts) of `small`
  tk_u64 line_strides[3];                     // of its dimensions 1 to 3, bytes
  tk_i64 out_image, out_y, out_x, out_channel, out_piece;
  tk_i64 bias_stride;
} ConvHopperParams;

// Bf16 parts of a map, channels last: [bf16 part][image][y][x][padded], with zeros from channel `channels`
// on. Folded, channel t fold_channels + c of pixel (y, x) is channel c of the map's element (y, x fold_step +
// fold_low + t fold_delta), or zero outside of its rows of fold_width.
typedef struct {
  tk_i64 image_stride, channel_stride, y_stride, x_stride;  // of the map
  tk_i32 pixels;                                            // of all images; a bf16 part has that many lines
  tk_i32 channels, padded, height, width;
  tk_i32 fold_channels, fold_step, fold_low, fold_delta, fold_width;
} ConvStageParams;

// Bf16 parts of a weight: [bf16 part][row][tap][padded]. `fold_inner` inner numbers (all, if not folded)
// belong to one tap.
typedef struct {
  tk_i64 row_stride, inner_stride, y_stride, x_stride;  // of the weight
  tk_i64 fold_stride;                                   // from tap to tap of the folded dimension
  tk_i32 lines;                                         // rows x taps
  tk_i32 taps, row_taps, inner, padded, fold_inner;
} ConvStageWeightParams;

// Sums of pieces: [piece][image][channel][position], or channels last; of a weight [piece][row][tap][line /
// taps].
typedef struct {
  tk_i64 piece;                                   // elements of one piece
  tk_i64 out_image, out_y, out_x, out_channel;    // of the result; a weight: its row, y, x and channel
  tk_i64 out_fold;                                // a weight: from tap to tap of what is folded
  tk_i64 bias_stride;
  tk_i32 pieces, channels, positions, row_positions;  // a weight: channels, taps, taps in a row
  tk_i32 tap_channels;  // a weight: channels of a tap in a line, with the padding
  tk_i32 channels_last, has_bias;
  tk_i32 fold_channels;                               // a weight: of one tap
} ConvSumParams;
#endif
