// Parameters of a convolution's gradient of weights as an implicit matrix product
// (conv/implicit_weight.cl): target[m, n] is the sum over the pixels of `small` of small[channel m, pixel] *
// big[channel and tap n, where pixel and tap meet]. Strides count elements.
#ifndef OCLTENSOR_CONV_IMPLICIT_WEIGHT_PARAMS_H
#define OCLTENSOR_CONV_IMPLICIT_WEIGHT_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 m, n;                             // channels of `small`; channels of `big` times taps
  tk_i64 taps_inner;                       // n is channel * taps + tap, else tap * channels + channel
  tk_i64 channels, taps, tap_columns;      // of `big`; of the window, of its rows
  tk_i64 images, map_rows, row_pixels;     // of `small`
  tk_i64 rows, columns;                    // of a map of `big`
  tk_i64 small_image, small_channel, small_row, small_column;
  tk_i64 big_image, big_channel, big_row, big_column;
  // In `big`, pixel (i, j) and tap (r, s) meet at row first[0] + i * pixel_step[0] + r * tap_step[0].
  tk_i64 first[2], pixel_step[2], tap_step[2];
  tk_i64 steps;                            // of BK pixels of a row, of a work-group
  tk_i64 piece, target_m, target_n;        // between pieces, rows and columns of the target
} ConvImplicitWeightParams;
#endif
