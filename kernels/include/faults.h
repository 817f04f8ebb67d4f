// Reporting wrong values that only a kernel can detect: it writes the first one to its stream's record and
// continues without the value; the stream's next synchronisation raises an error.
#ifndef OCLTENSOR_FAULTS_H
#define OCLTENSOR_FAULTS_H
#include "types.h"
#include "fault_record.h"

// Parameters of a kernel that reports; OpCall::fault makes the arguments. fault_site 0: reports nothing.
#define FAULT_PARAMETERS __global FaultRecord *faults, int fault_site

INLINE void report_fault(FAULT_PARAMETERS, long value, long limit) {
  if (fault_site == 0 || atomic_cmpxchg(&faults->state, 0, 1) != 0) return;
  faults->site = fault_site;
  faults->value = value;
  faults->limit = limit;
}
#endif
