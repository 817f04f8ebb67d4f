// Ctrl-C in a program that has no handler for it: the process still ends by it, after
// profiler::finish().
#pragma once

namespace ocltensor::opencl::profiler {

// Does nothing where SIGINT is ignored or has a handler (Python's, an application's): that one
// decides whether the process ends, and exit() calls finish(). Installs once.
void finish_on_interrupt();

}  // namespace ocltensor::opencl::profiler
