// Warming up: builds the programs that some work needs in parallel, before the work runs.
#pragma once

#include <cstdint>
#include <functional>

#include "ocltensor/device.h"

namespace ocltensor {

struct WarmUp {
  uint32_t programs;  // missing ones, which were built
  uint32_t calls;     // of `body`; the last one was complete
};

// Calls `body`, with a separate stream as this thread's current one, until no program is missing.
// In all calls but the last, work is executed up to the first kernel whose program is missing and
// no further: what the body computes is then wrong, and where it reads a result on the host, an
// Error (TB_E_STATE) is thrown through it. So the body must be repeatable, must not change data
// that is used elsewhere, and must stay on the current stream. Errors of the last call are
// rethrown. On a device that compiles nothing the body is called once. Programs do not depend on
// shapes: other sizes mostly need no further program.
OCLTENSOR_API WarmUp warm_up(Device device, const std::function<void()>& body);

}  // namespace ocltensor
