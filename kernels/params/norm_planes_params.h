// Parameters of the normalisation of planes for CPU drivers. Statistic s has `pieces` planes, the j-th of
// them plane s * stat_step + j * piece_step: `inner` contiguous elements, whose channel is that number
// modulo `channels`.
#ifndef OCLTENSOR_NORM_PLANES_PARAMS_H
#define OCLTENSOR_NORM_PLANES_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 stats, per;  // statistics, and how many of them a work-item takes
  tk_i64 pieces, stat_step, piece_step;
  tk_i64 inner, channels;
  tk_i64 weight_stride, bias_stride, mean_stride, variance_stride;
  tk_u64 count, momentum, eps;  // bits; count: elements behind a statistic
} NormPlanesParams;
#endif
