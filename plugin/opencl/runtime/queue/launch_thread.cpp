// The ring of commands, and when its thread runs and sleeps.
#include "launch_thread.h"

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/config.h"
#include "base/log.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/driver/process_end.h"
#include "runtime/driver/worker.h"
#include "runtime/queue/proving.h"
#include "runtime/queue/stream.h"

namespace ocltensor::opencl {
namespace {

constexpr uint32_t kBurst = 8;   // commands without a wait for the device: more will follow
constexpr uint32_t kAtOnce = 8;  // commands submitted before the lock is released for a moment
constexpr std::chrono::microseconds kLooksFor{200};
// Tries to take the lock before sleeping until it is free: about 100 microseconds, which is longer
// than the thread takes to submit its current command, after which it releases the lock.
constexpr int kTries = 2000;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// What the launches from now on need is compiled, and what has been launched has run: no thread of
// the driver compiles any more.
void end_compiling_launches(Device& device) {
  config::set_driver_variable(device.caps().launch_compiler, "0");
  try {
    device.synchronize(false);
  } catch (const Error& error) {
    logging::debug("device", "at the end of the process: {}", error.what());
  }
}

// Drivers crash if their compilers are called, or their threads run, while exit() destroys them.
void end_process() {
  if (is_forked() || !end_compiling()) return;  // a child's threads are the parent's
  proving::stop();
  for (const auto& device : device_list().devices) {
    if (!device->is_open()) continue;
    for (const auto& stream : device->streams()) stream->stop_launch_thread();
    if (device->caps().launch_compiler != nullptr) end_compiling_launches(*device);
  }
}

}  // namespace

std::atomic<bool> LaunchThread::launches_compile_{false};

void LaunchThread::stop_all_at_exit() { (void)std::atexit(end_process); }

LaunchThread::LaunchThread(std::function<void(Command&)> submit, bool all)
    : submit_(std::move(submit)),
      all_(all),
      slots_(std::make_unique<std::array<Command, kSlots>>()) {}

LaunchThread::~LaunchThread() { stop(); }

void LaunchThread::stop() {
  stopping_ = true;
  if (!thread_.joinable()) return;
  awake_.store(1);
  awake_.notify_all();
  thread_.join();
}

Command* LaunchThread::next(bool later) {
  const bool is_idle =
      all_ ? awake_.load(std::memory_order_relaxed) == 0 && ++at_once_ < kBurst : is_empty();
  if (is_idle && !later) return nullptr;
  if (stopping_ || is_process_ending()) return nullptr;
  const uint32_t filled = filled_.load(std::memory_order_relaxed);
  if (filled - taken_.load(std::memory_order_acquire) == kSlots) {  // full: the device is behind
    const std::unique_lock lock = take_lock();
    while (filled - taken_.load(std::memory_order_relaxed) > kSlots / 2) submit_one();
  }
  return &(*slots_)[filled % kSlots];
}

void LaunchThread::push() {
  filled_.fetch_add(1, std::memory_order_seq_cst);
  if (awake_.load(std::memory_order_seq_cst) == 0) wake();
}

void LaunchThread::wake() {
  awake_.store(1);
  if (thread_.joinable()) return awake_.notify_one();
  static std::once_flag once;
  std::call_once(once, stop_all_at_exit);
  try {
    thread_ = start_worker("ocl-launches", [this] { run(); });
  } catch (const std::system_error&) {  // no more threads: launches are submitted at once
    stopping_ = true;
  }
}

std::unique_lock<std::mutex> LaunchThread::take_lock() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  wanted_.store(true, std::memory_order_relaxed);
  for (int i = 0; i < kTries && !lock.try_lock(); ++i) relax();
  if (!lock.owns_lock()) lock.lock();
  wanted_.store(false, std::memory_order_relaxed);
  return lock;
}

std::unique_lock<std::mutex> LaunchThread::hold(bool for_command) {
  std::unique_lock lock = take_lock();
  if (!for_command) at_once_ = 0;
  while (!is_empty()) submit_one();
  return lock;
}

void LaunchThread::submit_one() {
  const uint32_t taken = taken_.load(std::memory_order_relaxed);
  submit_((*slots_)[taken % kSlots]);
  taken_.store(taken + 1, std::memory_order_release);
}

void LaunchThread::run() {
  while (wait_for_work()) {
    const std::lock_guard lock(mutex_);
    for (uint32_t i = 0; i < kAtOnce && !is_empty(); ++i) {
      if (wanted_.load(std::memory_order_relaxed)) break;
      submit_one();
    }
  }
}

bool LaunchThread::wait_for_work() {
  using Clock = std::chrono::steady_clock;
  constexpr int kLooks = 64;  // tries between two queries of the clock
  for (Clock::time_point until = Clock::now() + kLooksFor;;) {
    for (int i = 0; i < kLooks; ++i) {
      if (stopping_.load(std::memory_order_relaxed)) return false;
      if (!is_empty() && !wanted_.load(std::memory_order_relaxed)) return true;
      relax();
    }
    if (Clock::now() < until) continue;
    // A producer that pushes after this store wakes the thread; commands pushed before it are seen
    // below.
    awake_.store(0, std::memory_order_seq_cst);
    if (filled_.load(std::memory_order_seq_cst) == taken_.load() && !stopping_) awake_.wait(0);
    awake_.store(1);
    until = Clock::now() + kLooksFor;
  }
}

}  // namespace ocltensor::opencl
