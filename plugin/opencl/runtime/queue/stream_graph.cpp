// The stream's part in graphs: what it records, what it refuses meanwhile, and replays.
#include <algorithm>
#include <array>
#include <utility>

#include "ocltensor/error.h"
#include "runtime/device/device.h"
#include "runtime/driver/process.h"
#include "runtime/queue/graph_recording.h"
#include "runtime/queue/stream_exclusive.h"

namespace ocltensor::opencl {
namespace {

// Categories and names of transfers for the profiler, by their kinds.
constexpr std::array<std::pair<const char*, const char*>, 3> kTraced{
    {{"copy", "copy to device"}, {"copy", "copy on device"}, {"fill", "fill"}}};

}  // namespace

void Stream::begin_recording(std::unique_ptr<GraphRecording> recording) {
  check_process();
  const Exclusive lock(*this);
  if (recording_ != nullptr) fail(TB_E_STATE, "stream {} records a graph already", id_);
  if (rehearsal_.is_on()) fail(TB_E_STATE, "stream {} rehearses", id_);
  recording_ = std::move(recording);
  faults_in_use_ = &recording_->faults();
  epoch_.fetch_add(1, std::memory_order_relaxed);  // kernels pass all of their arguments
  is_recording_ = true;
}

std::unique_ptr<GraphRecording> Stream::end_recording() {
  const std::lock_guard lock(mutex_);
  is_recording_ = false;
  faults_in_use_ = &faults_;
  epoch_.fetch_add(1, std::memory_order_relaxed);
  return std::move(recording_);
}

void Stream::fail_recording(const char* what) {
  const std::string why = fmt::format(
      "{} is not possible while stream {} records a graph; do it before the recording or after a "
      "replay",
      what, id_);
  {
    const std::lock_guard lock(mutex_);
    if (recording_ != nullptr) recording_->fail(why);
  }
  fail(TB_E_STATE, "{}", why);
}

void Stream::name_failure(const std::string& operation) {
  if (!is_recording()) return;
  const std::lock_guard lock(mutex_);
  if (recording_ != nullptr) recording_->name_failure(operation);
}

void Stream::keep_recorded(cl::Buffer& buffer) {
  if (!is_recording()) return;
  const std::lock_guard lock(mutex_);
  if (recording_ != nullptr) recording_->keep(std::move(buffer));
}

bool Stream::record(Kernel& kernel, const Range& range) {
  if (kernel.is_pending()) kernel.make();  // without the lock, which a proof may wait for
  const std::lock_guard lock(mutex_);
  if (recording_ == nullptr) return false;
  if (!kernel.is_of(epoch()))
    fail(TB_E_STATE, "stream {} began to record a graph while {} was being launched", id_,
         kernel.name());
  recording_->add(kernel, range);
  return true;
}

bool Stream::record(const Transfer& transfer, bool source_stays) {
  const std::lock_guard lock(mutex_);
  if (recording_ == nullptr) return false;
  recording_->add(transfer, source_stays);
  return true;
}

// Those of the stream's own work, and of graphs that it has replayed.
void Stream::raise_faults() {
  while (!replayed_faults_.empty()) {
    const std::shared_ptr<Faults> faults = std::move(replayed_faults_.back());
    replayed_faults_.pop_back();
    faults->raise_reported(objects_->queue(), id_);
  }
  faults_.raise_reported(objects_->queue(), id_);
}

void Stream::replay(Graph& graph) {
  check_process();
  forbid_recording("replaying another graph");
  if (rehearsal_.has_stopped()) return;
  graph.wait_for_writes();
  {
    const Exclusive lock(*this);
    const std::lock_guard graph_lock(graph.mutex);
    check(graph.draw(), "clSetKernelArg (random numbers of a graph)");
    std::string call;
    for (const GraphCommand& command : graph.commands) {
      enqueued_.fetch_add(1, std::memory_order_release);
      cl_int code = CL_SUCCESS;
      if (command.kernel() != nullptr) {
        code = enqueue(command.kernel(), command.name, command.range,
                       traced("kernel", command.name, 0), call);
      } else {
        const auto& [category, name] = kTraced[static_cast<size_t>(command.transfer.kind)];
        code = enqueue(command.transfer, traced(category, name, command.transfer.bytes), call);
      }
      check(code, call.c_str());
    }
    work_counters().launches.fetch_add(graph.launches, std::memory_order_relaxed);
    if (graph.reports) {
      graph.faults->expect();
      if (std::ranges::find(replayed_faults_, graph.faults) == replayed_faults_.end())
        replayed_faults_.push_back(graph.faults);
    }
  }
  if (graph.reads_host()) graph.set_done(marker(false));
}

}  // namespace ocltensor::opencl
