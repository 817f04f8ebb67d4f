// Parameters of loss/ctc.cl: log probabilities [time, samples, classes].
#ifndef OCLTENSOR_CTC_PARAMS_H
#define OCLTENSOR_CTC_PARAMS_H
#include "host_types.h"
typedef struct {
  tk_i64 pieces, per_item;
  tk_i64 time, samples, classes;
  tk_i64 places;  // of the longest target: labels, with blanks between and around
  tk_i64 blank;
  tk_i32 zero_infinity;
  tk_i32 reserved;
} CtcParams;
// A sample, in a list on the device.
typedef struct {
  tk_i64 input, target;  // lengths
  tk_i64 start;          // of its target among all labels
} CtcSample;
#endif
