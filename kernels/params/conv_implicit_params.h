// Parameters of the convolution as an implicit matrix product (conv/implicit.cl): target[m, pixel] is the sum
// over the used taps of the window and the source's channels of weight[tap, channel, m] * source[channel,
// position]. Strides count elements.
#ifndef OCLTENSOR_CONV_IMPLICIT_PARAMS_H
#define OCLTENSOR_CONV_IMPLICIT_PARAMS_H
#include "host_types.h"

// The pixels that use the same taps: all, or in the data direction of a strided convolution those with one
// remainder of the position by the stride.
typedef struct {
  tk_i64 pixels, map_pixels, row_pixels;   // of all images, of one, of a row
  tk_i64 first[2];                         // see tap_step
  tk_i64 taps[2];                          // how many are used
  tk_i64 weight_first;                     // see weight_step
  tk_i64 target;                           // of its first pixel, from the target's address
} ConvPhase;

#define CONV_PHASES 4                      // of a launch, at most
typedef struct {
  ConvPhase phases[CONV_PHASES];
  tk_i64 m;                                // channels of the target
  tk_i64 channels, padded_channels;        // of the source; padded to a multiple of BK in the weights
  tk_i64 rows, columns;                    // of a map of the source
  tk_i64 source_image, source_channel, source_row, source_column;
  tk_i64 target_image, target_channel, target_row, target_column;
  // In the source, pixel (i, j) and tap (r, s) meet at row first[0] + i * pixel_step[0] + r * tap_step[0].
  tk_i64 pixel_step[2], tap_step[2];
  // In the weights [tap, padded channel, padded m], (r, s) is tap weight_first + r * weight_step[0] + ...
  tk_i64 weight_step[2], padded_m;
  tk_i64 steps, piece;                     // steps of BK of a work-group; between pieces
  tk_i64 bias_stride;
} ConvImplicitParams;
#endif
