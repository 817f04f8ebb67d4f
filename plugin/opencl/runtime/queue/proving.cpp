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
  const Device* device;
  const Source* source;
  Defines defines;
  std::function<std::string()> test;
  std::string wrong;  // once the test has ended

  bool is_of(const Device& other, const Source& text, const Defines& wanted) const {
    return device == &other && source == &text && defines == wanted;
  }
};

// Cases whose test is due or has failed; those that passed are forgotten.
class Prover {
 public:
  void begin(Case added) {
    const std::lock_guard lock(mutex_);
    if (stopping_) fail(TB_E_STATE, "{}: the process is ending", added.source->path);
    if (!thread_.joinable()) {
      LaunchThread::stop_all_at_exit();
      thread_ = start_worker("ocl-proofs", [this] { run(); });
    }
    cases_.remove_if([&](const Case& c) {
      return !c.wrong.empty() && c.is_of(*added.device, *added.source, added.defines);
    });
    cases_.push_back(std::move(added));
    due_.push_back(&cases_.back());
    changed_.notify_all();
  }

  bool concerns(const Device& device, const Source& source, const Defines& defines) {
    const std::lock_guard lock(mutex_);
    return find(device, source, defines) != nullptr;
  }

  void wait(const Device& device, const Source& source, const Defines& defines) {
    std::unique_lock lock(mutex_);
    for (;; changed_.wait(lock)) {
      const Case* found = find(device, source, defines);
      if (found == nullptr) return;
      if (!found->wrong.empty())
        fail(TB_E_INTERNAL,
             "the kernel {} could not be proven right on this driver while launches of it waited, "
             "so what its stream was to compute since then is lost: run the work again, which uses "
             "no kernel that was found wrong.\n{}",
             source.path, found->wrong);
      if (stopping_) fail(TB_E_STATE, "{} was not tested: the process is ending", source.path);
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
  const Case* find(const Device& device, const Source& source, const Defines& defines) const {
    const auto found = std::ranges::find_if(
        cases_, [&](const Case& c) { return c.is_of(device, source, defines); });
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

void begin(Device& device, const Source& source, const Defines& defines,
           std::function<std::string()> test) {
  prover().begin({&device, &source, defines, std::move(test), {}});
}
bool concerns(const Device& device, const Source& source, const Defines& defines) {
  return prover().concerns(device, source, defines);
}
void wait(const Device& device, const Source& source, const Defines& defines) {
  prover().wait(device, source, defines);
}
Testing::Testing() { ++tests; }
Testing::~Testing() { --tests; }
bool is_testing() { return tests != 0; }
void stop() { prover().stop(); }

}  // namespace ocltensor::opencl::proving
