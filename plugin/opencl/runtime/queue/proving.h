// Kernels that are being proven: their tests run in a thread of their own while the host goes on,
// and launches of such a kernel wait for its verdict in their launch threads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/program/program.h"

namespace ocltensor::opencl::proving {

// Has a program's kernels wait for `test`, which returns what is wrong with them, or an empty text,
// and must not throw. Tests run one after the other. Throws std::system_error if there can be no
// thread for them. Thread-safe, as all functions here.
void begin(std::shared_ptr<const Program> program, std::function<std::string()> test);

// Whether kernels of the program are being proven, or were found wrong by the test that was given
// last.
bool concerns(const Program& program);

// Waits for the verdict, if one is due. Throws Error(TB_E_INTERNAL) if the kernels are wrong, or if
// the process ends before it is known.
void wait(const Program& program);

// While an object lives, this thread tests kernels: it may launch those that are being proven, and
// must not wait for streams that may wait for its verdict.
class Testing {
 public:
  Testing();
  ~Testing();
  Testing(const Testing&) = delete;
};
bool is_testing();

// Ends the thread, after the test that it runs; for the process's exit. Verdicts that are due will
// not come.
void stop();

}  // namespace ocltensor::opencl::proving
