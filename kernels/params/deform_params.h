// Parameters of vision/deform.cl: images [batch, groups * group_channels, size] with offsets [batch, groups,
// taps, 2, out] and masks [batch, groups, taps, out], of which a launch takes `batch` images. Pairs are of
// height and width.
#ifndef OCLTENSOR_DEFORM_PARAMS_H
#define OCLTENSOR_DEFORM_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 first;           // image of the call's tensors
  tk_i64 batch;
  tk_i64 groups, group_channels;  // of offsets
  tk_i64 share;           // channels of a piece of work
  tk_i64 group;           // taps: the group of offsets
  tk_i32 size[2], window[2], out[2];
  tk_i32 stride[2], padding[2], dilation[2];
} DeformParams;
#endif
