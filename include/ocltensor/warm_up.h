// Warming up: the programs that some work needs are built side by side, before they are needed.
#pragma once

#include <cstdint>
#include <functional>

#include "ocltensor/device.h"

namespace ocltensor {

struct WarmUp {
  uint32_t programs;  // that were missing
  uint32_t calls;     // of the body; the last one was complete
};

// Calls `body`, with a stream of its own as this thread's current one, until no program is missing.
// In all calls but the last, work is done up to the first kernel whose program is missing and no
// further: what the body computes is wrong then, and where it reads a result on the host an Error
// (TB_E_STATE) is thrown through it. So it must be callable again, keep what it changes to itself,
// and stay on the current stream. Errors of the last call are thrown on. On a device that compiles
// nothing the body is called once. Shapes are not compiled in: other sizes mostly need no further
// program.
OCLTENSOR_API WarmUp warm_up(Device device, const std::function<void()>& body);

}  // namespace ocltensor
