// Parameters of upsample/resample.cl: [outer, from, inner] numbers become [outer, to, inner].
#ifndef OCLTENSOR_RESAMPLE_PARAMS_H
#define OCLTENSOR_RESAMPLE_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 outer, inner;
  tk_i64 chunks;         // CPU style: pieces that the results of a group of lanes are divided into
  tk_i32 small, large;   // the dimension's sizes before upsampling and after
  tk_i32 align;
  tk_u64 step;           // bits: places of the small side per place of the large one; float for nearest
} ResampleParams;
#endif
