// Parameters of the normalisation of planes for GPUs. A unit (a statistic, or a plane of it) is `runs` runs
// of `length` adjacent vectors, run_step apart; units are unit_step apart, all in vectors. A unit is divided
// into `pieces` of `piece` vectors, and each of `lanes` adjacent work-items takes every lanes-th vector of a
// piece, advancing by step_runs whole runs and step_rest vectors.
#ifndef OCLTENSOR_NORM_ELEMENTS_PARAMS_H
#define OCLTENSOR_NORM_ELEMENTS_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 units, runs, length, run_step, unit_step;
  tk_i64 pieces, piece;
  tk_u32 lanes, step_runs, step_rest;
  tk_u32 weight_groups;      // leading work-groups that compute the weights' gradients
  tk_i64 channels;
  tk_i64 unit_channels;      // channels of a statistic: 1, or those of a group
  tk_i64 sharing;            // units that share a statistic
  tk_i64 partials, plane_partials;  // partial sums of a statistic, and of each of its channels
  tk_i64 weight_stride, bias_stride, mean_stride, variance_stride;
  tk_u64 count, momentum, eps;  // bits; count: elements behind a statistic
} NormElementsParams;
#endif
