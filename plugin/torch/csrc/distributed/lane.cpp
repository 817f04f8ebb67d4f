// The pool of threads, and the queues over it.
#include "lane.h"

#include <chrono>
#include <thread>
#include <utility>

namespace torch_ocl::distributed {
namespace {

class Threads {
 public:
  void run(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > idle_)
      std::thread([this] { work(); }).detach();
    else
      ready_.notify_one();
  }

 private:
  void work() {
    constexpr std::chrono::seconds kPatience{5};
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      ready_.wait_for(lock, kPatience, [this] { return !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // what it holds goes without the lock
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  size_t idle_ = 0;
};

}  // namespace

void run_on_thread(std::function<void()> function) {
  static auto& threads = *new Threads;  // leaked: its threads may outlive main
  threads.run(std::move(function));
}

thread_local Lane::Finish* Lane::finishing_ = nullptr;

void Lane::push(Job job) {
  if (Finish* const finish = finishing_; finish != nullptr && finish->outermost == this) {
    const std::lock_guard lock(finish->lane->mutex_);
    if (!finish->is_over) return finish->inner->push_here(std::move(job));
  }
  push_here(std::move(job));
}

void Lane::push_here(Job job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (std::exchange(running_, true)) return;
  }
  run_on_thread([self = shared_from_this()] { self->run_one(); });
}

bool Lane::is_idle() {
  const std::lock_guard lock(mutex_);
  return !running_;
}

void Lane::wait_until_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [this] { return !running_; });
}

void Lane::run_one() {
  Job job;
  {
    const std::lock_guard lock(mutex_);
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  job.run();
  job.run = nullptr;
  const auto finish = std::make_shared<Finish>();
  finish->lane = shared_from_this();
  finish->outermost = finish->inner->outermost_ = outermost_;
  {
    const std::lock_guard lock(mutex_);
    finish_ = finish;
  }
  Finish* const before = std::exchange(finishing_, finish.get());
  job.finish();
  finishing_ = before;
  finish->inner->wait_until_idle();
  const std::lock_guard lock(mutex_);
  go_on_locked(*finish);
}

void Lane::go_on_locked(Finish& finish) {
  if (std::exchange(finish.is_over, true)) return;
  finish_ = nullptr;
  running_ = !jobs_.empty();
  if (running_)
    run_on_thread([self = shared_from_this()] { self->run_one(); });
  else
    idle_.notify_all();
}

void Lane::release_late() {
  constexpr std::chrono::seconds kLong{5};
  std::shared_ptr<Finish> finish;
  {
    const std::lock_guard lock(mutex_);
    finish = finish_;
    if (!finish || std::chrono::steady_clock::now() - finish->begin < kLong) return;
    if (finish->inner->is_idle()) return go_on_locked(*finish);
  }
  finish->inner->release_late();
}

}  // namespace torch_ocl::distributed
