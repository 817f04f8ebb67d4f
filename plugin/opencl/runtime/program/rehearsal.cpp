// Notes missing programs, and builds them.
#include "rehearsal.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <thread>

#include "ocltensor/error.h"
#include "runtime/ahead/builder_process.h"
#include "runtime/device/device.h"
#include "runtime/program/program.h"

namespace ocltensor::opencl {
namespace {

constexpr int kMostThreads = 8;  // that compile at the same time

}  // namespace

void Rehearsal::begin() {
  const std::lock_guard lock(mutex_);
  if (is_on()) throw Error(TB_E_STATE, 0, "this stream is rehearsing already");
  missing_.clear();
  helped_ = are_asked_ = false;
  state_ = State::On;
}

uint32_t Rehearsal::end() {
  const std::lock_guard lock(mutex_);
  state_ = State::Off;
  return static_cast<uint32_t>(missing_.size());
}

void Rehearsal::check_results() const {
  if (has_stopped()) [[unlikely]]
    throw Error(TB_E_STATE, 0,
                "the rehearsal of this stream came to a result that has not been computed: build "
                "what is missing, and rehearse again");
}

void Rehearsal::note(std::shared_ptr<Program> program) {
  const std::lock_guard lock(mutex_);
  if (!is_on()) return;  // the rehearsal has ended meanwhile
  state_ = State::Stopped;
  if (std::ranges::find(missing_, program) == missing_.end())
    missing_.push_back(std::move(program));
}

// Sets whether builders compile, too: where a driver compiles slowly, one program at a time. They
// are asked in the order in which this process builds.
void Rehearsal::ask_builders(Device& device) {
  const Capabilities& caps = device.caps();
  if (!caps.deferred_builds && !caps.slow_compiler) return;
  for (const auto& program : missing_) are_asked_ = device.programs().request(*program);
}

uint32_t Rehearsal::build_some(Device& device) {
  const std::lock_guard lock(mutex_);
  if (is_on()) throw Error(TB_E_STATE, 0, "this stream is still rehearsing");
  if (!helped_) ask_builders(device);
  helped_ = true;
  const int threads = device.caps().slow_compiler || are_asked_
                          ? 1
                          : std::min(kMostThreads, build_ahead::usable_processors());
  const size_t count = std::min(missing_.size(), static_cast<size_t>(threads));
  const std::vector<std::shared_ptr<Program>> now(missing_.begin(),
                                                  missing_.begin() + static_cast<ptrdiff_t>(count));
  missing_.erase(missing_.begin(), missing_.begin() + static_cast<ptrdiff_t>(count));
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> builds;
    for (size_t i = 0; i < count; ++i)
      builds.emplace_back([&, i] {
        try {
          (void)device.programs().get(*now[i]);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return static_cast<uint32_t>(missing_.size());
}

}  // namespace ocltensor::opencl
