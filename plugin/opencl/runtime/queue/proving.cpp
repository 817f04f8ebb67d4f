// The tests that are due, the thread that runs them, and what was found wrong.
#include "proving.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "ocltensor/error.h"
#include "runtime/driver/worker.h"
#include "runtime/queue/launch_thread.h"

namespace ocltensor::opencl::proving {
namespace {

struct Case {
  std::shared_ptr<const Program> program;
  std::function<std::string()> test;
  std::string wrong;  // once the test has ended
};

// Cases whose test is due or has failed; those that passed are forgotten.
class Prover {
 public:
  void begin(Case added) {
    const std::lock_guard lock(mutex_);
    if (stopping_) fail(TB_E_STATE, "{}: the process is ending", added.program->name());
    if (!thread_.joinable()) {
      LaunchThread::stop_all_at_exit();
      thread_ = start_worker("ocl-proofs", [this] { run(); });
    }
    cases_.remove_if([&](const Case& c) { return !c.wrong.empty() && c.program == added.program; });
    cases_.push_back(std::move(added));
    due_.push_back(&cases_.back());
    changed_.notify_all();
  }

  bool concerns(const Program& program) {
    const std::lock_guard lock(mutex_);
    return find(program) != nullptr;
  }

  void wait(const Program& program) {
    std::unique_lock lock(mutex_);
    for (;; changed_.wait(lock)) {
      const Case* found = find(program);
      if (found == nullptr) return;
      if (!found->wrong.empty())
        fail(TB_E_INTERNAL,
             "the kernel {} could not be proven right on this driver while launches of it waited, "
             "so what its stream was to compute since then is lost: run the work again, which uses "
             "no kernel that was found wrong.\n{}",
             program.name(), found->wrong);
      if (stopping_) fail(TB_E_STATE, "{} was not tested: the process is ending", program.name());
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  const Case* find(const Program& program) const {
    const auto found =
        std::ranges::find_if(cases_, [&](const Case& c) { return c.program.get() == &program; });
    return found == cases_.end() ? nullptr : &*found;
  }

  void run() {
    const Testing testing;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || !due_.empty(); });
      if (stopping_) return;
      Case& next = *due_.front();
      due_.pop_front();
      lock.unlock();
      std::string wrong = next.test();
      lock.lock();
      next.wrong = std::move(wrong);
      if (next.wrong.empty()) cases_.remove_if([&](const Case& c) { return &c == &next; });
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Case> cases_;
  std::deque<Case*> due_;
  std::thread thread_;
  bool stopping_ = false;
};

Prover& prover() {
  static Prover& only = *new Prover;  // leaked: threads may outlive exit handlers
  return only;
}

thread_local int tests = 0;

}  // namespace

void begin(std::shared_ptr<const Program> program, std::function<std::string()> test) {
  prover().begin({std::move(program), std::move(test), {}});
}
bool concerns(const Program& program) { return prover().concerns(program); }
void wait(const Program& program) { prover().wait(program); }
Testing::Testing() { ++tests; }
Testing::~Testing() { --tests; }
bool is_testing() { return tests != 0; }
void stop() { prover().stop(); }

}  // namespace ocltensor::opencl::proving
