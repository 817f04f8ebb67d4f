// Launches: at once, or through the stream's launch thread, and what the driver says of them.
#include <utility>

#include "base/error.h"
#include "device.h"
#include "kernel.h"
#include "process.h"
#include "stream_exclusive.h"

namespace ocltensor::opencl {
namespace {

constexpr uint64_t kFlushEvery = 32;  // enqueues

}  // namespace

cl_int Stream::flush_now_and_then() {
  if (++unflushed_ < kFlushEvery) return CL_SUCCESS;
  unflushed_ = 0;
  return cl().clFlush(queue_.get());
}

void Stream::submitted_one() {
  submitted_.fetch_add(1, std::memory_order_release);
  check(flush_now_and_then(), "clFlush");
}

std::unique_lock<std::mutex> Stream::hold_launches() {
  return launch_thread_ == nullptr ? std::unique_lock<std::mutex>() : launch_thread_->hold();
}

void Stream::hand_over_launches() {
  if (launch_thread_ == nullptr || launch_thread_->is_empty()) return;
  const std::lock_guard lock(mutex_);
  const auto launches = launch_thread_->hold();
}

void Stream::stop_launch_thread() {
  const std::lock_guard lock(mutex_);
  if (launch_thread_ != nullptr) launch_thread_->stop();
}

void Stream::raise_refusal() {
  const Refusal refusal = std::exchange(refusal_, {});
  has_refusal_ = false;
  losses_.fetch_add(1, std::memory_order_relaxed);
  check(refusal.code, refusal.call.c_str());
}

// Any thread's, with the launch thread held, or its own.
void Stream::hand_over(PendingLaunch& launch) noexcept {
  if (has_refusal_) {
    if (launch.work && trace_ != nullptr) (void)trace_->next(*launch.work);  // counts as lost
    return;
  }
  Refusal refusal;
  try {
    refusal.code = enqueue(launch, refusal.call);
  } catch (const std::exception& error) {
    refusal = {CL_OUT_OF_HOST_MEMORY, error.what()};
  }
  if (refusal.code == CL_SUCCESS) [[likely]]
    return;
  refusal.call += ", called after the operator had returned";
  refusal_ = std::move(refusal);
  has_refusal_ = true;
}

cl_int Stream::enqueue(PendingLaunch& launch, std::string& call) {
  const Kernel& kernel = *launch.kernel;
  cl_event* event = launch.work && trace_ != nullptr ? trace_->next(*launch.work) : nullptr;
  if (const cl_int code = kernel.apply(launch.changes, call); code != CL_SUCCESS) return code;
  return enqueue(kernel.get(), kernel.name(), launch.range, event, call);
}

cl_int Stream::enqueue(cl_kernel kernel, const char* name, const Range& range, cl_event* event,
                       std::string& call) {
  recent_[launches_++ % kRecent] = name;
  const size_t* local = range.local[0] == 0 ? nullptr : range.local.data();
  cl_int code = cl().clEnqueueNDRangeKernel(queue_.get(), kernel, range.rank, nullptr,
                                            range.global.data(), local, 0, nullptr, event);
  if (code != CL_SUCCESS) [[unlikely]]
    call = fmt::format("clEnqueueNDRangeKernel ({})", name);
  else if (code = flush_now_and_then(); code != CL_SUCCESS)
    call = "clFlush";
  return code;
}

void Stream::launch(Kernel& kernel, const Range& range) {
  check_process();
  if (rehearsal_.has_stopped()) [[unlikely]]
    return kernel.forget_arguments();
  if (kernel.is_unready()) [[unlikely]]
    fail(TB_E_STATE, "the rehearsal of stream {} ended in another thread", id_);
  const std::lock_guard lock(mutex_);
  PendingLaunch* pending = nullptr;
  std::unique_lock<std::mutex> held;
  if (launch_thread_ != nullptr) {
    const bool is_usual = profiler::session() == session_ && !has_refusal_ && !is_shared_;
    if (is_usual) pending = launch_thread_->next();
    if (pending == nullptr) held = launch_thread_->hold(true);
    if (has_refusal_ && pending == nullptr) [[unlikely]]
      raise_refusal();
    if (!kernel.follows(losses())) [[unlikely]]
      fail(TB_E_STATE, "earlier launches of stream {} were refused while {} was being launched",
           id_, kernel.name());
  }
  if (pending == nullptr) follow_profiler();
  PendingLaunch& launch = pending != nullptr ? *pending : at_once_;
  launch.kernel = &kernel;
  launch.range = range;
  std::swap(launch.changes, kernel.changes());
  kernel.changes().clear();
  launch.work.reset();
  if (trace_ != nullptr) launch.work = profiler::describe_command("kernel", kernel.name(), 0);
  work_counters().launches.fetch_add(1, std::memory_order_relaxed);
  submitted_.fetch_add(1, std::memory_order_release);
  if (pending != nullptr) return launch_thread_->push();
  std::string call;
  if (const cl_int code = enqueue(launch, call); code != CL_SUCCESS) [[unlikely]] {
    kernel.forget_arguments();
    check(code, call.c_str());
  }
}

void Stream::launch(cl_kernel kernel, const char* name, const Range& range) {
  check_process();
  if (rehearsal_.has_stopped()) [[unlikely]]
    return;
  const Exclusive lock(*this);
  work_counters().launches.fetch_add(1, std::memory_order_relaxed);
  submitted_.fetch_add(1, std::memory_order_release);
  std::string call;
  const cl_int code = enqueue(kernel, name, range, traced("kernel", name, 0), call);
  check(code, call.c_str());
}

}  // namespace ocltensor::opencl
