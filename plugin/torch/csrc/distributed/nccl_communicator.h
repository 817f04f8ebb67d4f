// One communicator of NCCL with a stream of its own, whose calls the host waits for.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>

#include "nccl_library.h"

namespace torch_ocl::distributed {

class NcclCommunicator {
 public:
  using Limit = std::chrono::milliseconds;

  // Waits for the other ranks.
  NcclCommunicator(const nccl::Functions& library, nccl::Id id, int rank, int size, int device);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Enqueues what `enqueue` does as one group, and waits for it. Throws if NCCL fails or the limit
  // passes; the communicator is then of no use any more.
  using Enqueue = std::function<void(nccl::Comm, nccl::Stream)>;
  void run(const char* what, Limit limit, const Enqueue& enqueue);
  // From any thread.
  void abort() { is_aborted_ = true; }
  nccl::Comm handle() const { return comm_; }

 private:
  void wait(const char* what, Limit limit);
  void give_up();

  const nccl::Functions& library_;
  std::mutex mutex_;  // of calls
  std::atomic<bool> is_aborted_ = false;
  nccl::Context context_ = nullptr;
  nccl::Comm comm_ = nullptr;
  nccl::Stream stream_ = nullptr;
};

}  // namespace torch_ocl::distributed
