// Threads of the plugin's own.
#pragma once

#include <functional>
#include <thread>

namespace ocltensor::opencl {

// Starts a thread to which no signals are delivered, but for faults of its own: they go to the
// program's threads. `name`: at most 15 characters, for debuggers. Throws std::system_error if
// there can be no more threads.
std::thread start_worker(const char* name, std::function<void()> run);

}  // namespace ocltensor::opencl
