// A rehearsal of a stream: work is done until a program is missing; from there on programs are only
// noted, so that they can be built in parallel instead of one after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/observe/stream_observer.h"
#include "runtime/program/dry_run.h"

namespace ocltensor::opencl {

class Device;
class Program;

// Thread-safe: a model's backward pass runs in a thread of its own. Begun and ended by its stream,
// which it observes meanwhile.
class Rehearsal final : public StreamObserver {
 public:
  Rehearsal() = default;
  Rehearsal(const Rehearsal&) = delete;

  // Throws Error(TB_E_STATE) if it is on.
  void begin();
  // Returns how many programs were missing; if none, all work was done.
  uint32_t end();
  bool is_on() const { return state_.load(std::memory_order_relaxed) != State::Off; }
  // Whether a program was missing, or this thread is in a dry run, so that launches are skipped
  // now.
  bool has_stopped() const {
    return state_.load(std::memory_order_relaxed) == State::Stopped || DryRun::is_on();
  }
  // Throws Error(TB_E_STATE) if launches were skipped, so that there are no results.
  void check_results() const;

  bool take(Kernel&, const Range&) override { return has_stopped(); }
  bool take(const Transfer&, bool) override { return has_stopped(); }
  void check(const HostUse& use) override {
    if (use.takes_results) check_results();
  }

  void note(std::shared_ptr<Program> program);
  // Builds one of the noted programs, or as many as this process can build at once, and returns how
  // many are left. Where the driver's compiler builds one program at a time in a process, builder
  // processes work on the list, too. Throws as ProgramCache::get() does; the failed
  // program is no longer on the list.
  uint32_t build_some(Device& device);

 private:
  enum class State : uint8_t { Off, On, Stopped };
  void ask_builders(Device& device);

  std::atomic<State> state_{State::Off};
  std::mutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<Program>> missing_;
  bool helped_ = false;
  bool are_asked_ = false;  // builders compile what is missing
};

}  // namespace ocltensor::opencl
