// Commands that the caller does not wait for: submitted at once, or through the stream's launch
// thread; and what happens if the driver refuses one.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/caps.h"
#include "runtime/driver/process.h"
#include "runtime/program/program.h"
#include "runtime/queue/kernel.h"
#include "runtime/queue/stream_exclusive.h"

namespace ocltensor::opencl {
namespace {

constexpr std::array kTransferCalls{"clEnqueueWriteBuffer", "clEnqueueCopyBuffer",
                                    "clEnqueueFillBuffer"};

// One of `all` until the end of the scope.
class Counted {
 public:
  explicit Counted(std::atomic<int>& all) : all_(all) {}
  ~Counted() { --all_; }
  Counted(const Counted&) = delete;

 private:
  std::atomic<int>& all_;
};

void count_copy(uint64_t bytes) {
  work_counters().copies.fetch_add(1, std::memory_order_relaxed);
  work_counters().copied_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

void Stream::enqueued_one(uint64_t bytes) {
  enqueued_.fetch_add(1, std::memory_order_release);
  const char* call = nullptr;
  check(objects_->pace.keep(objects_->queue(), bytes, call), call);
}

std::unique_lock<std::mutex> Stream::hold_launches() {
  return launch_thread_ == nullptr ? std::unique_lock<std::mutex>() : launch_thread_->hold();
}

void Stream::submit_launches() {
  if (launch_thread_ == nullptr || launch_thread_->is_empty()) return;
  const std::lock_guard lock(mutex_);
  const auto launches = launch_thread_->hold();
}

std::unique_lock<std::mutex> Stream::lock_unless_unbuilt() {
  if (launch_thread_ == nullptr) return std::unique_lock(mutex_);
  for (; unbuilt_ == 0; std::this_thread::sleep_for(std::chrono::microseconds(20))) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    if (unbuilt_ == 0) return lock;  // and it stays so, as only a holder of the lock adds to it
    break;
  }
  return {};
}

bool Stream::try_submit_launches() {
  if (launch_thread_ == nullptr || launch_thread_->is_empty()) return true;
  const std::unique_lock lock = lock_unless_unbuilt();
  if (!lock) return false;
  const auto launches = hold_launches();
  return true;
}

void Stream::stop_launch_thread() {
  const std::lock_guard lock(mutex_);
  if (launch_thread_ != nullptr) launch_thread_->stop();
}

void Stream::raise_refusal() {
  const Refusal refusal = std::exchange(refusal_, {});
  has_refusal_ = false;
  epoch_.fetch_add(1, std::memory_order_relaxed);
  if (refusal.error) std::rethrow_exception(refusal.error);
  check(refusal.code, refusal.call.c_str());
}

// Called by any thread that holds the launch thread, or by that thread itself.
void Stream::submit(Command& command) noexcept {
  if (has_refusal_) {
    if (command.is_unbuilt) --unbuilt_;
    if (command.work && trace_ != nullptr) (void)trace_->next(*command.work);  // counts as lost
    return;
  }
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

cl_int Stream::enqueue(Command& command, std::string& call) {
  cl_event* event = command.work && trace_ != nullptr ? trace_->next(*command.work) : nullptr;
  if (command.kernel == nullptr) return enqueue(command.transfer, event, call);
  Kernel& kernel = *command.kernel;
  if (command.is_unbuilt) [[unlikely]] {
    const Counted counted(unbuilt_);
    if (kernel.is_pending()) kernel.make();
  }
  if (const cl_int code = kernel.apply(command.changes, call); code != CL_SUCCESS) return code;
  return enqueue(kernel.get(), kernel.name(), kernel.fitted(command.range), event, call);
}

cl_int Stream::enqueue(cl_kernel kernel, const char* name, const Range& range, cl_event* event,
                       std::string& call) {
  recent_[launches_++ % kRecent] = name;
  const size_t* local = range.local[0] == 0 ? nullptr : range.local.data();
  if (device_.caps().is_capped) [[unlikely]]
    if (const std::string beyond = beyond_caps(device_.caps(), device_.id(), kernel, range.local);
        !beyond.empty()) {
      call = fmt::format("clEnqueueNDRangeKernel ({}: {})", name, beyond);
      return CL_OUT_OF_RESOURCES;
    }
  cl_int code = cl().clEnqueueNDRangeKernel(objects_->queue(), kernel, range.rank, nullptr,
                                            range.global.data(), local, 0, nullptr, event);
  if (code != CL_SUCCESS) [[unlikely]] {
    call = fmt::format("clEnqueueNDRangeKernel ({}{})", name,
                       code == CL_INVALID_WORK_GROUP_SIZE && local != nullptr
                           ? describe_group(device_.id(), kernel, range.local)
                           : std::string());
    return code;
  }
  const char* what = nullptr;
  // Such a driver compiles again when a program's kernel is first launched, in a thread of its own.
  // A process that ends meanwhile takes the compiler's tables from it: the crash is the driver's.
  if (device_.caps().slow_compiler) {
    const uint64_t programs = build_counters().builds + build_counters().loads;
    if (programs != programs_) [[unlikely]] {
      programs_ = programs;
      if (code = cl().clFinish(objects_->queue()); code != CL_SUCCESS) {
        call = fmt::format("clFinish ({})", name);
        return code;
      }
    }
  }
  if (code = objects_->pace.keep(objects_->queue(), 0, what); code != CL_SUCCESS) [[unlikely]]
    call = what;
  return code;
}

cl_int Stream::enqueue(const Transfer& t, cl_event* event, std::string& call) {
  const cl_command_queue queue = objects_->queue();
  cl_int code = CL_SUCCESS;
  switch (t.kind) {
    case Transfer::Kind::Write:
      code = cl().clEnqueueWriteBuffer(queue, t.target, CL_FALSE, t.target_offset, t.bytes,
                                       t.memory, 0, nullptr, event);
      break;
    case Transfer::Kind::Copy:
      code = cl().clEnqueueCopyBuffer(queue, t.source, t.target, t.source_offset, t.target_offset,
                                      t.bytes, 0, nullptr, event);
      break;
    case Transfer::Kind::Fill:
      code = cl().clEnqueueFillBuffer(queue, t.target, t.pattern.data(), t.pattern_bytes,
                                      t.target_offset, t.bytes, 0, nullptr, event);
  }
  if (code != CL_SUCCESS) [[unlikely]] {
    call = kTransferCalls[static_cast<size_t>(t.kind)];
    return code;
  }
  const char* what = nullptr;
  const uint64_t held = t.kind == Transfer::Kind::Write ? t.bytes : 0;
  if (code = objects_->pace.keep(queue, held, what); code != CL_SUCCESS) [[unlikely]]
    call = what;
  return code;
}

void* Stream::staging(uint64_t bytes) {
  if (void* memory = objects_->staging.take(bytes)) return memory;
  const char* call = nullptr;
  const cl_int code = objects_->staging.next_chunk(objects_->queue(), call);
  check(code, call);
  return objects_->staging.take(bytes);
}

void Stream::leave_staging() {
  const char* call = nullptr;
  const cl_int code = objects_->staging.mark(objects_->queue(), call);
  check(code, call);
}

// A command of the launch thread's ring, or the stream's own while the launch thread is held.
class Stream::NextCommand {
 public:
  // `later`: the command shall not be submitted by this thread, if that can be avoided.
  explicit NextCommand(Stream& stream, bool later = false) : stream_(stream), lock_(stream.mutex_) {
    LaunchThread* const thread = stream.launch_thread_.get();
    const bool is_usual = thread != nullptr && profiler::session() == stream.session_ &&
                          !stream.has_refusal_ && !stream.is_shared_;
    if (is_usual) pending_ = thread->next(later);
    if (pending_ != nullptr) return;
    hold();
    if (stream.has_refusal_) [[unlikely]]
      stream.raise_refusal();
    stream.follow_profiler();
  }

  Command* operator->() { return pending_ != nullptr ? pending_ : &stream_.at_once_; }

  // Copies `source` to staging memory.
  const void* stage(const void* source, uint64_t bytes) {
    void* staged = stream_.objects_->staging.take(bytes);
    if (staged == nullptr) {
      hold();
      staged = stream_.staging(bytes);
    }
    return std::memcpy(staged, source, bytes);
  }

  // Names for the profiler: literals, or texts that live as long as the process.
  void issue(const char* category, const char* name, uint64_t bytes) {
    Command& command = *operator->();
    command.work.reset();
    if (stream_.trace_ != nullptr) command.work = profiler::describe_command(category, name, bytes);
    stream_.enqueued_.fetch_add(1, std::memory_order_release);
    command.is_unbuilt = command.kernel != nullptr && command.kernel->is_pending();
    if (command.is_unbuilt) [[unlikely]]
      ++stream_.unbuilt_;
    if (pending_ != nullptr) return stream_.launch_thread_->push();
    try {
      std::string call;
      const cl_int code = stream_.enqueue(command, call);
      stream_.check(code, call.c_str());
    } catch (...) {
      if (command.kernel != nullptr) command.kernel->forget_arguments();
      throw;
    }
  }

 private:
  void hold() {
    if (stream_.launch_thread_ != nullptr && !held_.owns_lock())
      held_ = stream_.launch_thread_->hold(true);
  }

  Stream& stream_;
  const std::lock_guard<std::mutex> lock_;
  std::unique_lock<std::mutex> held_;
  Command* pending_ = nullptr;
};

void Stream::launch(Kernel& kernel, const Range& range) {
  check_process();
  if (rehearsal_.has_stopped()) [[unlikely]]
    return kernel.forget_arguments();
  if (kernel.is_unready()) [[unlikely]]
    fail(TB_E_STATE, "the rehearsal of stream {} ended in another thread", id_);
  if (is_recording() && record(kernel, range)) [[unlikely]]
    return;
  NextCommand next(*this, kernel.is_pending());
  if (launch_thread_ != nullptr && !kernel.is_of(epoch())) [[unlikely]]
    fail(TB_E_STATE, "earlier launches of stream {} were refused while {} was being launched", id_,
         kernel.name());
  next->kernel = &kernel;
  next->range = range;
  std::swap(next->changes, kernel.changes());
  kernel.changes().clear();
  work_counters().launches.fetch_add(1, std::memory_order_relaxed);
  next.issue("kernel", kernel.name(), 0);
}

void Stream::write(cl_mem target, uint64_t offset, const void* source, uint64_t bytes,
                   bool source_stays) {
  check_process();
  if (rehearsal_.has_stopped()) [[unlikely]]
    return;
  if (is_recording() && record({.kind = Transfer::Kind::Write,
                                .target = target,
                                .target_offset = offset,
                                .bytes = bytes,
                                .memory = source},
                               source_stays)) [[unlikely]]
    return;
  if (write_at_once(target, offset, source, bytes)) return;
  if (!source_stays && bytes > Staging::kSmall) return write_large(target, offset, source, bytes);
  NextCommand next(*this);
  count_copy(bytes);
  const void* memory = source_stays ? source : next.stage(source, bytes);
  next->kernel = nullptr;
  next->transfer = {.kind = Transfer::Kind::Write,
                    .target = target,
                    .target_offset = offset,
                    .bytes = bytes,
                    .memory = memory};
  next.issue("copy", "copy to device", bytes);
}

bool Stream::write_at_once(cl_mem target, uint64_t offset, const void* source, uint64_t bytes) {
  if (!device_.caps().host_addresses || enqueued_.load() != completed_.load()) return false;
  const Exclusive lock(*this);
  std::byte* to = is_settled() ? host_address(target, offset) : nullptr;
  if (to == nullptr) return false;
  count_copy(bytes);
  std::memcpy(to, source, bytes);
  return true;
}

// The caller may reuse its memory when this returns.
void Stream::write_large(cl_mem target, uint64_t offset, const void* source, uint64_t bytes) {
  const Exclusive lock(*this);
  count_copy(bytes);
  if (std::byte* to = host_address(target, offset)) {
    settle();
    std::memcpy(to, source, bytes);
    return;
  }
  const auto enqueue = [&](cl_bool blocking, uint64_t at, const void* from, uint64_t count) {
    check(cl().clEnqueueWriteBuffer(objects_->queue(), target, blocking, offset + at, count, from,
                                    0, nullptr, traced("copy", "copy to device", count)),
          "clEnqueueWriteBuffer");
    enqueued_one();
  };
  if (device_.caps().unified_memory) return enqueue(CL_TRUE, 0, source, bytes);
  const auto* from = static_cast<const unsigned char*>(source);
  for (uint64_t at = 0; at < bytes; at += Staging::kChunkBytes) {
    const uint64_t count = std::min(bytes - at, Staging::kChunkBytes);
    void* staged = staging(count);
    std::memcpy(staged, from + at, count);
    enqueue(CL_FALSE, at, staged, count);
    check(cl().clFlush(objects_->queue()), "clFlush");
  }
  leave_staging();
}

void Stream::copy(cl_mem target, uint64_t target_offset, cl_mem source, uint64_t source_offset,
                  uint64_t bytes) {
  check_process();
  if (rehearsal_.has_stopped()) [[unlikely]]
    return;
  const Transfer transfer{.kind = Transfer::Kind::Copy,
                          .target = target,
                          .target_offset = target_offset,
                          .bytes = bytes,
                          .source = source,
                          .source_offset = source_offset};
  if (is_recording() && record(transfer, true)) [[unlikely]]
    return;
  NextCommand next(*this);
  count_copy(bytes);
  next->kernel = nullptr;
  next->transfer = transfer;
  next.issue("copy", "copy on device", bytes);
}

void Stream::fill(cl_mem target, uint64_t offset, const void* pattern, uint32_t pattern_bytes,
                  uint64_t bytes) {
  check_process();
  if (rehearsal_.has_stopped()) [[unlikely]]
    return;
  Transfer transfer{.kind = Transfer::Kind::Fill,
                    .target = target,
                    .target_offset = offset,
                    .bytes = bytes,
                    .pattern_bytes = pattern_bytes};
  std::memcpy(transfer.pattern.data(), pattern, pattern_bytes);
  if (is_recording() && record(transfer, true)) [[unlikely]]
    return;
  NextCommand next(*this);
  next->kernel = nullptr;
  next->transfer = transfer;
  next.issue("fill", "fill", bytes);
}

}  // namespace ocltensor::opencl
