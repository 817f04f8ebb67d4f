// What a call returns: it ends when the engine has, and then streams wait for the results by event.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Event.h>

#include <atomic>
#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "statistics.h"

namespace torch_ocl::distributed {

class OclWork final : public c10d::Work {
 public:
  using Future = c10::ivalue::Future;

  // `tensors` are shown in the row that PyTorch's profiler has of the call.
  OclWork(int rank, c10d::OpType op, uint64_t number, std::optional<c10::Device> device,
          const std::vector<at::Tensor>& tensors, std::vector<at::Tensor> results);

  // ---- For whoever does the work. The first of both ends it, and answers true; it then calls
  // complete_future(), in which callbacks run, unless wait() or getFuture() was first.
  // The results are there when this stream has passed what it has now; without one they are.
  bool succeed(std::optional<c10::Stream> stream, int source);
  bool fail(std::exception_ptr exception);
  void complete_future();

  Clock::time_point begin() const { return begin_; }

  // ---- Work
  void synchronize() override;
  bool wait(std::chrono::milliseconds limit) override;
  int sourceRank() const override { return source_; }
  std::vector<at::Tensor> result() override { return results_; }
  // Completed if the work is: DistributedDataParallel reads its value after wait().
  c10::intrusive_ptr<Future> getFuture() override;
  uint64_t getSequencenumber() const override { return number_; }
  float getDuration() const override;  // milliseconds until the engine had done its part
  void abort() override;

 private:
  const uint64_t number_;
  const Clock::time_point begin_ = Clock::now();
  std::atomic<bool> ended_ = false;
  Clock::time_point end_ = begin_;
  std::vector<at::Tensor> results_;
  std::optional<c10::Stream> stream_;
  std::optional<c10::Event> done_;
  int source_ = -1;
  c10::intrusive_ptr<Future> future_;
};

// The works of a block of coalesced calls as one.
class CoalescedWork final : public c10d::Work {
 public:
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;
  CoalescedWork(int rank, Works works);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  void synchronize() override;
  bool wait(std::chrono::milliseconds limit) override;
  std::vector<at::Tensor> result() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

 private:
  Works works_;
};

}  // namespace torch_ocl::distributed
