// Parameters of index/histogram.cl. A launch handles up to four dimensions of the points.
#ifndef OCLTENSOR_HISTOGRAM_PARAMS_H
#define OCLTENSOR_HISTOGRAM_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 dims;     // of a point
  tk_i64 first;    // the first dimension that this launch handles
  tk_i64 inner;    // density: the bins of all later dimensions of the histogram
  tk_i64 bins[4];  // 0: no such dimension
} HistogramParams;
#endif
