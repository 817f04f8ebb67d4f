// Parameters of vision/nms_*.cl: `boxes` boxes in the order of their scores, as five rows of that length: x1,
// y1, x2, y2, area. Rounds settle boxes [first, end).
#ifndef OCLTENSOR_NMS_PARAMS_H
#define OCLTENSOR_NMS_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 boxes, first, end;
  tk_u64 threshold;  // the largest number of the type that is not above the caller's
} NmsParams;
#endif
