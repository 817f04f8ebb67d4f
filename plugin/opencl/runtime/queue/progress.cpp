// Marks behind commands, and what the driver says of them.
#include "progress.h"

#include <algorithm>

namespace ocltensor::opencl {

void Progress::raise_to(uint64_t ticket) { completed_ = std::max(completed_.load(), ticket); }

void Progress::finish(uint64_t ticket) {
  raise_to(ticket);
  marks_.clear();
}

void Progress::poll() {
  while (!marks_.empty()) {
    cl_int status = CL_QUEUED;
    const cl_int code =
        cl().clGetEventInfo(marks_.front().second(), CL_EVENT_COMMAND_EXECUTION_STATUS,
                            sizeof status, &status, nullptr);
    if (code == CL_SUCCESS && status > CL_COMPLETE) return;
    raise_to(marks_.front().first);  // failed work counts as finished
    marks_.pop_front();
  }
}

}  // namespace ocltensor::opencl
