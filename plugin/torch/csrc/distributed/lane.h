// Lanes: queues whose jobs run one after the other, each on a thread of the process's pool.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace torch_ocl::distributed {

// Runs a function on a thread of the pool, at once: where all threads are busy it starts another.
// Threads that had nothing to do for some seconds end.
void run_on_thread(std::function<void()> function);

struct Job {
  std::function<void()> run;
  // Called after the lane has gone on to its next job, and so may wait for that: what hangs on a
  // future starts collectives and waits for them (DDP's PowerSGD hook does).
  std::function<void()> finish;
};

// Neither function of a job may throw. Jobs keep their lane alive.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  void push(Job job);
  bool is_idle();
  void wait_until_idle();

 private:
  void run_one();

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Job> jobs_;
  bool running_ = false;
};

}  // namespace torch_ocl::distributed
