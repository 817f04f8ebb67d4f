// Commands and waits of streams: who watches them, then their queue.
#include "stream.h"

#include <cstring>
#include <string>
#include <utility>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/memory/memory.h"
#include "runtime/observe/call_ledger.h"
#include "runtime/observe/trace.h"
#include "runtime/queue/event.h"
#include "runtime/queue/next_command.h"
#include "runtime/queue/proving.h"
#include "runtime/queue/transfers.h"

namespace ocltensor::opencl {
namespace {

constexpr HostUse kReading{"reading results on the host", true};
constexpr HostUse kMapping{"mapping memory", true};
constexpr HostUse kUnmapping{"unmapping memory"};
constexpr HostUse kWaiting{"waiting for an event or another stream"};
constexpr HostUse kMarking{"recording an event"};
constexpr HostUse kSynchronizing{"synchronisation"};
constexpr HostUse kSharing{"use of the native queue"};
constexpr HostUse kRehearsing{"a rehearsal"};

void count_copy(uint64_t bytes) {
  work_counters().copies.fetch_add(1, std::memory_order_relaxed);
  work_counters().copied_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

WorkCounters& work_counters() {
  static WorkCounters counters;
  return counters;
}

Stream::Stream(Device& device, uint64_t id, uint32_t place)
    : device_(device),
      id_(id),
      place_(place),
      commands_(std::make_unique<CommandQueue>(device, id)),
      faults_(device) {}

// The thread's commands use the other members.
Stream::~Stream() { stop_launch_thread(); }

// ---- Commands that nobody waits for

void Stream::launch(Kernel& kernel, const Range& range) {
  if (is_taken(kernel, range)) [[unlikely]]
    return kernel.forget_arguments();
  if (kernel.is_placeholder()) [[unlikely]]
    fail(TB_E_STATE, "the rehearsal of stream {} ended in another thread", id_);
  NextCommand next(*commands_, kernel.is_pending());
  if (commands_->has_launch_thread() && !kernel.is_of(commands_->epoch())) [[unlikely]]
    fail(TB_E_STATE, "earlier launches of stream {} were refused while {} was being launched", id_,
         kernel.name());
  next->kernel = &kernel;
  next->range = range;
  std::swap(next->changes, kernel.changes());
  kernel.changes().clear();
  work_counters().launches.fetch_add(1, std::memory_order_relaxed);
  next.issue("kernel", kernel.name(), 0);
}

void Stream::enqueue(const Transfer& transfer, bool source_stays) {
  NextCommand next(*commands_);
  if (transfer.kind != Transfer::Kind::Fill) count_copy(transfer.bytes);
  next->kernel = nullptr;
  next->transfer = transfer;
  if (!source_stays) next->transfer.memory = next.stage(transfer.memory, transfer.bytes);
  const TransferTexts& texts = texts_of(transfer.kind);
  next.issue(texts.category, texts.name, transfer.bytes);
}

void Stream::write(cl_mem target, uint64_t offset, const void* source, uint64_t bytes,
                   bool source_stays) {
  const Transfer transfer{.kind = Transfer::Kind::Write,
                          .target = target,
                          .target_offset = offset,
                          .bytes = bytes,
                          .memory = source};
  if (is_taken(transfer, source_stays)) [[unlikely]]
    return;
  if (device_.caps().host_addresses && commands_->is_over()) {
    const ReadyQueue queue(*commands_);
    if (Transfers(*queue).write_at_once(target, offset, source, bytes)) return count_copy(bytes);
  }
  if (source_stays || bytes <= Staging::kSmall) return enqueue(transfer, source_stays);
  const ReadyQueue queue(*commands_);
  count_copy(bytes);
  Transfers(*queue).write(target, offset, source, bytes);
}

void Stream::copy(cl_mem target, uint64_t target_offset, cl_mem source, uint64_t source_offset,
                  uint64_t bytes) {
  issue({.kind = Transfer::Kind::Copy,
         .target = target,
         .target_offset = target_offset,
         .bytes = bytes,
         .source = source,
         .source_offset = source_offset});
}

void Stream::fill(cl_mem target, uint64_t offset, const void* pattern, uint32_t pattern_bytes,
                  uint64_t bytes) {
  Transfer filling{.kind = Transfer::Kind::Fill,
                   .target = target,
                   .target_offset = offset,
                   .bytes = bytes,
                   .pattern_bytes = pattern_bytes};
  std::memcpy(filling.pattern.data(), pattern, pattern_bytes);
  issue(filling);
}

void Stream::issue(const Transfer& transfer) {
  if (is_taken(transfer, true)) [[unlikely]]
    return;
  enqueue(transfer, true);
}

void Stream::wait_elsewhere(cl::Event event) {
  check(kWaiting);
  cl_int status = CL_QUEUED;
  if (event.getInfo(CL_EVENT_COMMAND_EXECUTION_STATUS, &status) == CL_SUCCESS &&
      status == CL_COMPLETE)
    return;
  if (has_launch_thread()) return NextCommand(*commands_, true).issue_wait(std::move(event));
  if (const cl_int code = await(event); code != CL_SUCCESS)
    raise_async(code, "clWaitForEvents", "work of another device before the event failed");
}

// ---- Calls that need what was enqueued

void Stream::read(void* target, cl_mem source, uint64_t offset, uint64_t bytes, bool asynchronous) {
  const ReadyQueue queue = use(kReading);
  count_copy(bytes);
  Transfers(*queue).read(target, source, offset, bytes, asynchronous);
  if (!asynchronous) faults_.raise_reported(queue->get(), id_);
}

void* Stream::map(cl_mem buffer, uint64_t offset, uint64_t bytes, cl_map_flags flags) {
  const ReadyQueue queue = use(kMapping);
  Transfers transfers(*queue);
  void* memory = transfers.map(buffer, offset, bytes, flags);
  try {
    faults_.raise_reported(queue->get(), id_);
  } catch (...) {
    transfers.unmap(buffer, memory);
    throw;
  }
  return memory;
}

void Stream::unmap(cl_mem buffer, void* memory) {
  const ReadyQueue queue = use(kUnmapping);
  Transfers(*queue).unmap(buffer, memory);
}

void Stream::wait_event(cl_event event) {
  const ReadyQueue queue = use(kWaiting);
  queue->check(cl().clEnqueueBarrierWithWaitList(queue->get(), 1, &event, nullptr),
               "clEnqueueBarrierWithWaitList");
  queue->count();
}

cl::Event Stream::marker(bool timing) {
  check(kMarking);
  const HeldQueue queue(*commands_);
  // Destructors record events, too, and ignore errors, so the error is kept for the next command.
  queue.tell_refusal();
  queue->follow_profiler();
  return queue->marker(timing);
}

void Stream::synchronize(bool raises) {
  check_process();
  if (raises) check(kSynchronizing);
  const HeldQueue queue(*commands_);
  queue->finish();
  if (!raises) return;
  queue.raise_refusal();
  faults_.raise_reported(queue->get(), id_);
}

bool Stream::idle() { return passed(enqueued()); }

void Stream::end_trace() {
  check_process();
  const HeldQueue queue(*commands_);
  queue->follow_profiler();
}

void Stream::collect_trace() {
  check_process();
  const HeldQueue queue(*commands_);
  queue->collect_trace();
}

void Stream::finish_operator() {
  if (profiler::listens(profiler::kTrace)) {
    tb_memory_stats stats{};
    device_.memory().pool().fill_stats(stats);
    profiler::trace::add({device_.index(), profiler::now(),
                          static_cast<uint64_t>(stats.allocated_bytes.current),
                          static_cast<uint64_t>(stats.reserved_bytes.current)});
    if (profiler::trace::waits() && !is_recording()) synchronize();
  }
  if (profiler::CallLedger::waits_for_times()) collect_trace();
}

cl_command_queue Stream::queue() { return use(kSharing)->share(); }

// ---- Order and progress

bool Stream::has_launch_thread() const { return commands_->has_launch_thread(); }
uint64_t Stream::epoch() const { return commands_->epoch(); }
void Stream::submit_launches() { commands_->submit_all(); }
bool Stream::try_submit_launches() { return commands_->try_submit_all(); }
void Stream::stop_launch_thread() { commands_->stop_launch_thread(); }
uint64_t Stream::enqueued() const { return commands_->enqueued(); }

bool Stream::passed(uint64_t ticket) {
  check_process();
  return commands_->passed(ticket);
}

void Stream::wait(uint64_t ticket) {
  if (!passed(ticket) && !proving::is_testing()) synchronize(false);
}

// ---- Observers

StreamObserver* Stream::observer() {
  switch (watch_.load(std::memory_order_relaxed)) {
    case Watch::Rehearsal: return &rehearsal_;
    case Watch::Recording: return recording_.get();
    case Watch::None: break;
  }
  return nullptr;
}

bool Stream::give_to_observer(Kernel& kernel, const Range& range) {
  // Without the lock, which a proof may wait for.
  if (is_recording() && kernel.is_pending()) kernel.make();
  const auto lock = commands_->lock();
  StreamObserver* const watching = observer();
  if (watching != nullptr && is_recording() && !kernel.is_of(epoch()))
    fail(TB_E_STATE, "stream {} began to record a graph while {} was being launched", id_,
         kernel.name());
  return watching != nullptr && watching->take(kernel, range);
}

bool Stream::give_to_observer(const Transfer& transfer, bool source_stays) {
  const auto lock = commands_->lock();
  StreamObserver* const watching = observer();
  return watching != nullptr && watching->take(transfer, source_stays);
}

void Stream::check(const HostUse& use) {
  check_process();
  if (DryRun::is_on()) [[unlikely]]
    rehearsal_.check(use);  // no command of the thread is enqueued, on any stream
  if (watch_.load(std::memory_order_relaxed) == Watch::None) [[likely]]
    return;
  const auto lock = commands_->lock();
  if (StreamObserver* const watching = observer()) watching->check(use);
}

ReadyQueue Stream::use(const HostUse& use) {
  check(use);
  return ReadyQueue(*commands_);
}

void Stream::begin_rehearsal() {
  check(kRehearsing);
  rehearsal_.begin();
  const auto lock = commands_->lock();
  if (!is_recording()) watch_ = Watch::Rehearsal;
}

uint32_t Stream::end_rehearsal() {
  const uint32_t missing = rehearsal_.end();
  const auto lock = commands_->lock();
  if (!is_recording()) watch_ = Watch::None;
  return missing;
}

void Stream::begin_recording(std::unique_ptr<StreamObserver> recording, Faults& faults) {
  check_process();
  const ReadyQueue queue(*commands_);
  if (is_recording()) fail(TB_E_STATE, "stream {} records a graph already", id_);
  if (rehearsal_.is_on()) fail(TB_E_STATE, "stream {} rehearses", id_);
  recording_ = std::move(recording);
  faults_.use(&faults);
  commands_->renew_epoch();  // kernels pass all of their arguments
  watch_ = Watch::Recording;
}

std::unique_ptr<StreamObserver> Stream::end_recording() {
  const auto lock = commands_->lock();
  if (!is_recording()) return nullptr;
  watch_ = Watch::None;
  faults_.use(nullptr);
  commands_->renew_epoch();
  return std::move(recording_);
}

void Stream::name_failure(const std::string& operation) {
  if (!is_recording()) return;
  const auto lock = commands_->lock();
  if (StreamObserver* const watching = observer()) watching->name_failure(operation);
}

void Stream::keep_recorded(cl::Buffer& buffer) {
  if (!is_recording()) return;
  const auto lock = commands_->lock();
  if (StreamObserver* const watching = observer()) watching->keep(buffer);
}

}  // namespace ocltensor::opencl
