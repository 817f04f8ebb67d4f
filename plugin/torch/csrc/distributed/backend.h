// The c10d backend "ocl": collectives and messages of tensors on ocl and on the CPU.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

#include "group.h"
#include "reduction.h"
#include "torch_ocl/export.h"

namespace torch_ocl::distributed {

class OclBackend final : public c10d::Backend {
 public:
  using Tensors = std::vector<at::Tensor>;
  using Lists = std::vector<Tensors>;
  using Work = c10::intrusive_ptr<c10d::Work>;
  using Sizes = std::vector<int64_t>;

  OclBackend(std::shared_ptr<Group> group, c10::intrusive_ptr<Options> options);
  ~OclBackend() override;

  const std::string getBackendName() const override { return "ocl"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }

  Work broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  Work allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Work allreduce_sparse(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  Work allreduce_coalesced(Tensors& tensors,
                           const c10d::AllreduceCoalescedOptions& options) override;
  Work reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  Work allgather(Lists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) override;
  Work _allgather_base(at::Tensor& output, at::Tensor& input,
                       const c10d::AllgatherOptions& options) override;
  Work allgather_coalesced(Lists& outputs, Tensors& inputs,
                           const c10d::AllgatherOptions& options) override;
  Work allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::AllgatherOptions& options) override;
  Work gather(Lists& outputs, Tensors& inputs, const c10d::GatherOptions& options) override;
  Work scatter(Tensors& outputs, Lists& inputs, const c10d::ScatterOptions& options) override;
  Work reduce_scatter(Tensors& outputs, Lists& inputs,
                      const c10d::ReduceScatterOptions& options) override;
  Work _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                            const c10d::ReduceScatterOptions& options) override;
  Work reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                       const c10d::ReduceScatterOptions& options) override;
  Work alltoall_base(at::Tensor& output, at::Tensor& input, Sizes& output_sizes, Sizes& input_sizes,
                     const c10d::AllToAllOptions& options) override;
  Work alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) override;
  Work send(Tensors& tensors, int to, int tag) override;
  Work recv(Tensors& tensors, int from, int tag) override;
  Work recvAnysource(Tensors& tensors, int tag) override;
  Work barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool all) override;

  bool supportsCoalescing() const override { return true; }
  void startCoalescing() override;
  Work endCoalescing() override;

  void setSequenceNumberForGroup() override {}  // every rank counts from 0
  uint64_t getSequenceNumberForGroup() override { return group_->collectives(); }
  void setTimeout(std::chrono::milliseconds limit) override;
  void enableCollectivesTiming() override {}  // each work has its duration
  c10d::ErrorType getError() override;
  void abort() override;
  void shutdown() override { group_->shut_down(); }

 private:
  Work submit(Call call);
  // Whether the group's engine of device memory, if there is one, does all of them.
  bool on_device(const std::vector<Reduction>& reductions) const;
  // Inputs gathered into lists of one tensor a rank, or of one that has all parts; and the reverse
  // with sums.
  Work gather_parts(const Tensors& inputs, const Lists& parts, Tensors results,
                    std::chrono::milliseconds limit);
  Work scatter_sums(const Tensors& outputs, const Lists& parts,
                    const c10d::ReduceScatterOptions& options);
  Work receive(Tensors& tensors, std::optional<int> from, int tag);

  const std::shared_ptr<Group> group_;
  const c10::intrusive_ptr<Options> options_;
  std::mutex mutex_;  // for the block of coalesced calls
  std::optional<CoalescedWork::Works> coalescing_;
};

// A backend over an engine.
TORCH_OCL_API c10::intrusive_ptr<c10d::Backend> make_backend(std::shared_ptr<Engine> engine,
                                                             c10::intrusive_ptr<c10d::Store> store,
                                                             GroupOptions options);

}  // namespace torch_ocl::distributed
