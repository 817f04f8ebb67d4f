// Runs a plan's steps one after another.
#include "plan.h"

#include <chrono>

#include "runtime/stream.h"

namespace torch_ocl::plan {

Run::~Run() {
  while (!devices.empty()) {
    (void)exchange_device(devices.back());
    devices.pop_back();
  }
}

void run_steps(const Steps& steps, Run& run, void (*look_up)()) {
  // Long enough to cost nothing, and short for who presses a key.
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kAtLeast{20};
  Clock::time_point last = Clock::now();
  for (const auto& step : steps) {
    step->run(run);
    if (const Clock::time_point now = Clock::now(); now - last >= kAtLeast) {
      look_up();
      last = now;
    }
  }
}

}  // namespace torch_ocl::plan
