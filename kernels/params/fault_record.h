// The record of the first wrong value that a kernel finds (faults.h); the host raises it as an error.
#ifndef OCLTENSOR_FAULT_RECORD_H
#define OCLTENSOR_FAULT_RECORD_H
#include "host_types.h"
typedef struct {
  tk_i32 state;  // 0: nothing is wrong; the work-item that changes it writes the rest
  tk_i32 site;   // operator, kind and dimension: plugin/opencl/runtime/queue/faults.h
  tk_i64 value;  // the wrong value, e.g. the index
  tk_i64 limit;  // its upper bound (exclusive), e.g. the size of the dimension
} FaultRecord;
#endif
