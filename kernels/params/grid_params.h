// Parameters of sampling/grid.cl: images [batch, channels, size ...] read at points [batch, points,
// coordinates].
#ifndef OCLTENSOR_GRID_PARAMS_H
#define OCLTENSOR_GRID_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 points, channels, elements;  // points and channels of an image, elements of a channel
  tk_i64 share;                       // channels of a piece of work
  tk_i32 size[3];                     // innermost first, as coordinates are
  tk_i32 padding;                     // 0 zeros, 1 border, 2 reflection
  tk_i32 align;
  tk_i32 reserved;
} GridParams;
#endif
