// Parameters of the tiles of Winograd's transforms on GPUs (conv/winograd_gpu_*.cl): tiles of a tensor
// [image, channel, row, column], and their 36 points, [point][tile][channel] in any order of the last two.
// Windows are images of one tile. Strides count elements.
#ifndef OCLTENSOR_CONV_WINOGRAD_PARAMS_H
#define OCLTENSOR_CONV_WINOGRAD_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 channels, tiles;              // of all images
  tk_i64 image_tiles, row_tiles;       // of an image, of a row of tiles
  tk_i64 start, image, channel, row, column;  // of element (0, 0, 0, 0), and the tensor's strides
  tk_i64 rows, columns;                // of a map: beyond them are zeros
  tk_i64 first[2];                     // row and column of the first tile's first element
  tk_i64 step;                         // from tile to tile
  tk_i64 point, point_tile, point_channel;  // strides of the points
  tk_i64 bias_stride;
} ConvWinogradParams;
#endif
