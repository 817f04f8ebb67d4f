// Ctrl-C in a program that has no handler for it: a last action, then the process ends by the
// signal.
#pragma once

namespace ocltensor::opencl {

// `finish` runs on a thread of its own at the first Ctrl-C; a second one ends the process at once.
// Does nothing where SIGINT is ignored or has a handler (Python's, an application's): that one
// decides whether the process ends, and what is due then runs at exit. Only the first call counts.
void finish_on_interrupt(void (*finish)());

}  // namespace ocltensor::opencl
