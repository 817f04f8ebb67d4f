// Parameters of the normalisation of channels_last tensors for GPUs: a matrix [rows][channels], whose rows
// are cut into `pieces` of `piece` rows.
#ifndef OCLTENSOR_NORM_CHANNELS_PARAMS_H
#define OCLTENSOR_NORM_CHANNELS_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 rows, channels;
  tk_i64 pieces, piece;
  tk_i64 weight_stride, bias_stride, mean_stride, variance_stride;
  tk_u64 count, momentum, eps;  // bits; count: rows
} NormChannelsParams;
#endif
