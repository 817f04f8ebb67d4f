// Enqueues calls of NCCL and looks for their end.
#include "nccl_communicator.h"

#include <c10/util/Exception.h>

#include <thread>
#include <utility>

namespace torch_ocl::distributed {
namespace {

// Makes CUDA's primary context of the device current on this thread for a while.
class Current {
 public:
  Current(const nccl::Functions& library, nccl::Context context) : library_(library) {
    nccl::check_driver(library.driver.push(context), "cuCtxPushCurrent");
  }
  ~Current() {
    nccl::Context popped = nullptr;
    (void)library_.driver.pop(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const nccl::Functions& library_;
};

}  // namespace

NcclCommunicator::NcclCommunicator(const nccl::Functions& library, nccl::Id id, int rank, int size,
                                   int device)
    : library_(library) {
  constexpr unsigned kNonBlocking = 1;  // beside the legacy default stream
  nccl::check_driver(library.driver.retain_primary(&context_, device), "cuDevicePrimaryCtxRetain");
  const Current current(library, context_);
  nccl::check_driver(library.driver.create_stream(&stream_, kNonBlocking), "cuStreamCreate");
  const nccl::Result made = library.init_rank(&comm_, size, id, rank);
  if (made != 0) (void)library.driver.destroy_stream(stream_);
  nccl::check(library, made, "ncclCommInitRank");
}

NcclCommunicator::~NcclCommunicator() {
  const std::lock_guard lock(mutex_);
  if (library_.driver.push(context_) != 0) return;  // the driver has ended
  give_up();
  (void)library_.driver.destroy_stream(stream_);
  nccl::Context popped = nullptr;
  (void)library_.driver.pop(&popped);
}

// Works without the other ranks, which ncclCommDestroy may wait for.
void NcclCommunicator::give_up() {
  if (comm_ != nullptr) (void)library_.abort(std::exchange(comm_, nullptr));
}

void NcclCommunicator::run(const char* what, Limit limit, const Enqueue& enqueue) {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(comm_ != nullptr && !is_aborted_, what, ": the communicator has ended");
  const Current current(library_, context_);
  try {
    nccl::check(library_, library_.group_start(), "ncclGroupStart");
    try {
      enqueue(comm_, stream_);
    } catch (...) {
      (void)library_.group_end();
      throw;
    }
    nccl::check(library_, library_.group_end(), what);
    wait(what, limit);
  } catch (...) {
    give_up();
    throw;
  }
}

void NcclCommunicator::wait(const char* what, Limit limit) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSpin{200}, kNap{20};
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const nccl::Result state = library_.driver.query_stream(stream_);
    if (state == 0) return;
    TORCH_CHECK(state == nccl::kNotReady, what, " failed: CUDA's error ", state);
    nccl::Result error = 0;
    nccl::check(library_, library_.async_error(comm_, &error), "ncclCommGetAsyncError");
    nccl::check(library_, error, what);
    TORCH_CHECK(!is_aborted_, what, " was given up");
    const Clock::duration taken = Clock::now() - begin;
    TORCH_CHECK(taken < limit, what, " has not ended within ", limit.count(), " ms");
    if (taken > kSpin) std::this_thread::sleep_for(kNap);
  }
}

}  // namespace torch_ocl::distributed
