// Works on top of c10d's own waiting, with a future for what hangs on the results.
#include "work.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

namespace torch_ocl::distributed {
namespace {

std::vector<c10::Device> list_of(std::optional<c10::Device> device) {
  return device ? std::vector<c10::Device>{*device} : std::vector<c10::Device>{};
}

}  // namespace

OclWork::OclWork(int rank, c10d::OpType op, uint64_t number, std::optional<c10::Device> device,
                 const std::vector<at::Tensor>& tensors, std::vector<at::Tensor> results)
    : Work(rank, op, title_of(op), tensors),
      number_(number),
      results_(std::move(results)),
      future_(c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()),
                                          list_of(device))) {}

bool OclWork::succeed(std::optional<c10::Stream> stream, int source) {
  if (ended_.exchange(true)) return false;
  if (stream) done_.emplace(stream->device_type()).record(*stream);
  stream_ = stream;
  source_ = source;
  end_ = Clock::now();
  finish();
  return true;
}

bool OclWork::fail(std::exception_ptr exception) {
  if (ended_.exchange(true)) return false;
  end_ = Clock::now();
  finish(std::move(exception));
  return true;
}

void OclWork::complete_future() {
  if (const std::exception_ptr error = exception()) {
    future_->setError(error);
    return;
  }
  const c10::OptionalStreamGuard guard(stream_);
  future_->markCompleted(c10::IValue(results_));
}

c10::intrusive_ptr<OclWork::Future> OclWork::getFuture() { return future_; }

void OclWork::synchronize() {
  if (!done_) return;
  const c10::impl::VirtualGuardImpl guard(stream_->device_type());
  done_->block(guard.getStream(stream_->device()));
}

bool OclWork::wait(std::chrono::milliseconds limit) {
  const bool waits = !isCompleted();
  const Clock::time_point begin = Clock::now();
  const bool done = Work::wait(limit);
  if (waits) count_wait(opType_, Clock::now() - begin);
  // Whoever has ended the work is about to complete it, there and not here: what callbacks start
  // has one place in the order of calls.
  if (done) future_->wait();
  return done;
}

float OclWork::getDuration() const {
  return std::chrono::duration<float, std::milli>(end_ - begin_).count();
}

void OclWork::abort() {
  const c10::SourceLocation place{__func__, __FILE__, uint32_t{__LINE__}};
  if (fail(std::make_exception_ptr(c10::DistBackendError(place, "ocl: the work was aborted"))))
    complete_future();
}

CoalescedWork::CoalescedWork(int rank, Works works)
    : Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

bool CoalescedWork::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](auto& w) { return w->isCompleted(); });
}

bool CoalescedWork::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](auto& w) { return w->isSuccess(); });
}

std::exception_ptr CoalescedWork::exception() const {
  for (const auto& work : works_)
    if (std::exception_ptr error = work->exception()) return error;
  return nullptr;
}

void CoalescedWork::synchronize() {
  for (const auto& work : works_) work->synchronize();
}

bool CoalescedWork::wait(std::chrono::milliseconds limit) {
  for (const auto& work : works_) work->wait(limit);
  return true;
}

std::vector<at::Tensor> CoalescedWork::result() {
  std::vector<at::Tensor> all;
  for (const auto& work : works_)
    for (at::Tensor& tensor : work->result()) all.push_back(std::move(tensor));
  return all;
}

c10::intrusive_ptr<c10::ivalue::Future> CoalescedWork::getFuture() {
  const auto type = c10::FutureType::create(c10::ListType::create(c10::TensorType::get()));
  c10::List<c10::intrusive_ptr<c10::ivalue::Future>> futures(type);
  for (const auto& work : works_) futures.push_back(work->getFuture());
  return c10::collectAll(futures);
}

}  // namespace torch_ocl::distributed
