// Handles Ctrl-C in a program without a handler for it: runs a last action, then the signal ends
// the process.
#pragma once

namespace ocltensor::opencl {

// `finish` runs on a thread of its own at the first Ctrl-C; a second one ends the process at once.
// Does nothing if SIGINT is ignored or has a handler (Python's, an application's), as that handler
// decides whether the process ends, and the last work then runs at exit. Only the first call
// counts.
void finish_on_interrupt(void (*finish)());

}  // namespace ocltensor::opencl
