// A rehearsal of a stream: work is done until a program is missing, from there on programs are only
// noted, so that they can be built side by side instead of one after the other as they are met.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/program/defines.h"
#include "runtime/program/source.h"

namespace ocltensor::opencl {

class Device;

// Thread-safe: a model's backward pass runs in a thread of its own.
class Rehearsal {
 public:
  Rehearsal() = default;
  ~Rehearsal();
  Rehearsal(const Rehearsal&) = delete;

  // Throws Error(TB_E_STATE) if it is on.
  void begin();
  // How many programs were missing; with none, everything was done.
  uint32_t end();
  bool is_on() const { return state_.load(std::memory_order_relaxed) != State::Off; }
  // Is nothing done any more?
  bool has_stopped() const { return state_.load(std::memory_order_relaxed) == State::Stopped; }
  // Throws Error(TB_E_STATE) if results cannot be had because nothing is done any more.
  void check_results() const;

  void note(const Source& source, const Defines& defines);
  // Builds one of those noted, or as many as this process can at once, and returns how many are
  // left. Where the driver's compiler works on one program at a time in a process, others build
  // from the list's end meanwhile. Throws as ProgramCache::get() does; that program is no longer on
  // the list.
  uint32_t build_some(Device& device);

 private:
  enum class State : uint8_t { Off, On, Stopped };
  struct Wanted {
    const Source* source;
    Defines defines;
  };
  void start_builders(Device& device);
  void forget_list();

  std::atomic<State> state_{State::Off};
  std::mutex mutex_;  // guards what follows
  std::vector<Wanted> missing_;
  std::string list_;  // the builders' file
  bool helped_ = false;
};

}  // namespace ocltensor::opencl
