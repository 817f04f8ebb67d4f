// The end of the process. exit() destroys what a compiler inside a driver keeps (clang's in PoCL)
// before exit handlers and statics that are older than its first use: what still runs then computes
// with programs that are compiled, and compiles in other processes.
#pragma once

#include <atomic>

namespace ocltensor::opencl {

namespace detail {
extern std::atomic<bool> ending;
}

// Whether compilers of drivers may be gone: nothing is compiled in this process any more.
inline bool is_process_ending() { return detail::ending.load(std::memory_order_relaxed); }

// Held by who has a driver compile, or load a program where it may not do that for ever
// (Capabilities::loads_at_exit). Throws Error(TB_E_STATE), naming `what`, when the process ends.
class Compiling {
 public:
  explicit Compiling(const char* what);
  ~Compiling();
  Compiling(const Compiling&) = delete;
};

// From now on nothing is compiled, and nothing is being compiled when this returns. False if that
// was so before.
bool end_compiling();

}  // namespace ocltensor::opencl
