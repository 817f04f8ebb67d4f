// Submits commands in their order, keeps what the driver refuses, and tells how far they have come.
#include "command_queue.h"

#include <chrono>
#include <thread>
#include <utility>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/queue/event.h"
#include "runtime/queue/kernel.h"

namespace ocltensor::opencl {
namespace {

// Epochs of streams never repeat: a kernel that a former stream used must not rely on the arguments
// that it remembers.
uint64_t first_epoch() {
  static std::atomic<uint64_t> streams{0};
  return ++streams << 32;
}

// One of `all` until the end of the scope.
class Counted {
 public:
  explicit Counted(std::atomic<int>& all) : all_(all) {}
  ~Counted() { --all_; }
  Counted(const Counted&) = delete;

 private:
  std::atomic<int>& all_;
};

}  // namespace

CommandQueue::CommandQueue(Device& device, uint64_t stream)
    : driver_(device, stream), epoch_(first_epoch()) {
  if (device.caps().deferred_builds)
    launch_thread_ = std::make_unique<LaunchThread>([this](Command& c) { submit(c); },
                                                    device.caps().launch_thread);
}

std::unique_lock<std::mutex> CommandQueue::hold_launches() {
  return launch_thread_ == nullptr ? std::unique_lock<std::mutex>() : launch_thread_->hold();
}

void CommandQueue::submit_all() {
  if (launch_thread_ == nullptr || launch_thread_->is_empty()) return;
  const HeldQueue submitted(*this);
}

std::unique_lock<std::mutex> CommandQueue::lock_unless_waiting() {
  if (launch_thread_ == nullptr) return lock();
  for (; waiting_ == 0; std::this_thread::sleep_for(std::chrono::microseconds(20))) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    if (waiting_ == 0) return lock;  // and it stays so, as only a holder of the lock adds to it
    break;
  }
  return {};
}

bool CommandQueue::try_submit_all() {
  if (launch_thread_ == nullptr || launch_thread_->is_empty()) return true;
  const std::unique_lock lock = lock_unless_waiting();
  if (!lock) return false;
  const auto launches = hold_launches();
  return true;
}

void CommandQueue::stop_launch_thread() {
  const auto makers = lock();
  if (launch_thread_ != nullptr) launch_thread_->stop();
}

CommandQueue::Refusal CommandQueue::take_refusal() {
  has_refusal_ = false;
  renew_epoch();
  return std::exchange(refusal_, {});
}

void CommandQueue::raise(const Refusal& refusal) {
  if (refusal.error) std::rethrow_exception(refusal.error);
  driver_.check(refusal.code, refusal.call.c_str());
}

void HeldQueue::raise_refusal() const {
  if (queue_.has_refusal_) [[unlikely]]
    queue_.raise(queue_.take_refusal());
}

void HeldQueue::tell_refusal() const {
  if (!queue_.has_refusal_) [[likely]]
    return;
  if (queue_.refusal_.error) std::rethrow_exception(queue_.refusal_.error);
  check_cl(queue_.refusal_.code, queue_.refusal_.call.c_str());
}

void CommandQueue::drop(Command& command) {
  if (command.waits) --waiting_;
  command.awaited.reset();
  if (command.work) (void)driver_.event(*command.work);  // counts as lost
}

// Called by any thread that holds the launch thread, or by that thread itself.
void CommandQueue::submit(Command& command) noexcept {
  if (has_refusal_) return drop(command);
  Refusal refusal;
  try {
    refusal.code = enqueue(command, refusal.call);
  } catch (const Error&) {
    refusal = {CL_BUILD_PROGRAM_FAILURE, "", std::current_exception()};
  } catch (const std::exception& error) {
    refusal = {CL_OUT_OF_HOST_MEMORY, error.what(), nullptr};
  }
  if (refusal.code == CL_SUCCESS) [[likely]]
    return;
  refusal.call += ", called after the operator had returned";
  refusal_ = std::move(refusal);
  has_refusal_ = true;
}

cl_int CommandQueue::enqueue(Command& command, std::string& call) {
  cl_event* event = command.work ? driver_.event(*command.work) : nullptr;
  if (command.waits) [[unlikely]] {
    const Counted counted(waiting_);
    if (const auto awaited = std::exchange(command.awaited, nullptr))
      return wait_for(*awaited, call);
    if (command.kernel->is_pending()) command.kernel->make();
  }
  if (command.kernel == nullptr) return driver_.enqueue(command.transfer, event, call);
  const Kernel& kernel = *command.kernel;
  if (const cl_int code = kernel.apply(command.changes, call); code != CL_SUCCESS) return code;
  return driver_.enqueue(kernel.get(), kernel.name(), kernel.fitted(command.range), event, call);
}

// What was enqueued before runs meanwhile. The failure is the other device's: it is raised as such,
// and costs this queue no more than the commands that depend on it.
cl_int CommandQueue::wait_for(const cl::Event& awaited, std::string& call) {
  if (const cl_int code = driver_.flush(call); code != CL_SUCCESS) return code;
  const cl_int code = await(awaited);
  if (code != CL_SUCCESS)
    raise_async(code, "clWaitForEvents", "work of another device before the event failed");
  return CL_SUCCESS;
}

bool CommandQueue::passed(uint64_t ticket) {
  Progress& progress = driver_.progress();
  if (progress.has_passed(ticket)) return true;
  const std::unique_lock lock = lock_unless_waiting();
  if (!lock) return false;
  progress.poll();
  if (!progress.has_passed(ticket) && !progress.is_marked(ticket)) {
    const auto launches = hold_launches();
    if (!driver_.mark_progress()) return false;
    progress.poll();
  }
  return progress.has_passed(ticket);
}

}  // namespace ocltensor::opencl
