// Kernels of the plugin's programs by name, each thread's own: see the class Kernel for whose they
// are. A thread that ends leaves its objects to another one.
#pragma once

#include "runtime/program/defines.h"
#include "runtime/program/source.h"
#include "runtime/queue/kernel.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {

// This thread's kernel `function` of the program made from `source` and `defines`. A program that
// is missing is built; or noted as missing, if the stream rehearses; or asked of builders, if the
// stream has a launch thread, and the kernel is pending; as is one that is being proven, but
// for its test. The reference is valid as long as the process. `function` must be a string literal.
Kernel& find_kernel(Stream& stream, const Source& source, const char* function,
                    const Defines& defines);

// Whether kernels of the stream may be pending. A process's first program is always built at once:
// it loads the compiler, whose exit handlers must not run while a launch thread compiles.
bool defers_builds(const Stream& stream);

}  // namespace ocltensor::opencl
