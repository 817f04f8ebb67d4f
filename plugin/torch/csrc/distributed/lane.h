// Lanes: queues whose jobs run one after the other, each on a thread of the process's pool.
#pragma once

#include <chrono>
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
  // May push jobs to the lane, and wait for them: what hangs on a future starts collectives (DDP's
  // PowerSGD hook does). These run at once, before the lane's next job: their place in the order
  // must not depend on how fast this rank's other threads are.
  std::function<void()> finish;
};

// Neither function of a job may throw. Jobs keep their lane alive.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  void push(Job job);
  bool is_idle();
  void wait_until_idle();
  // Goes on to the next job where a `finish` has taken long, and waits for none that it pushed: it
  // may wait for the next one. What it pushes from now on is put behind.
  void release_late();

 private:
  // A job's `finish` on its way.
  struct Finish {
    std::shared_ptr<Lane> lane;                              // whose job it was
    std::shared_ptr<Lane> inner = std::make_shared<Lane>();  // has what is pushed meanwhile
    Lane* outermost;                                         // to which it is pushed
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    bool is_over = false;  // guarded by the lane's mutex
  };
  static thread_local Finish* finishing_;

  void push_here(Job job);
  void run_one();
  void go_on_locked(Finish& finish);

  std::mutex mutex_;  // taken before that of an inner lane
  std::condition_variable idle_;
  std::deque<Job> jobs_;
  bool running_ = false;
  std::shared_ptr<Finish> finish_;
  Lane* outermost_ = this;
};

}  // namespace torch_ocl::distributed
