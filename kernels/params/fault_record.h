// What a kernel writes down of the first wrong value that it meets (faults.h), for the host to raise.
#ifndef OCLTENSOR_FAULT_RECORD_H
#define OCLTENSOR_FAULT_RECORD_H
#include "host_types.h"
typedef struct {
  tk_i32 state;  // 0: nothing is wrong; whoever changes it writes the rest
  tk_i32 site;   // operator, kind and dimension: plugin/opencl/runtime/queue/faults.h
  tk_i64 value;  // what was met, e.g. the index
  tk_i64 limit;  // what it has to be below, e.g. the size of the dimension
} FaultRecord;
#endif
