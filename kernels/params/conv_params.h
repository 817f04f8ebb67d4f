// Parameters of convolutions. A convolution relates a `big` tensor (n, big channels, in) and a `small` one
// (n, small channels, out), where `out` is the number of positions of the window; weight is (small channels,
// big channels / groups, window). Forward computes small from big, its transpose big from small. With one or
// two spatial dimensions the leading sizes are 1.
#ifndef OCLTENSOR_CONV_PARAMS_H
#define OCLTENSOR_CONV_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 batch, groups, big_channels, small_channels;  // channels of one group
  tk_i64 in[3], out[3], window[3], stride[3], padding[3], dilation[3];
  tk_i64 big_strides[5], small_strides[5], weight_strides[5];  // in elements
  tk_i64 bias_stride;
} ConvParams;
#endif
