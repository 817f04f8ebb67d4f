// Parameters of vision/roi_*.cl: images [batch, channels, height, width] and regions [rois, 5] of them, each
// an image's number and x1, y1, x2, y2, which is cut into pooled[0] x pooled[1] bins. Pairs are of height and
// width.
#ifndef OCLTENSOR_ROI_PARAMS_H
#define OCLTENSOR_ROI_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 batch, channels, rois;
  tk_i64 share;   // channels of a piece of work
  tk_u64 scale;   // of the regions' coordinates, in the compute type
  tk_i32 size[2];
  tk_i32 pooled[2];
  tk_i32 samples;  // in a bin, along each dimension; 0: as many as the bin has elements
  tk_i32 aligned;  // a coordinate is that of an element's middle
} RoiParams;
#endif
