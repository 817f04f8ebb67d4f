// Wrong values that only a kernel sees: it writes the first one into its stream's record, goes on without the
// value, and the stream's next synchronisation raises it.
#ifndef OCLTENSOR_FAULTS_H
#define OCLTENSOR_FAULTS_H
#include "types.h"
#include "fault_record.h"

// Of a kernel, made by OpCall::fault. fault_site 0: nothing is to be reported.
#define FAULT_PARAMETERS __global FaultRecord *faults, int fault_site

INLINE void report_fault(FAULT_PARAMETERS, long value, long limit) {
  if (fault_site == 0 || atomic_cmpxchg(&faults->state, 0, 1) != 0) return;
  faults->site = fault_site;
  faults->value = value;
  faults->limit = limit;
}
#endif
